package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ridgepoint/harness/reference"
	"ridgepoint/scheduler/export"
)

// exportCmd writes a campaign's winner as files that stand on their own.
type exportCmd struct {
	Campaign string `arg:"" optional:"" default:"last" help:"Campaign id, its beginning, or last."`
	Out      string `short:"o" placeholder:"DIR" help:"Folder to write (default: CAMPAIGN-winner)."`
	JSON     bool   `name:"json" help:"Print one JSON object with the files' names."`
	dataFlag
}

// exported is what the command prints.
type exported struct {
	Campaign string   `json:"campaign"`
	Folder   string   `json:"folder"`
	Files    []string `json:"files"`
	Driver   bool     `json:"driver"`
}

// Run writes the files.
func (c *exportCmd) Run(ctx context.Context, env environment) (err error) {
	store, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	w, err := winnerOf(ctx, store, c.Campaign)
	if err != nil {
		return err
	}
	e := &export.Winner{Campaign: w.campaign, Candidate: w.candidate, Result: w.report.Result.Winner}
	if b := w.record.Report.Build; b != nil {
		e.Command = b.Command
	}
	files, err := export.Files(ctx, e, reference.NewOracle(nil).Expected)
	if err != nil {
		return err
	}
	out := exported{Campaign: w.campaign.ID, Folder: c.Out, Driver: export.Driver(w.candidate) == nil}
	if out.Folder == "" {
		out.Folder = w.campaign.ID + "-winner"
	}
	for _, f := range files {
		path := filepath.Join(out.Folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return &exitError{exitUsage, fmt.Errorf("--out: %w", err)}
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return &exitError{exitUsage, fmt.Errorf("--out: %w", err)}
		}
		out.Files = append(out.Files, f.Name)
	}
	if c.JSON {
		return writeJSON(env.stdout, out)
	}
	note := "the command that builds and runs its driver is at the top of driver" + filepath.Ext(files[0].Name)
	if err := export.Driver(w.candidate); err != nil {
		note = err.Error()
	}
	_, err = fmt.Fprintf(env.stdout, "%s: %d files; %s\n", out.Folder, len(files), note)
	return err
}
