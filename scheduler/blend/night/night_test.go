package night_test

import (
	"os"
	"testing"

	"ridgepoint/scheduler/blend/night"
)

// freshSeeds begin where no constant of the blend was chosen: those of development are below 200.
const freshSeeds = 1000

// TestBlendBeatsEveryFixedPolicy holds the blend to a better mean area than each other policy. The full run has 30 seeds and demands
// the interval; RIDGEPOINT_SPACES takes whole recorded spaces in place of the excerpts.
func TestBlendBeatsEveryFixedPolicy(t *testing.T) {
	t.Parallel()
	seeds, dir, long := 2, "testdata", os.Getenv("RIDGEPOINT_LONG") == "1"
	if d := os.Getenv("RIDGEPOINT_SPACES"); d != "" {
		dir = d
	}
	if long {
		seeds = 30
	}
	families, err := night.Load(os.DirFS(dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	if !long { // two families keep the test within seconds
		families = map[string][]*night.Space{"gemm": families["gemm"], "pnpoly": families["pnpoly"]}
	}
	list, err := night.Compare(night.Ordered(families), freshSeeds, seeds)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		t.Logf("%-12s area %.4f, blend better by %+.4f (95 %%: %+.4f to %+.4f), %d nights", c.Policy, c.Area, c.Difference, c.Interval[0], c.Interval[1], c.Nights)
		if c.Policy == "auto" {
			continue
		}
		if long && c.Interval[0] <= 0 {
			t.Errorf("%s: the interval of the blend's advantage %v holds zero", c.Policy, c.Interval)
		}
		if (c.Policy == "tune-only" || c.Policy == "model-only") && c.Difference <= 0 {
			t.Errorf("%s: the blend is not better: %+.4f %v", c.Policy, c.Difference, c.Interval)
		}
		if c.Difference < -0.02 {
			t.Errorf("%s is better by %.4f", c.Policy, -c.Difference)
		}
	}
}

func TestNightsAreReproducible(t *testing.T) {
	t.Parallel()
	families, err := night.Load(os.DirFS("testdata"), ".")
	if err != nil {
		t.Fatal(err)
	}
	p := night.Policies()[0]
	a, b, c := night.Run(families["gemm"], 5, p), night.Run(families["gemm"], 5, p), night.Run(families["gemm"], 6, p)
	if a != b || a == c || a <= 0 || a > 1 {
		t.Errorf("areas %v, %v and %v; want the same twice and another for another seed, between 0 and 1", a, b, c)
	}
}
