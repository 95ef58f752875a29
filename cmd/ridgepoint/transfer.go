package main

import (
	"fmt"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/optimizer/replay"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
)

// recordsOf reads the recordings that a campaign's transfer setting names.
func recordsOf(t scheduler.TransferSettings) ([]*replay.Record, error) {
	out := make([]*replay.Record, 0, len(t.Files))
	names := map[string]string{}
	for _, f := range t.Files {
		r, err := replay.Load(f)
		if err != nil {
			return nil, fmt.Errorf("transfer: %w", err)
		}
		if other, clash := names[r.Name]; clash {
			return nil, fmt.Errorf("transfer: %s and %s are both called %q: rename one in its first line", other, f, r.Name)
		}
		names[r.Name] = f
		out = append(out, r)
	}
	return out, nil
}

// checkRecords refuses a recording that none of a campaign's structures can use. Where models write structures, one that can
// may still come.
func checkRecords(t scheduler.TransferSettings, structures []*harness.Structure, drafts bool) error {
	records, err := recordsOf(t)
	if err != nil || drafts {
		return err
	}
	for _, r := range records {
		fits := false
		var have []string
		for _, st := range structures {
			fits = fits || loop.SameParams(st, r)
			var params []string
			for _, p := range st.Params {
				params = append(params, p.Name)
			}
			have = append(have, fmt.Sprintf("%s %v", st.Name, params))
		}
		if !fits {
			return fmt.Errorf("transfer: %s records %v, which are no structure's parameters (%v): take it out, or name the structure that it was made from", r.Path, r.Space.Names(), have)
		}
	}
	return nil
}

// records returns the recordings for a campaign that begins or goes on. What its structures took is in the store by then, so
// that a file which has gone since only keeps structures still to come from it.
func (s *session) records(log zerolog.Logger) ([]*replay.Record, error) {
	records, err := recordsOf(s.campaign.Settings.Transfer)
	if err != nil && s.structures == nil {
		log.Warn().Err(err).Msg("recording not read, structures still to come do without it")
		return nil, nil
	}
	return records, err
}
