package loop

import (
	"context"
	"time"

	"ridgepoint/scheduler"
)

// reconcileEvery is how often a dispatcher that can tell is asked which attempts it still carries, and confirmAfter how soon
// an attempt that it does not know is asked for again before it is submitted anew.
const (
	reconcileEvery = 10 * time.Second
	confirmAfter   = 2 * time.Second
)

// reconcile submits anew what the carrier lost: attempts that it did not know twice, some time apart.
func (l *Loop) reconcile(ctx context.Context, now time.Time) error {
	tracker, ok := l.cfg.Dispatcher.(scheduler.Tracker)
	if !ok || len(l.flights) == 0 {
		return nil
	}
	suspects := false
	var keys []scheduler.TrialKey
	for _, n := range l.state.FlyingTrials() {
		if f := l.flights[n]; f != nil {
			keys = append(keys, scheduler.TrialKey{Campaign: l.campaign.ID, Trial: n, Attempt: f.attempt})
			suspects = suspects || f.missing
		}
	}
	since := now.Sub(l.reconciled)
	if since < confirmAfter || !suspects && since < reconcileEvery {
		return nil
	}
	l.reconciled = now
	gone, err := tracker.Missing(ctx, keys)
	if err != nil {
		l.cfg.Log.Debug().Err(err).Msg("carrier cannot tell what it carries")
		return nil
	}
	lost := map[int64]bool{}
	for _, k := range gone {
		lost[k.Trial] = true
	}
	for _, k := range keys {
		f := l.flights[k.Trial]
		switch {
		case !lost[k.Trial]:
			f.missing = false
		case !f.missing:
			f.missing = true
		default:
			l.cfg.Log.Warn().Int64("trial", k.Trial).Int("attempt", k.Attempt).Msg("lost by the carrier, submitted again")
			if err := l.again(k.Trial); err != nil {
				return err
			}
		}
	}
	return nil
}
