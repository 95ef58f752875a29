package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"ridgepoint/workers/fleet"
	permits "ridgepoint/workers/limits"
	"ridgepoint/workers/queue"
)

// fleetCmd shows who is there.
type fleetCmd struct {
	All  bool `help:"Show also who has not been seen for an hour."`
	JSON bool `name:"json" help:"Print one JSON object."`
	redisFlags
}

// fleetView is what `fleet --json` prints.
type fleetView struct {
	Time    time.Time       `json:"time"` // Redis's clock
	Members []fleet.Member  `json:"members"`
	Queues  []queue.Depth   `json:"queues"`
	Limits  []permits.Usage `json:"limits"`
}

// Run prints the fleet.
func (c fleetCmd) Run(ctx context.Context, env environment) error {
	cfg, err := c.config(env)
	if err != nil {
		return err
	}
	if cfg.IsEmbedded() {
		return &exitError{exitUsage, errors.New("an embedded Redis has no fleet: name one with --redis or RIDGEPOINT_REDIS")}
	}
	client, err := queue.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	view, err := c.view(ctx, client)
	if err = errors.Join(err, client.Close()); err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(view)
	}
	return view.print(env.stdout)
}

func (c fleetCmd) view(ctx context.Context, client queue.Client) (*fleetView, error) {
	members, now, err := fleet.NewRegistry(client).List(ctx, 0)
	if err != nil {
		return nil, err
	}
	if !c.All {
		members = slices.DeleteFunc(members, func(m fleet.Member) bool { return m.AgeMS > time.Hour.Milliseconds() })
	}
	v := &fleetView{Time: now.UTC(), Members: members}
	if v.Queues, err = queue.Depths(ctx, client); err != nil {
		return nil, err
	}
	v.Limits, err = permits.Usages(ctx, client)
	return v, err
}

func (v *fleetView) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tPID\tKINDS\tSTATE\tDOING\tPER MIN\tDONE\tFAULTS\tSPOOL\tSEEN")
	for _, m := range v.Members {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%.0f\t%d\t%s\t%d\t%s\n", m.Host, m.PID, kindsOf(m), m.State, doing(m), m.PerMinute,
			m.Counts.Compiled+m.Counts.Measured, faultsText(m.Counts.Faults, m.Counts.Infra, m.Counts.Refused), m.Spool, ago(m.AgeMS))
		for _, d := range m.Devices {
			fmt.Fprintf(t, "  %s\t\t%s\t%s\t%s\t%.0f\t%d\t%s\t\tbusy %.0f%%\n", d.ID, d.Arch, d.State, deviceDoing(d, v.Time), d.PerMinute, d.Done,
				faultsText(d.Faults, 0, 0), 100*d.BusyShare)
			if d.Reason != "" {
				fmt.Fprintf(t, "    %s\n", d.Reason)
			}
		}
	}
	if len(v.Members) == 0 {
		fmt.Fprintln(t, "nobody: start workers with `ridgepoint worker --redis ...`")
	}
	if len(v.Queues) > 0 {
		fmt.Fprintln(t, "\nQUEUE\tWAITING\tACTIVE\tRETRY\tPARKED")
	}
	for _, q := range v.Queues {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", q.Queue, q.Pending, q.Active, q.Retry, q.Archived)
	}
	if len(v.Limits) > 0 {
		fmt.Fprintln(t, "\nLIMIT\tPERMITS\tHELD\tWAITING\tA SECOND\tBURST\tTOKENS")
	}
	for _, l := range v.Limits {
		most, rate, burst, tokens := "-", "-", "-", "-"
		if l.Permits > 0 {
			most = strconv.Itoa(l.Permits)
		}
		if l.Rate > 0 {
			rate, burst, tokens = fmt.Sprintf("%g", l.Rate), fmt.Sprintf("%g", l.Burst), fmt.Sprintf("%.1f", l.Tokens)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", l.Class, most, l.Holders, l.Waiting, rate, burst, tokens)
	}
	return t.Flush()
}

func kindsOf(m fleet.Member) string {
	text := strings.Join(m.Kinds, "+")
	if len(m.Targets) > 0 {
		text += " (" + strings.Join(m.Targets, ",") + ")"
	}
	return text
}

func doing(m fleet.Member) string {
	switch {
	case len(m.Campaigns) > 0:
		names := make([]string, len(m.Campaigns))
		for i, c := range m.Campaigns {
			names[i] = c.ID
		}
		return strings.Join(names, ",")
	case len(m.Tasks) == 0:
		return "idle"
	case len(m.Tasks) == 1:
		return m.Tasks[0]
	default:
		return fmt.Sprintf("%s and %d more", m.Tasks[0], len(m.Tasks)-1)
	}
}

func deviceDoing(d fleet.Device, now time.Time) string {
	if d.Task == "" {
		return "idle"
	}
	return fmt.Sprintf("%s for %s", d.Task, now.Sub(time.UnixMilli(d.SinceMS)).Round(100*time.Millisecond))
}

// faultsText lists what went wrong, most frequent first; measured candidates are no fault.
func faultsText(faults map[string]int64, infra, refused int64) string {
	var names []string
	for name := range faults {
		if name != "none" && faults[name] > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if faults[a] != faults[b] {
			return int(faults[b] - faults[a])
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, faults[name]))
	}
	if infra > 0 {
		parts = append(parts, fmt.Sprintf("infra %d", infra))
	}
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("refused %d", refused))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func ago(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < 2*time.Second {
		return "now"
	}
	return d.Round(time.Second).String() + " ago"
}
