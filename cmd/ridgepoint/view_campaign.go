package main

import (
	"context"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/memory"
)

// campaignView is a stored campaign as its log tells it.
type campaignView struct {
	Campaign   *scheduler.Campaign
	row        *memory.CampaignRow
	State      *decide.State
	Structures []*harness.Structure
}

// viewOf folds a campaign's log. see, if given, gets every event with its data after the state has taken it in.
func viewOf(ctx context.Context, store *memory.Store, id string, see ...func(e *scheduler.Event, data any, s *decide.State)) (*campaignView, error) {
	row, err := store.Campaign(ctx, id)
	if err != nil {
		return nil, err
	}
	v := &campaignView{Campaign: &row.Campaign, row: row, State: decide.New(&row.Campaign)}
	if v.Structures, err = store.Structures(ctx, v.Campaign.ID); err != nil {
		return nil, err
	}
	err = store.Events(ctx, v.Campaign.ID, 0, func(e *scheduler.Event) error {
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		if err := v.State.Apply(e, data); err != nil {
			return err
		}
		for _, f := range see {
			f(e, data, v.State)
		}
		return nil
	})
	return v, err
}
