package loop_test

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/harness/harnesstest"
	"ridgepoint/optimizer/replay"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/report"
)

// again returns a bundle in the same folder with another campaign of the same task and structures.
func (b *bundle) again(t *testing.T, id string, transfer scheduler.TransferSettings) *bundle {
	t.Helper()
	c := setup(t)
	c.dir, c.campaign.ID, c.campaign.Seed = b.dir, id, 7
	c.campaign.Settings.Optimizer, c.campaign.Settings.Transfer = "portfolio", transfer
	c.campaign.Settings.Budget.Evaluations = 24
	return c
}

// priorsOf returns the priors in a campaign's log, and the distances in ln(time) from the optimum of the first n configurations
// of "fast" that its optimizer suggested.
func (b *bundle) priorsOf(t *testing.T, n int) (priors []scheduler.Prior, slow []float64) {
	t.Helper()
	s, err := memory.OpenReader(t.Context(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // read only
	err = s.Events(t.Context(), b.campaign.ID, 0, func(e *scheduler.Event) error {
		switch e.Kind {
		case scheduler.EventPrior:
			var p scheduler.Prior
			if err := json.Unmarshal(e.Data, &p); err != nil {
				return err
			}
			priors = append(priors, p)
		case scheduler.EventPlanned:
			var tr scheduler.Trial
			if err := json.Unmarshal(e.Data, &tr); err != nil {
				return err
			}
			if tr.Asked && tr.Point.Structure == 2 && len(slow) < n {
				a, _ := tr.Point.Configuration["A"].AsInt()
				bb, _ := tr.Point.Configuration["B"].AsInt()
				slow = append(slow, math.Log((0.4+0.02*math.Abs(float64(a)-7)+0.03*math.Abs(float64(bb)-3))/0.4))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return priors, slow
}

func least(x []float64) float64 {
	out := math.Inf(1)
	for _, v := range x {
		out = min(out, v)
	}
	return out
}

// TestEarlierCampaignsGuideTheSearch runs a campaign, then others of the same structures in the same store.
func TestEarlierCampaignsGuideTheSearch(t *testing.T) {
	t.Parallel()
	first := setup(t)
	if _, err := first.run(t, nil); err != nil {
		t.Fatal(err)
	}
	off := first.again(t, "scripted-cpu-0002", scheduler.TransferSettings{})
	if _, err := off.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if p, _ := off.priorsOf(t, 1); len(p) != 0 {
		t.Errorf("transfer is off and the log has %d priors", len(p))
	}
	auto := first.again(t, "scripted-cpu-0003", scheduler.TransferSettings{Auto: true})
	auto.campaign.Task.Name = "renamed"
	if _, err := auto.run(t, nil); err != nil {
		t.Fatal(err)
	}
	priors, warm := auto.priorsOf(t, 3)
	if len(priors) != 2 || len(priors[1].Sources) != 1 || !priors[1].Sources[0].Used {
		t.Fatalf("priors %+v, want one used source for each of two structures", priors)
	}
	src := &priors[1].Sources[0]
	if m, _ := src.Measured(); len(src.Campaigns) != 2 || src.Campaigns[0] != first.campaign.ID || m < 20 {
		t.Errorf("source %s of campaigns %v with %d measured, want both earlier campaigns and 20 or more", src.Name, src.Campaigns, m)
	}
	_, cold := off.priorsOf(t, 3)
	if least(warm) > 0.08 || least(warm) >= least(cold) {
		t.Errorf("the first three suggestions come within ln %.3f of the optimum with a prior, %.3f without: it does not guide", least(warm), least(cold))
	}
	auto.reportSays(t, "used")
}

// reportSays looks for a word of the priors in the report's text and page.
func (b *bundle) reportSays(t *testing.T, word string) {
	t.Helper()
	s, err := memory.OpenReader(t.Context(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // read only
	r, err := report.Build(t.Context(), s, b.campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Priors) == 0 {
		t.Fatal("the report has no priors")
	}
	var text, page strings.Builder
	if err := errors.Join(r.Text(&text), r.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		if !strings.Contains(out, "Earlier measurements") || !strings.Contains(out, r.Priors[0].Source) || !strings.Contains(out, word) {
			t.Errorf("the report does not say what was used:\n%s", out)
		}
	}
}

// TestStoredPriorOutlivesItsSources stops a campaign with a prior, changes what it would find now, and goes on.
func TestStoredPriorOutlivesItsSources(t *testing.T) {
	t.Parallel()
	whole := setup(t)
	if _, err := whole.run(t, nil); err != nil {
		t.Fatal(err)
	}
	a := whole.again(t, "scripted-cpu-0002", scheduler.TransferSettings{Auto: true})
	if _, err := a.run(t, nil); err != nil {
		t.Fatal(err)
	}
	want := decisions(a.log(t))
	other := setup(t)
	if _, err := other.run(t, nil); err != nil {
		t.Fatal(err)
	}
	b := other.again(t, "scripted-cpu-0002", scheduler.TransferSettings{Auto: true})
	stop := func(e *scheduler.Event, _ any) bool { return e.Kind == scheduler.EventOutcome && e.Trial == 9 }
	if _, err := b.run(t, stop); !errors.Is(err, loop.ErrStopped) {
		t.Fatalf("got %v, want ErrStopped", err)
	}
	between := other.again(t, "scripted-cpu-0003", scheduler.TransferSettings{})
	if _, err := between.run(t, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	got := decisions(b.log(t))
	if len(got) != len(want) {
		t.Errorf("%d plans, outcomes and verdicts, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("entry %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
}

// TestRecordingGuidesTheSearch writes the landscape of "fast" as a recording and names it.
func TestRecordingGuidesTheSearch(t *testing.T) {
	t.Parallel()
	b := setup(t).again(t, "scripted-cpu-0001", scheduler.TransferSettings{Files: []string{"named by the bundle"}})
	path := filepath.Join(t.TempDir(), "fast.jsonl")
	space, err := loop.SpaceOf(harnesstest.Task(4), b.structures[1])
	if err != nil {
		t.Fatal(err)
	}
	w, err := replay.OpenWriter(path, replay.NewHeader(space, "fast elsewhere", "fast", "other"), space)
	if err != nil {
		t.Fatal(err)
	}
	pool := space.NewPool()
	for id := range pool.Len() {
		r := pool.Row(id)
		m := replay.Measurement{TimeMS: 4 + 0.2*math.Abs(float64(r[0])-6) + 0.3*math.Abs(float64(r[1])-3)}
		if id%9 == 0 {
			m = replay.Measurement{Fail: "launch"}
		}
		if err := w.Add(id, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := replay.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	b.records = []*replay.Record{r}
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	priors, warm := b.priorsOf(t, 3)
	if len(priors) != 1 || priors[0].Structure != 2 || priors[0].Sources[0].File != path {
		t.Fatalf("priors %+v, want the recording for structure 2 alone", priors)
	}
	if measured, failed := priors[0].Sources[0].Measured(); measured != 88 || failed != 12 {
		t.Errorf("%d measured and %d failed, want 88 and 12", measured, failed)
	}
	if least(warm) > 0.06 {
		t.Errorf("the first three suggestions come within ln %.3f of the optimum, want 0.06: the recording does not guide", least(warm))
	}
	b.reportSays(t, path)
}

// TestPriorIsNotReadByEveryStrategy names a strategy without a model of records: the log says so.
func TestPriorIsNotReadByEveryStrategy(t *testing.T) {
	t.Parallel()
	first := setup(t)
	if _, err := first.run(t, nil); err != nil {
		t.Fatal(err)
	}
	b := first.again(t, "scripted-cpu-0002", scheduler.TransferSettings{Auto: true})
	b.campaign.Settings.Optimizer = "local"
	if _, err := b.run(t, nil); err != nil {
		t.Fatal(err)
	}
	priors, _ := b.priorsOf(t, 1)
	if len(priors) != 2 || !strings.Contains(priors[0].Ignored, "local") || priors[0].Sources[0].Used {
		t.Fatalf("priors %+v, want two that are ignored", priors)
	}
	b.reportSays(t, "the optimizer local reads no earlier measurements")
}
