package feedback

import (
	"math"
	"testing"

	"ridgepoint/harness"
)

// A baseline that was disturbed has no part in the speed-up, however large a one it would make.
func TestDisturbedBaselineMakesNoSpeedup(t *testing.T) {
	t.Parallel()
	r := &harness.Report{Sizes: []harness.SizeTime{
		{MedianUS: 10, BaselineUS: 20, FLOPs: 1e4}, {MedianUS: 10, BaselineUS: 900, FLOPs: 1e4, BaselineNoisy: true}, {MedianUS: 10, BaselineUS: 20, FLOPs: 1e4, Noisy: true},
	}}
	if s := Summarise(r); math.Abs(s.Speedup-2) > 1e-12 || math.Abs(s.GFLOPS-1) > 1e-12 || math.Abs(s.BaselineGFLOPS-0.5) > 1e-12 {
		t.Errorf("%+v, want a speed-up of 2, 1 GFLOPS and 0.5", s)
	}
	for i := range r.Sizes {
		r.Sizes[i].BaselineNoisy = true
	}
	if s := Summarise(r); s.Speedup != 0 || s.BaselineGFLOPS != 0 || s.GFLOPS == 0 {
		t.Errorf("%+v, want no speed-up where every baseline was disturbed", s)
	}
}
