package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ridgepoint/llm"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/proposer"
)

// ctlCmd steers a campaign while it runs.
type ctlCmd struct {
	Campaign  string        `arg:"" help:"Campaign id, its beginning, or last."`
	Action    string        `arg:"" enum:"pause,go,stop,inject,pin,drop,revive,budget" help:"pause, go, stop, inject FILE, pin STRUCTURE, drop STRUCTURE, revive DIRECTION, budget."`
	Name      string        `arg:"" optional:"" help:"The file, structure or direction."`
	Tokens    int64         `help:"budget: tokens that the models may use in all."`
	USD       float64       `name:"usd" help:"budget: dollars that the models may cost in all."`
	Wall      time.Duration `help:"budget: wall time of the whole campaign."`
	Evals     int64         `name:"evaluations" help:"budget: evaluations of the whole campaign."`
	WaitLimit time.Duration `name:"wait" default:"5s" help:"How long to wait until the campaign has taken it in."`
	dataFlag
}

// Run leaves the word and waits until it is taken in.
func (c *ctlCmd) Run(ctx context.Context, env environment) error {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	v, err := viewOf(ctx, store, c.Campaign)
	if err == nil && v.row.State == scheduler.StateDone {
		err = fmt.Errorf("campaign %s is done; there is nothing to steer", v.Campaign.ID)
	}
	var control *scheduler.Control
	if err == nil {
		control, err = c.word(v)
	}
	if err != nil {
		return errors.Join(&exitError{exitUsage, err}, store.Close())
	}
	path, err := mailbox{store.Dir(), v.Campaign.ID}.put(control, time.Now())
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	for end := time.Now().Add(c.WaitLimit); time.Now().Before(end); {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			_, err := fmt.Fprintf(env.stdout, "%s: %s taken in\n", v.Campaign.ID, c.Action)
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	_, err = fmt.Fprintf(env.stdout, "%s: %s is left; no process works on the campaign now, it counts from the next resume on\n", v.Campaign.ID, c.Action)
	return err
}

// word checks what is said against the campaign.
func (c *ctlCmd) word(v *campaignView) (*scheduler.Control, error) {
	out := &scheduler.Control{Action: scheduler.ControlAction(c.Action), Name: c.Name, By: "ctl"}
	needs := map[scheduler.ControlAction]string{scheduler.ControlInject: "a structure file", scheduler.ControlPin: "a structure", scheduler.ControlDrop: "a structure", scheduler.ControlRevive: "a direction"}[out.Action]
	if needs != "" && c.Name == "" {
		return nil, fmt.Errorf("%s: name %s", c.Action, needs)
	}
	switch out.Action {
	case scheduler.ControlInject:
		text, err := os.ReadFile(c.Name)
		if err != nil {
			return nil, fmt.Errorf("inject: %w", err)
		}
		if complaints := proposer.Check(v.Campaign.Task, v.Campaign.Target, string(text)); len(complaints) > 0 {
			return nil, fmt.Errorf("inject %s: %s", c.Name, complaints[0])
		}
		out.Name, out.Source = strings.TrimSuffix(filepath.Base(c.Name), filepath.Ext(c.Name)), string(text)
	case scheduler.ControlPin, scheduler.ControlDrop:
		var names []string
		for i := range v.State.Structures {
			if v.State.Structures[i].Name == c.Name {
				return out, nil
			}
			names = append(names, v.State.Structures[i].Name)
		}
		return nil, fmt.Errorf("%s: no structure %q; there are %s", c.Action, c.Name, strings.Join(names, ", "))
	case scheduler.ControlRevive:
		var names []string
		for name := range v.State.Directions {
			if name == c.Name {
				return out, nil
			}
			names = append(names, name)
		}
		return nil, fmt.Errorf("revive: no direction %q; there are %s", c.Name, strings.Join(names, ", "))
	case scheduler.ControlBudget:
		if c.Tokens == 0 && c.USD == 0 && c.Wall == 0 && c.Evals == 0 {
			return nil, fmt.Errorf("budget: say --tokens, --usd, --wall or --evaluations")
		}
		if c.Tokens != 0 || c.USD != 0 {
			b := llm.Budget{}
			if s := v.Campaign.Settings.LLM; s != nil {
				b = s.Pool.Budget
			}
			if v.State.Drafts.Budget != nil {
				b = *v.State.Drafts.Budget
			}
			if c.Tokens != 0 {
				b.Tokens = c.Tokens
			}
			if c.USD != 0 {
				b.USD = c.USD
			}
			if err := b.Validate(); err != nil {
				return nil, err
			}
			out.Budget = &b
		}
		if c.Wall < 0 || c.Evals < 0 {
			return nil, fmt.Errorf("budget: --wall and --evaluations are positive")
		}
		out.WallSeconds, out.Evaluations = c.Wall.Seconds(), c.Evals
	}
	return out, nil
}
