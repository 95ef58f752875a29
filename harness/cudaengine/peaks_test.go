package cudaengine_test

import (
	"testing"

	"ridgepoint/harness/cudaengine"
)

// TestPeaksAreMeasuredWhenAsked wants a new engine to have loaded the device with nothing, since another may be measuring on it, and
// a card's ceilings once they are asked for.
func TestPeaksAreMeasuredWhenAsked(t *testing.T) {
	e := setup(t).engine
	if p := e.Peaks(); p != (cudaengine.Peaks{}) {
		t.Errorf("a new engine has measured %+v", p)
	}
	for range 2 {
		if err := e.MeasurePeaks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p := e.Peaks(); (p.BytesPerSecond > 0 && p.FLOPsPerSecond > 0 && p.EmptyLaunch > 0) == e.Emulated() {
		t.Errorf("ceilings %+v, want all of a card's and none of the emulated device's", p)
	}
}
