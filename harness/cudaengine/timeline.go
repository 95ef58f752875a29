package cudaengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// clearStep is what a timeline calls the clearing of scratch.
const clearStep = "clear workspace"

// Timeline runs the plan launches times, behind rewritten inputs and a flush each, with an event between its steps, and
// returns each step's median. Events between launches keep them from overlapping, so that the steps together take a little
// longer than a run.
func (b *Bench) Timeline(_ context.Context, set *verify.Set, launches int) ([]harness.Step, error) {
	names := b.steps()
	taken := make([][]time.Duration, len(names))
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		p, err := b.use(s, set)
		if err != nil {
			return err
		}
		b.judgedAt = nil
		for range launches {
			marks, _, err := b.engine.eventPairs(s, len(names)+1)
			if err != nil {
				return err
			}
			if err := errors.Join(b.rewrite(s, p, b.start), s.Record(b.engine.heat[1], b.engine.stream), b.sweepBehind(s, b.engine.heat[1], b.engine.heat[0]), b.stepwise(s, marks), s.Wait(b.engine.stream)); err != nil {
				return err
			}
			for i := range names {
				took, err := s.Elapsed(marks[i], marks[i+1])
				if err != nil {
					return err
				}
				taken[i] = append(taken[i], took)
			}
		}
		b.current = p
		return nil
	})
	if err != nil {
		return nil, b.wrap("time the plan's steps", err)
	}
	out := make([]harness.Step, len(names))
	for i, name := range names {
		slices.Sort(taken[i])
		out[i] = harness.Step{Name: name, MedianUS: float64(taken[i][len(taken[i])/2]) / float64(time.Microsecond)}
	}
	return out, nil
}

// steps names what one run of the plan queues.
func (b *Bench) steps() []string {
	var names []string
	for _, w := range b.layout.Plan.Workspace {
		if w.Init == "zero" {
			names = append(names, clearStep)
			break
		}
	}
	for _, l := range b.layout.Plan.Launches {
		names = append(names, l.Kernel)
	}
	return names
}

// stepwise queues the plan once with an event before, between and after its steps.
func (b *Bench) stepwise(s *device.Session, marks []device.Event) error {
	at := 0
	mark := func() error {
		at++
		return s.Record(marks[at-1], b.engine.stream)
	}
	if err := mark(); err != nil {
		return err
	}
	if len(marks) > len(b.all)+1 {
		if err := errors.Join(b.clear(s, b.buffers), mark()); err != nil {
			return err
		}
	}
	for i := range b.all {
		if err := errors.Join(s.Launch(b.engine.stream, b.all[i].function, &b.all[i].plan, b.all[i].args), mark()); err != nil {
			return err
		}
	}
	return nil
}
