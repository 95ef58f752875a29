package cudaengine_test

import (
	"encoding/binary"
	"math"
	"testing"
)

// No expected value lies on the device as it is, before, during or after a comparison: a kernel that reads all of the device's memory
// finds nothing to copy.
func TestExpectedValuesAreSealed(t *testing.T) {
	box := setup(t)
	b := bind(t, box, honest, 1003)
	var last uint64
	for seed := range uint64(2) {
		if _, _, err := b.shoot(seed); err != nil {
			t.Fatal(err)
		}
		all, err := box.engine.ExpectedOnDevice()
		if err != nil || len(all) != 1 || len(all[0]) != 8*1003 {
			t.Fatalf("%d copies of expected values on the device, %v; want one of 1003", len(all), err)
		}
		want := b.set.Expected[2]
		for i := range want {
			word := binary.LittleEndian.Uint64(all[0][8*i:])
			if narrow := math.Float32bits(float32(want[i])); uint32(word) == narrow || uint32(word>>32) == narrow {
				t.Fatalf("word %d on the device holds the expected value %v in 32 bits", i, want[i])
			}
			for _, w := range want {
				if word == math.Float64bits(w) {
					t.Fatalf("word %d on the device is the expected value %v", i, w)
				}
			}
			if i > 0 && word^math.Float64bits(want[i]) == last^math.Float64bits(want[i-1]) {
				t.Fatalf("elements %d and %d lie under the same mask", i-1, i)
			}
			last = word
		}
	}
}
