package cc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/toolchain/confined"
)

// Compile compiles the candidate. It returns the build (without Artifact and SizeBytes, which the cache fills) and the shared
// object, or a Refusal; an error means that compiling itself is broken here.
func (c *Compiler) Compile(ctx context.Context, candidate *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-cc-")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder: what stays is the system's to clean
	if err := os.WriteFile(filepath.Join(dir, sourceName), []byte(candidate.Structure.Source), 0o644); err != nil {
		return nil, nil, nil, fmt.Errorf("write the source: %w", err)
	}
	start := time.Now()
	args := c.arguments(candidate, candidate.Options.IncludeDirs)
	log, limit, err := confined.Run(ctx, confined.Command{Name: "the C compiler", Path: c.path, Args: args, Dir: dir, ReadOnly: candidate.Options.IncludeDirs,
		Level: c.config.Level, Timeout: c.config.Timeout, MemoryBytes: c.config.MemoryBytes})
	if err != nil {
		return nil, nil, nil, err
	}
	diagnostics := parse(log.Text, candidate.Structure.Source)
	if limit != "" {
		return nil, nil, &toolchain.Refusal{Reason: limit, Diagnostics: diagnostics, Limit: true}, nil
	}
	object, err := os.ReadFile(filepath.Join(dir, objectName))
	if errors.Is(err, fs.ErrNotExist) || log.Failed {
		return nil, nil, refusal(diagnostics, log.Text), nil
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read the compiled object: %w", err)
	}
	return &harness.Build{
		Key: c.Key(candidate), Toolchain: c.Version(), Command: append([]string{filepath.Base(c.path)}, c.arguments(candidate, nil)...),
		Diagnostics: diagnostics, TookSeconds: time.Since(start).Seconds(),
	}, object, nil, nil
}
