package main

import (
	"errors"
	"testing"
)

// TestSlowReplayIsMeasuredTwice gives attempts in turn; what counts is the last one taken.
func TestSlowReplayIsMeasuredTwice(t *testing.T) {
	t.Parallel()
	holds := replayed{Holds: true, Speedup: 2, Interval: [2]float64{1.9, 2.1}}
	slow := replayed{Speedup: 1.5, Interval: [2]float64{1.4, 1.6}}
	broken := replayed{Fault: "wrong_result"}
	for _, c := range []struct {
		name     string
		attempts []replayed
		want     int // attempts taken
		holds    bool
	}{
		{"holds", []replayed{holds, slow}, 1, true},
		{"slow, then holds", []replayed{slow, holds, slow}, 2, true},
		{"slow twice", []replayed{slow, slow, holds}, 2, false},
		{"slow, then broken", []replayed{slow, broken, holds}, 2, false},
		{"broken", []replayed{broken, holds}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			taken := 0
			out, err := settle(func() (*replayed, error) {
				r := c.attempts[taken]
				taken++
				return &r, nil
			})
			if err != nil || taken != c.want || out.Holds != c.holds {
				t.Fatalf("%d attempts, holds %v, %v; want %d, %v", taken, out.Holds, err, c.want, c.holds)
			}
			if second := out.First != nil; second != (c.want == 2) || second && *out.First != slow.Interval {
				t.Errorf("the first interval is %v", out.First)
			}
		})
	}
	failed := errors.New("no card")
	if _, err := settle(func() (*replayed, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
