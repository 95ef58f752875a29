package report

import (
	"context"
	"fmt"
	"sort"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/crown"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/reward"
)

// Rescored is a candidate with its place under two rewards.
type Rescored struct {
	Rank          int                   `json:"rank"`
	OldRank       int                   `json:"old_rank"`
	Score         float64               `json:"score"`
	OldScore      float64               `json:"old_score"`
	Speedup       float64               `json:"speedup"` // geometric mean against the A/A run's baseline
	Candidate     string                `json:"candidate"`
	Structure     string                `json:"structure"`
	Configuration harness.Configuration `json:"configuration"`
	Trial         int64                 `json:"trial"`
}

// Rescore ranks a campaign's wholly measured suggestions under another reward, best first. best is per size the best
// confirmed time of the whole campaign; fails is what the direction had failed when the candidate came.
func Rescore(ctx context.Context, store *memory.Store, id string, spec harness.Reward) ([]Rescored, error) {
	r, err := reward.New(spec)
	if err != nil {
		return nil, err
	}
	row, err := store.Campaign(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &row.Campaign
	s := decide.New(c)
	var out []Rescored
	var inputs []reward.Input
	err = store.Events(ctx, c.ID, 0, func(e *scheduler.Event) error {
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		if o, ok := data.(*scheduler.Summary); ok {
			if f := s.Flying[e.Trial]; f.Trial.Purpose == scheduler.PurposeSearch && o.Score != nil && !o.Quarantined {
				st := s.Structure(f.Trial.Point.Structure)
				inputs = append(inputs, reward.Input{TimesUS: o.TimesUS, BaselineUS: s.BaselineUS, Fails: s.Directions[st.Direction].Fails})
				out = append(out, Rescored{OldScore: *o.Score, Speedup: crown.GeoMeanSpeedup(s.BaselineUS, o.TimesUS), Candidate: f.Trial.Point.ID, Structure: st.Name,
					Configuration: f.Trial.Point.Configuration, Trial: e.Trial})
			}
		}
		return s.Apply(e, data)
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		inputs[i].BestUS = s.BestUS
		score, err := r.Score(inputs[i])
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", out[i].Trial, err)
		}
		out[i].Score = score.Value
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].OldScore > out[j].OldScore })
	for i := range out {
		out[i].OldRank = i + 1
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Score > out[j].Score })
	for i := range out {
		out[i].Rank = i + 1
	}
	return out, nil
}
