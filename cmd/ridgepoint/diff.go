package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"ridgepoint/harness"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/report"
)

// diffCmd compares two records.
type diffCmd struct {
	First  string `arg:"" help:"Record: CAMPAIGN:SEQ (such as last:12), the beginning of a candidate's id, or a .json file with one record."`
	Second string `arg:"" help:"Record to compare with the first."`
	JSON   bool   `name:"json" help:"Print one JSON object."`
	dataFlag
}

// Run prints what differs. A second record that is slower somewhere ends with exit code 1.
func (c *diffCmd) Run(ctx context.Context, env environment) (err error) {
	var store *memory.Store
	defer func() {
		if store != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	var records [2]*harness.Record
	for i, name := range []string{c.First, c.Second} {
		if strings.HasSuffix(name, ".json") {
			if records[i], err = recordFile(name); err != nil {
				return &exitError{exitUsage, err}
			}
			continue
		}
		if store == nil {
			if store, err = c.read(ctx, env); err != nil {
				return err
			}
		}
		if records[i], err = store.Record(ctx, name); err != nil {
			return &exitError{exitUsage, err}
		}
	}
	d := report.Diff(records[0], records[1])
	if c.JSON {
		err = writeJSON(env.stdout, d)
	} else {
		err = c.print(env, d)
	}
	if err == nil && d.Regressed {
		err = &exitError{exitVerdict, fmt.Errorf("%s is slower than %s", c.Second, c.First)}
	}
	return err
}

func recordFile(name string) (*harness.Record, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := &harness.Record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: want one record, as a line of records.jsonl: %w", name, err)
	}
	return r, nil
}

func (c *diffCmd) print(env environment, d *report.Difference) error {
	w := tabwriter.NewWriter(env.stdout, 0, 0, 2, ' ', 0)
	for _, f := range d.Changed {
		fmt.Fprintf(w, "%s\t%s\t-> %s\n", f.Field, f.First, f.Second)
	}
	if len(d.Changed) == 0 {
		fmt.Fprintln(w, "same candidate, options and environment")
	}
	fmt.Fprintln(w)
	if len(d.Sizes) > 0 {
		fmt.Fprintln(w, "size\tfirst\tsecond\tratio\tnoise\t")
		for _, s := range d.Sizes {
			fmt.Fprintf(w, "%s\t%.2f µs\t%.2f µs\t%.3f\t± %.1f %%\t%s\n", s.Size, s.FirstUS, s.SecondUS, s.Ratio, 100*s.Noise, s.Verdict)
		}
		fmt.Fprintf(w, "geometric mean\t\t\t%.3f\n", d.GeoMean)
	}
	return w.Flush()
}
