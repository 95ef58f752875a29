package main

import (
	"context"
	"errors"
	"fmt"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/report"
)

// notFound gives the error of a campaign or record that the store does not hold its exit code.
func notFound(err error) error {
	if errors.Is(err, memory.ErrNotFound) {
		return &exitError{exitUsage, err}
	}
	return err
}

// winning is a campaign's winner, made again from the store.
type winning struct {
	campaign  *scheduler.Campaign
	report    *report.Report
	candidate *harness.Candidate
	record    *harness.Record // of the confirmation
}

// winnerOf finds a campaign's winner.
func winnerOf(ctx context.Context, store *memory.Store, id string) (*winning, error) {
	row, err := store.Campaign(ctx, id)
	if err != nil {
		return nil, notFound(err)
	}
	c := &row.Campaign
	r, err := report.Build(ctx, store, c.ID)
	if err != nil {
		return nil, err
	}
	if r.Result.Winner == nil {
		return nil, &exitError{exitVerdict, fmt.Errorf("campaign %s has no winner: nothing was confirmed to be faster than the baseline", c.ID)}
	}
	w := &winning{campaign: c, report: r}
	structures, err := store.Structures(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	err = store.Records(ctx, c.ID, 0, func(rec *harness.Record) error {
		if rec.CandidateID == r.Result.Winner.Candidate && rec.Purpose == string(scheduler.PurposeConfirm) {
			w.record = rec
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if w.record == nil {
		return nil, fmt.Errorf("campaign %s: the confirmation of its winner is not in the store: restore a copy", c.ID)
	}
	c.Baseline.Structure.Shipped = isShipped(c.Baseline.Structure.Digest)
	for _, st := range structures {
		if st.Digest == w.record.StructureSHA {
			st.Shipped = isShipped(st.Digest)
			w.candidate = &harness.Candidate{Structure: st, Configuration: w.record.Config, Target: c.Target, Options: w.record.Options}
		}
	}
	if w.candidate == nil || w.candidate.ID() != r.Result.Winner.Candidate {
		return nil, fmt.Errorf("campaign %s: its winner %s cannot be made from the store again: the store is damaged, or of another version", c.ID, report.Short(r.Result.Winner.Candidate))
	}
	return w, nil
}
