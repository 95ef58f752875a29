package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"ridgepoint/workers"
	"ridgepoint/workers/limits"
)

// TestRatesHoldAcrossTheFleet runs jobs over two workers whose classes have rates: neither compiles nor measurements begin more
// often, whoever does them, and what the fleet is told shows them.
func TestRatesHoldAcrossTheFleet(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		rates := map[string]limits.Rate{ClassCompile: {PerSecond: 30, Burst: 4}, ClassGPU: {PerSecond: 15, Burst: 2}}
		var mu sync.Mutex
		begun := map[string][]time.Time{}
		mark := func(class string) {
			mu.Lock()
			defer mu.Unlock()
			begun[class] = append(begun[class], time.Now())
		}
		h := newScripted()
		h.onStart = func(int64) { mark(ClassGPU) }
		h.onCompile = func(int64) { mark(ClassCompile) }
		n, book, d := fleetOf(t, cfg, Options{Rates: rates}, h, "gpu0", "gpu1")
		if cfg.Redis != Embedded { // an embedded carrier is alone in its process
			second := startNode(t, cfg, Options{Host: "host2"})
			wcfg := workerConfig(t, h, 2, "gpu0", "gpu1")
			background(t, func(ctx context.Context) error { return second.Worker(ctx, wcfg) })
		}
		const trials = 12
		started := time.Now()
		dispatch(t, d, trials)
		book.await(t, 60*time.Second, func(final, _ int) bool { return final == trials })
		mu.Lock()
		defer mu.Unlock()
		for class, at := range begun {
			slices.SortFunc(at, time.Time.Compare)
			r := rates[class]
			for i, when := range at { // a late start proves nothing, an early one does
				if most := r.Burst + r.PerSecond*when.Sub(started).Seconds() + 1; float64(i+1) > most {
					t.Errorf("%s: %d had begun after %v; want at most %.1f", class, i+1, when.Sub(started), most)
				}
			}
		}
		if len(begun[ClassGPU]) != trials || len(begun[ClassCompile]) != trials {
			t.Errorf("%d compiles and %d measurements; want %d of each", len(begun[ClassCompile]), len(begun[ClassGPU]), trials)
		}
		if err := n.gauges(t.Context()); err != nil {
			t.Fatal(err)
		}
		families, err := n.metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, label := range m.GetLabel() {
					if label.GetValue() == ClassGPU && m.GetGauge() != nil {
						shown[f.GetName()] = m.GetGauge().GetValue()
					}
				}
			}
		}
		if shown["ridgepoint_limit_rate"] != 15 || shown["ridgepoint_limit_tokens"] > 2 {
			t.Errorf("metrics show %v; want a rate of 15 and at most 2 tokens", shown)
		}
	})
}

// TestStoppedWhileItWaits shows that a step which waits for a token, or for a permit, when its worker ends goes back as it came: no
// try is burned, no fault counted, and another worker does it.
func TestStoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	slow := limits.Rate{PerSecond: 0.001, Burst: 1}
	for what, c := range map[string]struct {
		opt     Options
		waiting func(limits.Usage) bool
	}{
		"token":  {Options{Rates: map[string]limits.Rate{ClassGPU: slow}}, func(u limits.Usage) bool { return u.Tokens < -0.5 }},
		"permit": {Options{Limits: map[string]int{ClassGPU: 1}}, func(u limits.Usage) bool { return u.Waiting == 1 }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			carriers(t, func(t *testing.T, cfg Config) {
				n, book, d := fleetOf(t, cfg, c.opt, nil)
				gate := limits.NewGate(n.Client(), "somebody else")
				background(t, gate.Run)
				_, held, err := gate.Begin(t.Context(), ClassGPU, "") // the only permit, or the only token
				if err != nil {
					t.Fatal(err)
				}
				first := workerConfig(t, newScripted(), 1, "gpu0")
				first.Grace = 100 * time.Millisecond
				stop := background(t, func(ctx context.Context) error { return n.Worker(ctx, first) })
				dispatch(t, d, 1)
				waitFor(t, 30*time.Second, "waiting for its "+what, func() bool {
					usages, err := limits.Usages(t.Context(), n.Client())
					return err == nil && len(usages) == 1 && c.waiting(usages[0])
				})
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				info, err := n.inspector().GetTaskInfo("gpu:sm_90", workers.TaskID(mustKeys(0)[0], workers.KindGPU))
				if err != nil {
					t.Fatal(err)
				}
				if info.Retried != 0 || n.infra.Load() != 0 {
					t.Errorf("the step that waited burned %d tries and is %d infrastructure faults; want none", info.Retried, n.infra.Load())
				}
				if err := errors.Join(held.Finish(t.Context(), 0), limits.SetRates(t.Context(), n.Client(), map[string]limits.Rate{ClassGPU: {}})); err != nil {
					t.Fatal(err)
				}
				second := workerConfig(t, newScripted(), 1, "gpu1")
				background(t, func(ctx context.Context) error { return n.Worker(ctx, second) })
				book.await(t, 30*time.Second, func(final, _ int) bool { return final == 1 })
			})
		})
	}
}
