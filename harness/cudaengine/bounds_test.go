package cudaengine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/verify"
)

// copyOf is a task whose output c is its input a, of one type, and its oracle.
func copyOf(t testing.TB, dtype, shape, strides string) (*harness.Task, verify.OracleFunc) {
	tk := taskOf(t, dtype, fmt.Sprintf("a: {shape: [n], dtype: %[1]s, role: in}, c: {shape: %[2]s, dtype: %[1]s, role: out%[3]s}", dtype, shape, strides), "a, c, n")
	return tk, func(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
		return map[string][]float64{"c": in["a"]}, nil
	}
}

// TestEveryType copies elements of each type, at sizes from one on of which no vector is a multiple, and is wrong about the last one in
// the last launch but one, behind one whose bits were right.
func TestEveryType(t *testing.T) {
	for _, dtype := range []string{"float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int64", "int32", "int8", "uint8", "bool"} {
		t.Run(dtype, func(t *testing.T) {
			t.Parallel()
			tk, oracle := copyOf(t, "float32", "[n]", "")
			for i := range tk.Tensors { // a task of the emulated device may not have the narrow types, whose elements can be copied there
				if err := tk.Tensors[i].DType.UnmarshalText([]byte(dtype)); err != nil {
					t.Fatal(err)
				}
			}
			size := tk.Tensors[0].DType.SizeBytes()
			word := map[int]string{1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}[size]
			source := fmt.Sprintf(`typedef %s word;
__device__ int launches;
extern "C" __global__ void k(const word* a, word* c, int n) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = 0; i < n; ++i) c[i] = a[i];
        if (launches++ == 2) c[n - 1] = c[n - 1] %s;
    }
}`, word, map[bool]string{true: "? 0 : 1", false: fmt.Sprintf("^ (word)1 << %d", 8*size-2)}[dtype == "bool"])
			e := setup(t)
			for _, n := range []int64{1, 3, 4099} {
				b := bindTask(t, e, tk, oracle, source, n, "k")
				shots, err := burst(t, b, verify.BurstLaunch{Whole: true}, verify.BurstLaunch{}, verify.BurstLaunch{}, verify.BurstLaunch{})
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range shots {
					if c := s.Comparisons[0]; s.Breach != nil || i != 2 && c.Mismatches != 0 || i == 2 && (c.Mismatches != 1 || c.First != n-1) {
						t.Errorf("%d elements, launch %d: %+v %+v", n, i, s.Breach, c)
					}
				}
			}
		})
	}
}

// TestHoles writes an output with places between its rows: what lies there is neither compared nor taken for the launch's.
func TestHoles(t *testing.T) {
	tk, oracle := copyOf(t, "float32", `["n // 3", 3]`, ", strides: [5, 1]")
	source := `__device__ int launches;
extern "C" __global__ void k(const float* a, float* c, int n) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = 0; i < n; ++i) if (launches != 2 || i != 7) c[i / 3 * 5 + i % 3] = a[i];
        launches++;
    }
}`
	b := bindTask(t, setup(t), tk, oracle, source, 999, "k")
	shots, err := burst(t, b, verify.BurstLaunch{Whole: true}, verify.BurstLaunch{}, verify.BurstLaunch{}, verify.BurstLaunch{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range shots {
		if c := s.Comparisons[0]; i != 2 && c.Mismatches != 0 || i == 2 && (c.Mismatches != 1 || c.First != 7 || c.Unwritten != 1) {
			t.Errorf("launch %d: %+v", i, c)
		}
	}
}

// raising is a task of a tensor c that is both input and output, to which a is added, its oracle, and a kernel k of c and what is added
// that is wrong for ever where c is not what the set has.
func raising(t testing.TB) (*harness.Task, verify.OracleFunc, string) {
	tk := taskOf(t, "float32", "c: {shape: [n], dtype: float32, role: inout}, a: {shape: [n], dtype: float32, role: in}", "c, a, n")
	oracle := func(_ context.Context, _ *harness.Task, _ harness.Size, in map[string][]float64, _ string) (map[string][]float64, error) {
		out := make([]float64, len(in["a"]))
		for i := range out {
			out[i] = in["a"][i] + in["c"][i]
		}
		return map[string][]float64{"c": out}, nil
	}
	return tk, oracle, `__device__ float before[1003];
__device__ bool met[1003];
extern "C" __global__ void k(float* c, const float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (!met[i]) before[i] = c[i];
    met[i] = true;
    if (c[i] != before[i]) before[i] = c[i] = __int_as_float(0x7fc00000);  // and so on ever after
    else c[i] += a[i];
}`
}

// TestInPlace raises a tensor that is both input and output: each launch finds it as the set has it, warm-ups among them.
func TestInPlace(t *testing.T) {
	tk, oracle, source := raising(t)
	b := bindTask(t, setup(t), tk, oracle, source, 1003, "k")
	rightAfter(t, b, 2, 3)
}

// withScratch is vadd by way of scratch of the given number of elements.
func withScratch(elements string) string {
	return `/* ridgepoint
launch: [{kernel: vadd, grid: ["ceil_div(n, 256)"], block: [256], args: [a, b, c, scratch, n]}]
workspace: {scratch: {shape: ["` + elements + `"], dtype: float32}}
*/
extern "C" __global__ void vadd(const float* a, const float* b, float* c, float* s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { s[i] = a[i]; c[i] = s[i] + b[i]; } }`
}

// TestBenchesShareMemory lets two benches whose scratch is not of one size run by turns, as a contest does: the zones of the one lie
// within the scratch of the other.
func TestBenchesShareMemory(t *testing.T) {
	e := setup(t)
	small, large := bind(t, e, withScratch("n"), 700), bind(t, e, withScratch("40 * n"), 700)
	for range 3 {
		for _, b := range []*bound{small, large} {
			wrongOnly(t, b, nil, verify.BurstLaunch{Whole: true}, verify.BurstLaunch{})
		}
	}
}

// TestDeltasOutliveNoSet alternates pairs of sets of which the device holds two at most: what was known of the difference to a set that
// is gone is not taken for that to another. The benches' scratch differs, which the deltas do not depend on.
func TestDeltasOutliveNoSet(t *testing.T) {
	const n = 540_000
	e := setupWith(t, cudaengine.Config{MasterBytes: 2*(8+8)*n + 1<<20})
	tk := load(t, "vadd.yaml")
	pool := verify.NewPool(addition, 1<<30)
	var sets []*verify.Set
	for i := range uint64(3) {
		s, err := pool.Get(t.Context(), tk, harness.Size{{Name: "n", Value: n}}, verify.Spec{Distribution: verify.Plain, Seed: i / 2, Sparse: i == 1}, int(i))
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, s)
	}
	for round, pair := range [][2]int{{0, 1}, {1, 2}, {2, 0}, {0, 1}} {
		b := bind(t, e, withScratch([]string{"n", "3 * n"}[round%2]), n)
		var launches []verify.BurstLaunch
		for i := range 5 {
			launches = append(launches, verify.BurstLaunch{Set: sets[pair[i%2]], Whole: i == 0 || i == 4})
		}
		wrongOnly(t, b, nil, launches...)
		for range 2 { // closing again, as the cleanup does, gives nothing back
			if err := b.bench.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := e.engine.Pinned(); n != 0 {
			t.Errorf("round %d: the sets are pinned %d times by no bench", round, n)
		}
	}
}

// edited is a set of vadd that differs from another in the given elements of its first input.
func edited(of *verify.Set, at ...int64) *verify.Set {
	s := *of
	s.Key = fmt.Sprintf("%s, %d edited from %d", of.Key, len(at), at[0])
	s.Inputs, s.Expected = slices.Clone(of.Inputs), slices.Clone(of.Expected)
	s.Inputs[0], s.Expected[2] = slices.Clone(of.Inputs[0]), slices.Clone(of.Expected[2])
	for _, i := range at {
		v := math.Float32frombits(binary.LittleEndian.Uint32(s.Inputs[0][4*i:]))
		binary.LittleEndian.PutUint32(s.Inputs[0][4*i:], math.Float32bits(v+1))
		s.Expected[2][i] += float64(v+1) - float64(v)
	}
	return &s
}

// TestSetsThatHardlyDiffer alternates sets of large inputs that differ in one element alone: the first, the last, which lies in a piece
// of fewer than 16 bytes, and one between; and in so many adjacent ones that they are written whole.
func TestSetsThatHardlyDiffer(t *testing.T) {
	const n = 540_001
	b := bind(t, setup(t), honest, n)
	var many []int64
	for i := range int64(300) {
		many = append(many, 1000+i)
	}
	for _, at := range [][]int64{{0}, {n - 1}, {n / 2}, many} {
		other := edited(b.set, at...)
		var launches []verify.BurstLaunch
		for i := range 6 {
			launches = append(launches, verify.BurstLaunch{Set: []*verify.Set{b.set, other}[i%2], Whole: i == 0 || i == 5, Seed: 100})
		}
		wrongOnly(t, b, nil, launches...)
	}
}

// TestFirstMismatch is wrong in several shares, and twice in the first of them: the first element is named, with what was there. Blocks
// of the emulated device run their warps in one order or the other, by their number.
func TestFirstMismatch(t *testing.T) {
	for _, first := range []int{2100, 3100} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			source := fmt.Sprintf(`extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] + (i == %d ? 4.f : i == %d || i == 7000 ? 2.f : i > 19997 ? 1.f : 0.f); }`, first, first+900)
			b := bind(t, setup(t), source, 20_000)
			shots, err := burst(t, b, verify.BurstLaunch{Whole: true}, verify.BurstLaunch{})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range shots {
				c := s.Comparisons[0]
				if c.Mismatches != 5 || c.First != int64(first) || math.Abs(c.Got-c.Want-4) > 1e-5 || c.Want != b.set.Expected[2][first] || c.Pattern != "scattered" {
					t.Errorf("launch %d: %+v", i, c)
				}
			}
		})
	}
}

// TestProjectionsOfEveryShape wants outputs over 16 MB of other types, and of lengths that no vector divides, to be told from outputs
// that are wrong in the last element alone, where no error is allowed as well.
func TestProjectionsOfEveryShape(t *testing.T) {
	for dtype, n := range map[string]int64{"float32": 4<<20 + 3, "float64": 2<<20 + 1, "int64": 2<<20 + 1} {
		t.Run(dtype, func(t *testing.T) {
			t.Parallel()
			tk, oracle := copyOf(t, dtype, "[n]", "")
			word := map[string]string{"float32": "float", "float64": "double", "int64": "long long"}[dtype]
			b := bindTask(t, setup(t), tk, oracle, fmt.Sprintf(`__device__ int launches;
extern "C" __global__ void k(const %[1]s* a, %[1]s* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + (i == n - 1 && launches == 2 ? 50 : 0);
    if (i == n - 1) launches++;
}`, word), n, "k")
			shots, err := burst(t, b, make([]verify.BurstLaunch, 4)...)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range shots {
				if c := s.Comparisons[0]; !c.Projected || (c.Mismatches > 0) != (i == 2) {
					t.Errorf("launch %d: %+v, bound of tolerance %+v", i, c, b.set.Tolerances[1])
				}
			}
		})
	}
}

// TestOneFlushOfABurst asks for one flush before a burst without any, as a board's protocol does for each size: it comes before the
// burst, with whatever else was asked for, and not before the launch behind it.
func TestOneFlushOfABurst(t *testing.T) {
	b := bind(t, setup(t), honest, 300)
	bench := b.bench.(*cudaengine.Bench)
	if _, _, err := bench.Swept(); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{false, true} {
		if asked {
			if err := errors.Join(bench.Write(t.Context(), b.set), bench.Poison(t.Context(), 1), bench.Flush(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := bench.Burst(t.Context(), &verify.Burst{NoFlush: true, Rewrite: true, Launches: []verify.BurstLaunch{{Set: b.set, Whole: true}, {Set: b.set}}}); err != nil {
			t.Fatal(err)
		}
		if swept, pending, err := bench.Swept(); err != nil || swept != asked || pending {
			t.Errorf("asked %t: swept %t, something left to do %t, %v", asked, swept, pending, err)
		}
	}
}
