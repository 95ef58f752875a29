package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
)

const campaign = "softmax-cpu-00000001"

// setup makes a store with one campaign.
func setup(t *testing.T) (*memory.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s := reopen(t, dir)
	c := scheduler.Campaign{Version: scheduler.CampaignVersion, ID: campaign, Task: &harness.Task{Name: "softmax"}, Target: harness.TargetCPU,
		Baseline: candidate(0), Seed: 7, Created: time.UnixMilli(1000).UTC()}
	if err := s.Apply(t.Context(), &memory.Batch{Campaigns: []scheduler.Campaign{c}}); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func reopen(t *testing.T, dir string) *memory.Store {
	t.Helper()
	s, err := memory.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func candidate(n int64) *harness.Candidate {
	return &harness.Candidate{Structure: &harness.Structure{Name: "s", Digest: "d", Target: harness.TargetCPU}, Target: harness.TargetCPU,
		Configuration: harness.Configuration{"N": expr.Int(n)}}
}

// trialBatch plans and finishes trial n.
func trialBatch(n int64) *memory.Batch {
	key := scheduler.TrialKey{Campaign: campaign, Trial: n, Attempt: 1}
	report := harness.Report{Version: 1, Target: harness.TargetCPU, Fault: harness.FaultNone, Sizes: []harness.SizeTime{{SamplesUS: []float64{float64(n), 2}}}}
	id := candidate(n).ID()
	return &memory.Batch{
		Trials:   []memory.TrialRow{{Key: key, Purpose: scheduler.PurposeSearch, Structure: 1, Candidate: id, At: time.UnixMilli(n)}},
		Outcomes: []memory.OutcomeRow{{Outcome: &scheduler.Outcome{Key: key, Final: true, Report: report, Worker: "w"}, Received: time.UnixMilli(n)}},
		Records:  []harness.Record{{Version: harness.RecordVersion, Seq: n, Campaign: campaign, Trial: n, Attempt: 1, CandidateID: id}},
		Events:   []scheduler.Event{{Campaign: campaign, Seq: n, Kind: scheduler.EventNote, Trial: n, Time: time.UnixMilli(n).UTC(), Data: json.RawMessage(`{"text":"x"}`)}},
	}
}

func TestStoreKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	id := s.SchedulerID()
	for n := int64(1); n <= 3; n++ {
		if err := s.Apply(t.Context(), trialBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, dir)
	if s.SchedulerID() != id || id == "" {
		t.Errorf("scheduler id %q after reopening, %q before", s.SchedulerID(), id)
	}
	var seqs []int64
	if err := s.Events(t.Context(), campaign, 1, func(e *scheduler.Event) error { seqs = append(seqs, e.Seq); return nil }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(seqs) != "[2 3]" {
		t.Errorf("events after 1: %v, want [2 3]", seqs)
	}
	r, err := s.Record(t.Context(), "softmax:3")
	if err != nil {
		t.Fatal(err)
	}
	if r.Trial != 3 || len(r.Report.Sizes) != 1 || r.Report.Sizes[0].SamplesUS[0] != 3 {
		t.Errorf("record 3 came back as %+v", r)
	}
	if r, err = s.Record(t.Context(), candidate(2).ID()[:10]); err != nil || r.Trial != 2 {
		t.Errorf("record by candidate: %+v, %v; want trial 2", r, err)
	}
	if _, err := s.Record(t.Context(), "last:99"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("record 99: %v, want ErrNotFound", err)
	}
}

func TestFirstFinalOutcomeWins(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	if err := s.Apply(t.Context(), trialBatch(1)); err != nil {
		t.Fatal(err)
	}
	late := trialBatch(1).Outcomes[0].Outcome
	late.Key.Attempt, late.Worker = 2, "late"
	if err := s.SaveOutcome(t.Context(), late); err != nil {
		t.Fatalf("a late duplicate must be acknowledged: %v", err)
	}
	got, err := s.Outcomes(t.Context(), campaign, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Worker != "w" {
		t.Errorf("outcomes of trial 1: %+v, want the first alone", got)
	}
	unknown := *late
	unknown.Key.Trial = 9
	if err := s.SaveOutcome(t.Context(), &unknown); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("outcome of a trial that was never planned: %v, want ErrNotFound", err)
	}
}

func TestOneSchedulerPerStore(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	if _, err := memory.Open(t.Context(), dir); !errors.Is(err, memory.ErrLocked) {
		t.Fatalf("second scheduler: %v, want ErrLocked", err)
	}
	r, err := memory.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatalf("a reader beside a scheduler: %v", err)
	}
	rows, err := r.Campaigns(t.Context())
	if err != nil || len(rows) != 1 || rows[0].State != scheduler.StateRunning {
		t.Errorf("campaigns: %+v, %v", rows, err)
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	reopen(t, dir)
}

func TestJournalIsRepairedFromTheStore(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for n := int64(1); n <= 4; n++ {
		if err := s.Apply(t.Context(), trialBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.SyncJournal(t.Context(), campaign); err != nil || n != 4 {
		t.Fatalf("first sync appended %d, %v; want 4", n, err)
	}
	path := s.JournalPath(campaign)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 2, 40, len(whole) / 2, len(whole) - 1, len(whole)} {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SyncJournal(t.Context(), campaign); err != nil {
			t.Fatalf("cut by %d: %v", cut, err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, whole) {
			t.Errorf("cut by %d bytes: the journal was not refilled as it was", cut)
		}
	}
	if err := os.WriteFile(path, append(bytes.Clone(whole), []byte("{\"seq\":\x00\x00garbage")...), 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := s.SyncJournal(t.Context(), campaign); err != nil || n != 0 {
		t.Errorf("torn tail: appended %d, %v; want 0", n, err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, whole) {
		t.Error("a torn tail was not cut")
	}
}

func TestDamagedStoreIsRefused(t *testing.T) {
	t.Parallel()
	s, dir := setup(t)
	for n := int64(1); n <= 50; n++ {
		if err := s.Apply(t.Context(), trialBatch(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ridgepoint.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8192; i < len(b); i += 97 {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := memory.Open(context.Background(), dir); err == nil {
		_ = s.Close()
		t.Fatal("a damaged file was opened without a word")
	}
}

func TestConcurrentBatchesShareCommits(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	var wg sync.WaitGroup
	errs := make([]error, 40)
	for i := range errs {
		wg.Go(func() { errs[i] = s.Apply(t.Context(), trialBatch(int64(i+1))) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := s.Records(t.Context(), campaign, 0, func(*harness.Record) error { n++; return nil }); err != nil || n != len(errs) {
		t.Errorf("%d records, %v; want %d", n, err, len(errs))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), trialBatch(99)); !errors.Is(err, memory.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}
