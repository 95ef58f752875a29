package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/task"
)

func parse(t *testing.T, text string) *harness.Task {
	t.Helper()
	tk, err := task.Parse("task.yaml", text, &task.Host{March: "x86-64"})
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func dims(pairs ...any) harness.Size {
	var s harness.Size
	for i := 0; i < len(pairs); i += 2 {
		s = append(s, harness.Dim{Name: pairs[i].(string), Value: int64(pairs[i+1].(int))})
	}
	return s
}

// plain computes the shipped tasks by loops as a textbook has them, independent of package torch.
var plain = map[string]struct {
	size harness.Size
	fn   func(s harness.Size, in map[string][]float64) map[string][]float64
}{
	"vector_add": {dims("n", 77), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		out := make([]float64, 77)
		for i := range out {
			out[i] = in["a"][i] + in["b"][i]
		}
		return map[string][]float64{"": out}
	}},
	"softmax_2d": {dims("rows", 5, "cols", 33), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		out := make([]float64, 5*33)
		for r := range 5 {
			sum := 0.0
			for c := range 33 {
				sum += math.Exp(in["input"][r*33+c])
			}
			for c := range 33 {
				out[r*33+c] = math.Exp(in["input"][r*33+c]) / sum
			}
		}
		return map[string][]float64{"": out}
	}},
	"reduce_sum": {dims("rows", 5, "cols", 33), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		out := make([]float64, 5)
		for i, v := range in["input"] {
			out[i/33] += v
		}
		return map[string][]float64{"": out}
	}},
	"transpose": {dims("rows", 5, "cols", 33), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		out := make([]float64, 5*33)
		for i, v := range in["input"] {
			out[i%33*5+i/33] = v
		}
		return map[string][]float64{"": out}
	}},
	"gemm_f32": {dims("m", 7, "n", 9, "k", 11), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		out := make([]float64, 7*9)
		for i := range 7 {
			for j := range 9 {
				for k := range 11 {
					out[i*9+j] += in["a"][i*11+k] * in["b"][k*9+j]
				}
			}
		}
		return map[string][]float64{"": out}
	}},
	"conv2d_3x3": {dims("h", 8, "w", 9), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		out := make([]float64, 72)
		for y := range 8 {
			for x := range 9 {
				for ky := range 3 {
					for kx := range 3 {
						iy, ix := y+ky-1, x+kx-1
						if iy >= 0 && iy < 8 && ix >= 0 && ix < 9 {
							out[y*9+x] += in["weight"][ky*3+kx] * in["input"][iy*9+ix]
						}
					}
				}
			}
		}
		return map[string][]float64{"": out}
	}},
	"nbody": {dims("n", 40), func(_ harness.Size, in map[string][]float64) map[string][]float64 {
		p, v := in["position"], in["velocity"]
		np, nv := slices.Clone(p), slices.Clone(v)
		dt, soft := float64(float32(0.01)), float64(float32(0.1))
		for i := range 40 {
			var a [3]float64
			for j := range 40 {
				var d [3]float64
				d2 := soft * soft
				for k := range d {
					d[k] = p[4*j+k] - p[4*i+k]
					d2 += d[k] * d[k]
				}
				for k := range a {
					a[k] += p[4*j+3] * d[k] / math.Pow(d2, 1.5)
				}
			}
			for k := range a {
				nv[4*i+k] += dt * a[k]
				np[4*i+k] += dt * nv[4*i+k]
			}
		}
		return map[string][]float64{"new_position": np, "new_velocity": nv}
	}},
}

func TestShippedReferences(t *testing.T) {
	t.Parallel()
	for _, name := range tasks.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := task.Loader{Shipped: tasks.FS}.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			c, ok := plain[name]
			if !ok {
				t.Fatalf("no plain computation for %s", name)
			}
			extents, err := task.Shapes(l.Task, c.size)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			in := map[string][]float64{}
			for _, e := range extents {
				if e.Role != harness.RoleOut {
					v := make([]float64, e.Elements)
					for i := range v {
						v[i] = r.NormFloat64()
					}
					in[e.Name] = v
				}
			}
			ref, err := New(l.Task, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ref.Expected(context.Background(), c.size, Inputs{Values: in})
			if err != nil {
				t.Fatal(err)
			}
			want := c.fn(c.size, in)
			for name, g := range got {
				w, ok := want[name]
				if !ok {
					w = want[""]
				}
				for i := range w {
					if d := math.Abs(g[i] - w[i]); !(d <= 1e-12+1e-12*math.Abs(w[i])) {
						t.Fatalf("%s[%d] is %v, want %v", name, i, g[i], w[i])
					}
				}
			}
		})
	}
}

const head = `
task_name: t
problem_shape: {n: 4, m: 3, dtype: float32}
targets: {cpu: {arch: x86-64-v3}}
`

func TestRawInputs(t *testing.T) {
	t.Parallel()
	tk := parse(t, head+`
tensors:
  x: {shape: [n, m], dtype: float16, role: in, strides: [1, n]}
  z: {shape: [n], role: inout}
  out: {shape: [n, m], role: out}
scalars: {alpha: 0.1}
reference: |
  def reference(x, z, alpha, n):
      return z + alpha * n, x * 2
`)
	r, err := New(tk, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 24)
	if err := codec.Encode(raw, []float64{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, harness.Float16); err != nil {
		t.Fatal(err)
	}
	out, err := r.Expected(context.Background(), dims("n", 4, "m", 3), Inputs{Raw: map[string][]byte{"x": raw}, Values: map[string][]float64{"z": {1, 2, 3, 4}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 20, 40, 2, 22, 42, 4, 24, 44, 6, 26, 46}; !slices.Equal(out["out"], want) {
		t.Errorf("out is %v, want %v", out["out"], want)
	}
	if want := 1 + 4*float64(float32(0.1)); out["z"][0] != want {
		t.Errorf("z[0] is %v, want %v: a scalar is rounded to its dtype", out["z"][0], want)
	}
}

func TestWrongShapeIsAFault(t *testing.T) {
	t.Parallel()
	r, err := New(parse(t, head+"reference: input.sum(-1)\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Expected(context.Background(), dims("n", 4, "m", 3), Inputs{Values: map[string][]float64{"input": make([]float64, 12)}})
	var te *task.Error
	if !errors.As(err, &te) || !strings.Contains(te.Reason, "gives the shape [4] for output, which has [4 3]") {
		t.Errorf("got %v", err)
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := NewCache(dir, 4096)
	if err != nil {
		t.Fatal(err)
	}
	out := Outputs{"a": {1, math.NaN(), math.Inf(1)}, "b": {4}}
	lengths := map[string]int64{"a": 3, "b": 1}
	c.put("k1", out, time.Hour)
	got, ok := c.get("k1", lengths)
	if !ok || got["a"][0] != 1 || !math.IsNaN(got["a"][1]) || !math.IsInf(got["a"][2], 1) || got["b"][0] != 4 {
		t.Fatalf("got %v, %v", got, ok)
	}
	if _, ok := c.get("k1", map[string]int64{"a": 3, "b": 2}); ok {
		t.Error("an entry of other lengths is accepted")
	}
	c.put("cheap", out, 0)
	if _, ok := c.get("cheap", lengths); ok {
		t.Error("what is computed faster than read is kept")
	}
	file := filepath.Join(dir, "k1"+cacheSuffix)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		damaged := slices.Clone(b)
		damaged[i] ^= 0x40
		if _, ok := decodeEntry(damaged); ok {
			t.Fatalf("a flipped bit in byte %d is not noticed", i)
		}
	}
	if err := os.WriteFile(file, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.get("k1", lengths); ok {
		t.Error("a cut file is accepted")
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a damaged file stays: %v", err)
	}
	for i := range 8 { // 8 entries of some 870 bytes in 4096
		name := string(rune('a' + i))
		c.put(name, Outputs{"x": make([]float64, 100)}, time.Hour)
		old := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name+cacheSuffix), old, old); err != nil {
			t.Fatal(err)
		}
	}
	c.evict()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 4 || list[0].Name() != "e"+cacheSuffix {
		t.Errorf("left: %v (%v), want e to h", list, err)
	}
}

func TestCacheSavesTheComputation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := NewCache(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	count := filepath.Join(dir, "count")
	tk := parse(t, head+"reference: {command: [sh, -c, 'echo x >> "+count+"; sleep 0.01; cp $0/input.npy $0/output.npy']}\n")
	r, err := New(tk, c)
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range []Inputs{{Values: map[string][]float64{"input": make([]float64, 12)}}, {Values: map[string][]float64{"input": make([]float64, 12)}},
		{Values: map[string][]float64{"input": slices.Repeat([]float64{1}, 12)}}} {
		out, err := r.Expected(context.Background(), dims("n", 4, "m", 3), in)
		if err != nil || out["output"][0] != float64(i/2) {
			t.Fatalf("call %d: %v, %v", i, out, err)
		}
	}
	b, err := os.ReadFile(count)
	if err != nil || len(b) != 4 {
		t.Errorf("the program ran %d times (%v), want twice for three calls of two inputs", len(b)/2, err)
	}
}

func TestCommandFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ script, want string }{
		{"exit 3", "exit status 3"},
		{"echo wrong >&2; exit 1", "wrong"},
		{"true", "was not written"},
		{"echo hello > $0/output.npy", "no .npy file"},
		{"cp $0/size.json $0/output.npy", "no .npy file"},
	} {
		r, err := New(parse(t, head+"reference: {command: [sh, -c, '"+c.script+"']}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Expected(context.Background(), dims("n", 4, "m", 3), Inputs{Values: map[string][]float64{"input": make([]float64, 12)}})
		var te *task.Error
		if !errors.As(err, &te) || !strings.Contains(te.Reason, c.want) {
			t.Errorf("%s: %v, want %q", c.script, err, c.want)
		}
	}
}

func TestNpy(t *testing.T) {
	t.Parallel()
	values := []float64{0, 1, -2, 3, 4, 5}
	for dt := harness.Float64; dt <= harness.BoolType; dt++ {
		b, err := EncodeNpy([]int64{2, 3}, values, dt)
		if err != nil {
			t.Fatal(err)
		}
		shape, got, err := DecodeNpy(b, 6)
		if err != nil || !slices.Equal(shape, []int64{2, 3}) || got[1] != 1 || len(b)%4 != 0 && dt.SizeBytes() >= 4 {
			t.Errorf("%s: %v %v %v", dt, shape, got, err)
		}
		if _, _, err := DecodeNpy(b, 5); err == nil {
			t.Errorf("%s: more elements than allowed are read", dt)
		}
	}
	// What numpy 1.26 writes for np.save(f, np.asfortranarray([[1., 2., 3.], [4., 5., 6.]])), by its format document.
	header := "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	raw := make([]byte, 48)
	if err := codec.Encode(raw, []float64{1, 4, 2, 5, 3, 6}, harness.Float64); err != nil {
		t.Fatal(err)
	}
	shape, got, err := DecodeNpy([]byte("\x93NUMPY\x01\x00v\x00"+header+string(raw)), 6)
	if err != nil || !slices.Equal(shape, []int64{2, 3}) || !slices.Equal(got, []float64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("fortran order: %v %v %v", shape, got, err)
	}
}

// Every prefix of an array and of a cache entry, and each with any one byte at its edges, is read or refused.
func TestDecodeDamaged(t *testing.T) {
	t.Parallel()
	npy, err := EncodeNpy([]int64{2, 3}, make([]float64, 6), harness.Float32)
	if err != nil {
		t.Fatal(err)
	}
	entry := encodeEntry(Outputs{"a": {1, 2}, "b": {3}})
	for _, whole := range [][]byte{npy, entry} {
		for n := range whole {
			_, _, _ = DecodeNpy(whole[:n], 1<<16) // must not panic
			decodeEntry(whole[:n])
			for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff, '9', '-'} {
				damaged := slices.Clone(whole)
				damaged[n] = b
				_, _, _ = DecodeNpy(damaged, 1<<16)
				if body := damaged[:len(damaged)-4]; len(whole) == len(entry) { // with a checksum that holds
					decodeEntry(binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, castagnoli)))
				}
			}
		}
	}
}

func FuzzDecodeNpy(f *testing.F) {
	b, err := EncodeNpy([]int64{2, 3}, make([]float64, 6), harness.Float32)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("\x93NUMPY\x02\x00\x08\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		shape, v, err := DecodeNpy(b, 1<<16)
		if err != nil {
			return
		}
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		if int64(len(v)) != n || n > 1<<16 {
			t.Errorf("shape %v with %d values", shape, len(v))
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(encodeEntry(Outputs{"a": {1, 2}, "b": {3}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, ok := decodeEntry(b)
		if !ok && len(b) > 4 { // past the checksum, which no accident passes
			body := b[:len(b)-4]
			out, ok = decodeEntry(binary.LittleEndian.AppendUint32(slices.Clone(body), crc32.Checksum(body, castagnoli)))
		}
		values := 0
		for _, v := range out {
			values += len(v)
		}
		if ok && 8*values > len(b) {
			t.Errorf("%d values from %d bytes", values, len(b))
		}
	})
}
