package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers/fleet"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/redistest"
)

type fleetMember = fleet.Member

func mustKeys(trials ...int64) []scheduler.TrialKey {
	var out []scheduler.TrialKey
	for _, x := range trials {
		out = append(out, scheduler.TrialKey{Campaign: "c1", Trial: x, Attempt: 1})
	}
	return out
}

// shown returns how a device is shown in the fleet.
func shown(t *testing.T, n *Node, device string) fleet.Device {
	t.Helper()
	members, _, err := n.Registry().List(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		for _, d := range m.Devices {
			if d.ID == device {
				return d
			}
		}
	}
	return fleet.Device{}
}

// TestQuarantine lets one of two devices fall ill in mid-campaign: it is quarantined and shown with its reason, its work is
// done by the other without an outcome being lost, and once it passes its probe it works again.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	h, ill := newScripted(), newScripted()
	var broken atomic.Bool
	fault := errors.New("driver: unknown error 999")
	ill.onStart = func(int64) {
		if broken.CompareAndSwap(false, true) {
			ill.infra.Store(&fault)
		}
	}
	n, book, d := fleetOf(t, Config{Redis: Embedded}, Options{}, nil)
	wcfg := workerConfig(t, h, 2, "gpu0")
	sick := deviceOf("gpu1", ill)
	sick.ProbeFunc = func(context.Context) error {
		if broken.Load() {
			return errors.New("probe kernel did not return")
		}
		return nil
	}
	wcfg.Devices = append(wcfg.Devices, sick)
	h.measureTime, ill.measureTime = 20*time.Millisecond, 20*time.Millisecond
	background(t, func(ctx ctxt) error { return n.Worker(ctx, wcfg) })
	dispatch(t, d, 13)
	waitFor(t, 30*time.Second, "quarantined", func() bool { return shown(t, n, "gpu1").State == fleet.StateQuarantined })
	if got := shown(t, n, "gpu1").Reason; !strings.Contains(got, "probe kernel did not return") {
		t.Errorf("reason %q; want the probe's", got)
	}
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 13 })
	ill.infra.Store(nil)
	broken.Store(true)
	ill.onStart = nil
	broken.Store(false)
	waitFor(t, 30*time.Second, "back", func() bool { return shown(t, n, "gpu1").State == fleet.StateWorking })
	before := ill.measured.Load()
	for i := range int64(20) {
		if err := d.Dispatch(t.Context(), testJob("c1", "s1", 100+i, 1, 100+i)); err != nil {
			t.Fatal(err)
		}
	}
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 33 })
	if ill.measured.Load() == before {
		t.Error("the device that came back measured nothing")
	}
}

// TestAvoid shows that an attempt goes to another device than the one it crashed on, and to the same when there is no other.
func TestAvoid(t *testing.T) {
	t.Parallel()
	n, book, d := fleetOf(t, Config{Redis: Embedded}, Options{}, newScripted(), "gpu0", "gpu1")
	waitFor(t, 30*time.Second, "both devices known", func() bool { c, err := d.Capacity(t.Context()); return err == nil && c == 2 })
	send := func(trial int64, avoid ...string) {
		j := testJob("c1", "s1", trial, 2, trial)
		j.Strikes, j.Avoid = 1, avoid
		if err := d.Dispatch(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(8) {
		send(i, "host1/gpu0")
	}
	send(50, "host1/gpu0", "host1/gpu1")
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 9 })
	for i := range int64(8) {
		if got := book.final[i].Device; got != "host1/gpu1" {
			t.Errorf("trial %d was measured on %s; it was to avoid host1/gpu0", i, got)
		}
	}
	_ = n
}

// TestInfraIsReported shows that an infrastructure fault that stays is told to the scheduler, not retried for ever.
func TestInfraIsReported(t *testing.T) {
	t.Parallel()
	h := newScripted()
	fault := errors.New("nvrtc library is gone")
	h.infra.Store(&fault)
	_, book, d := fleetOf(t, Config{Redis: Embedded}, Options{}, h, "gpu0")
	dispatch(t, d, 1)
	book.await(t, 30*time.Second, func(_, others int) bool { return others == 1 })
	o := book.others[0]
	if o.Final || o.Report.Fault != harness.FaultInfra || !strings.Contains(o.Report.Reason, "nvrtc library is gone") {
		t.Errorf("outcome %+v %v %q; want infra, not final, with the reason", o.Key, o.Report.Fault, o.Report.Reason)
	}
}

// TestDrain shows that a drained host finishes what it has, takes no more, and can be taken back.
func TestDrain(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	slow := newScripted()
	slow.measureTime = 1500 * time.Millisecond
	begun := make(chan struct{}, 9)
	slow.onStart = func(int64) { begun <- struct{}{} }
	n, book, d := fleetOf(t, testConfig(t, srv.URL), Options{Host: "host1"}, slow, "gpu0")
	dispatch(t, d, 2)
	<-begun
	if err := n.Registry().Drain(t.Context(), "host1", true); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 30*time.Second, "drained", func() bool { return shown(t, n, "gpu0").State == fleet.StateDraining })
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 1 })
	timer := time.NewTimer(2 * time.Second)
	<-timer.C
	if final, _ := book.count(); final != 1 {
		t.Errorf("%d outcomes; a drained host took more work", final)
	}
	n2 := startNode(t, testConfig(t, srv.URL), Options{Host: "host2"})
	other := workerConfig(t, newScripted(), 1, "gpu0")
	background(t, func(ctx ctxt) error { return n2.Worker(ctx, other) })
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 2 })
	if err := n.Registry().Drain(t.Context(), "host1", false); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 30*time.Second, "working again", func() bool {
		members, _, err := n.Registry().List(t.Context(), 0)
		return err == nil && slices.ContainsFunc(members, func(m fleet.Member) bool { return m.Host == "host1" && m.State == fleet.StateWorking })
	})
}

// TestDeviceTakesTurns shows that two measurements never hold one device at once, also when asynq gave the slot away.
func TestDeviceTakesTurns(t *testing.T) {
	t.Parallel()
	var inside, most atomic.Int64
	h := newScripted()
	h.measureTime = 5 * time.Millisecond
	h.onStart = func(int64) { most.Store(max(most.Load(), inside.Add(1))) }
	h.onMeasure = func(int64) { inside.Add(-1) }
	handler := gpu.New(deviceOf("gpu0", h), "host1", "host1/1")
	errs := make(chan error, 20)
	for i := range int64(20) {
		j := testJob("c1", "s1", i, 1, 5)
		go func() { // ends with its measurement; all are received below
			give, err := handler.Turn(t.Context())
			if err == nil {
				_, err = handler.Measure(t.Context(), "", j, &harness.Build{Key: "key-5"})
				give()
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d measurements held the device at once", most.Load())
	}
}
