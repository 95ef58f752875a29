package codeobject

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func golden(t testing.TB) []byte {
	t.Helper()
	image, err := os.ReadFile("testdata/gfx90a.hsaco") // of gfx90a.cu, by hipcc 5.2 --genco --no-gpu-bundle-output
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse(golden(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Kernel{ // as readelf --notes and llvm-readelf print them
		{Name: "scale", VectorRegisters: 6, ScalarRegisters: 14, StaticSharedBytes: 256, ThreadsPerBlock: 1024, WaveSize: 64, ArgumentSizes: []int{8, 8, 4, 8}},
		{Name: "spill", VectorRegisters: 51, ScalarRegisters: 45, ScratchBytes: 1040, ThreadsPerBlock: 256, WaveSize: 64, ArgumentSizes: []int{8, 4}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := Resources(got); r[1].LocalBytes != 1040 || r[0].Registers != 6 || r[0].StaticSharedBytes != 256 {
		t.Errorf("resources %+v", r)
	}
}

// TestParseRefusesDamage cuts and changes the metadata everywhere: an error or kernels, never a panic.
func TestParseRefusesDamage(t *testing.T) {
	t.Parallel()
	image := golden(t)
	for n := range len(image) {
		if all, err := Parse(image[:n]); err == nil && len(all) != 2 {
			t.Fatalf("cut at %d: %v", n, all)
		}
	}
	for i := range image {
		for _, v := range []byte{0, 0x7f, 0x80, 0xc1, 0xdf, 0xff} {
			damaged := append([]byte(nil), image...)
			damaged[i] = v
			_, _ = Parse(damaged) // whatever it says, it returns
		}
	}
	for _, text := range []string{"", "\x7fELF", "__CLANG_OFFLOAD_BUNDLE__"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data string
		want any
	}{
		{"\x05", int64(5)}, {"\xff", int64(-1)}, {"\xc0", nil}, {"\xc3", true}, {"\xcd\x01\x00", int64(256)}, {"\xd1\xff\xfe", int64(-2)}, {"\xd3\xff\xff\xff\xff\xff\xff\xff\xfd", int64(-3)},
		{"\xa3abc", "abc"}, {"\xd9\x02hi", "hi"}, {"\x92\x01\xc2", []any{int64(1), false}}, {"\xdc\x00\x01\x07", []any{int64(7)}}, {"\x81\xa1k\x02", map[string]any{"k": int64(2)}},
		{"\xde\x00\x01\xa1k\x03", map[string]any{"k": int64(3)}},
	} {
		got, err := unpack([]byte(c.data))
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%x: %v, %v; want %v", c.data, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "\xcd\x01", "\xc1", "\x81\x01\x01", "\xdf\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff", "\x91"} {
		if v, err := unpack([]byte(bad)); err == nil {
			t.Errorf("%x: got %v", bad, v)
		}
	}
}

func FuzzParse(f *testing.F) {
	image := golden(f)
	f.Add(image)
	seed := make([]byte, 12, 24)
	binary.LittleEndian.PutUint32(seed, 7)
	binary.LittleEndian.PutUint32(seed[4:], 4)
	binary.LittleEndian.PutUint32(seed[8:], noteAMDGPU)
	f.Add(append(seed, "AMDGPU\x00\x00\x81\xa1k\x02"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if all, err := Parse(data); err == nil {
			for _, k := range all {
				if k.Name == "" || k.VectorRegisters < 0 {
					t.Errorf("kernel %+v", k)
				}
			}
		}
		if desc, ok := note(data); ok {
			_, _ = kernels(desc) // whatever it says, it returns
		}
		_, _ = unpack(data)
	})
}
