package queue

import (
	"testing"
	"time"

	"ridgepoint/harness"
)

func campaignOf(id string) Campaign {
	return Campaign{ID: id, Target: harness.TargetCUDA, Arch: "sm_90"}
}

// TestEmbedded takes trials through both hops and back within one process.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	n := startNode(t, Config{Redis: Embedded}, Options{})
	book := newLedger()
	h := newScripted()
	background(t, func(ctx ctxt) error { return n.Scheduler(ctx, "sched1", book.deliver) })
	cfg := workerConfig(t, h, 2, "gpu0", "gpu1")
	background(t, func(ctx ctxt) error { return n.Worker(ctx, cfg) })
	d := n.Dispatcher(campaignOf("c1"))
	const trials = 60
	for i := range int64(trials) {
		if err := d.Dispatch(t.Context(), testJob("c1", "sched1", i, 1, i)); err != nil {
			t.Fatal(err)
		}
	}
	book.await(t, 20*time.Second, func(final, others int) bool { return final == trials-1 && others == 1 })
	book.mu.Lock()
	defer book.mu.Unlock()
	for i := range int64(trials) {
		o, ok := book.final[i]
		switch {
		case i == 17:
			if ok || book.others[0].Key.Trial != 17 || book.others[0].Final {
				t.Errorf("a first crash is not final: got %v, %+v", ok, book.others[0].Key)
			}
		case i == 13:
			if o.Report.Fault != harness.FaultCompile {
				t.Errorf("trial 13: fault %v; want compile", o.Report.Fault)
			}
		case o.Report.Fault != harness.FaultNone || o.Report.Sizes[0].MedianUS != truth(i):
			t.Errorf("trial %d: %v %v; want none and %v", i, o.Report.Fault, o.Report.Sizes, truth(i))
		}
	}
	if got := h.measured.Load(); got != trials-1 {
		t.Errorf("%d measurements; want %d", got, trials-1)
	}
	asynqs, own := n.Messages()
	t.Logf("embedded: %d trials, %d asynq messages, %d own", trials, asynqs, own)
}
