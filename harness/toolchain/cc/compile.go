package cc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain"
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
	log, limit, err := c.run(ctx, dir, candidate.Options.IncludeDirs, args)
	if err != nil {
		return nil, nil, nil, err
	}
	diagnostics := parse(log.text, candidate.Structure.Source)
	if limit != "" {
		return nil, nil, &toolchain.Refusal{Reason: limit, Diagnostics: diagnostics, Limit: true}, nil
	}
	object, err := os.ReadFile(filepath.Join(dir, objectName))
	if errors.Is(err, fs.ErrNotExist) || log.failed {
		return nil, nil, refusal(diagnostics, log.text), nil
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read the compiled object: %w", err)
	}
	return &harness.Build{
		Key: c.Key(candidate), Toolchain: c.Version(), Command: append([]string{filepath.Base(c.path)}, c.arguments(candidate, nil)...),
		Diagnostics: diagnostics, TookSeconds: time.Since(start).Seconds(),
	}, object, nil, nil
}

// output is what the compiler said.
type output struct {
	text   string
	failed bool
}

// maxOutputBytes bounds what is kept of the compiler's messages; ten times it ends the compiler.
const maxOutputBytes = 256 << 10

// run runs the compiler in the build folder. limit is non-empty when it ran past one.
func (c *Compiler) run(ctx context.Context, dir string, includeDirs, args []string) (out output, limit string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	policy := sandbox.Policy{Name: "compile", WorkDir: dir, Writable: true, ReadOnly: includeDirs, Limits: sandbox.Limits{
		MemoryBytes: c.config.MemoryBytes, CPUSeconds: uint64(c.config.Timeout/time.Second) + 1, FileBytes: maxArtifactBytes, Processes: 64, OpenFiles: 256, ScratchBytes: 4 * maxArtifactBytes,
	}}
	env := []string{"PATH=/usr/bin:/bin:/usr/local/bin", "LC_ALL=C", "TMPDIR=/tmp", "SOURCE_DATE_EPOCH=0"}
	cmd, err := sandbox.Command(policy, c.config.Level, env, c.path, args...)
	if err != nil {
		return output{}, "", err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // gone already: nothing to end
	var flooded atomic.Bool
	sink := &boundedWriter{limit: maxOutputBytes, flood: func() { flooded.Store(true); kill() }}
	cmd.Stdout, cmd.Stderr = sink, sink
	if err := cmd.Start(); err != nil {
		return output{}, "", fmt.Errorf("start the C compiler: %w", err)
	}
	stop := context.AfterFunc(ctx, kill)
	err = cmd.Wait()
	stop()
	kill() // a reduced sandbox may leave descendants
	out = output{text: strings.ReplaceAll(string(sink.kept), dir+"/", ""), failed: err != nil}
	var exit *exec.ExitError
	switch {
	case flooded.Load():
		return out, fmt.Sprintf("the compiler wrote more than %d KiB of messages", 10*maxOutputBytes>>10), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return out, fmt.Sprintf("the compiler ran longer than its limit of %v", c.config.Timeout), nil
	case ctx.Err() != nil:
		return out, "", ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == sandbox.StageFailed:
		return out, "", fmt.Errorf("start the C compiler: %s", strings.TrimSpace(out.text))
	case errors.As(err, &exit):

		return out, limitOf(exit, out.text), nil
	case err != nil:
		return out, "", fmt.Errorf("run the C compiler: %w", err)
	}
	return out, "", nil
}

// limitOf says which limit ended the compiler or one of its parts; "" when it refused the source by itself.
func limitOf(exit *exec.ExitError, text string) string {
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		switch status.Signal() {
		case syscall.SIGXCPU:
			return "the compiler used more processor time than its limit"
		case syscall.SIGXFSZ:
			return fmt.Sprintf("the compiler wrote a file of more than %d MiB", maxArtifactBytes>>20)
		default:
			return fmt.Sprintf("the compiler was ended by %v", status.Signal())
		}
	}
	for _, sign := range []struct{ text, limit string }{
		{"File size limit exceeded", fmt.Sprintf("the compiler wrote a file of more than %d MiB", maxArtifactBytes>>20)},
		{"CPU time limit exceeded", "the compiler used more processor time than its limit"},
		{"virtual memory exhausted", "the compiler used more memory than its limit"},
		{"out of memory", "the compiler used more memory than its limit"},
		{"Cannot allocate memory", "the compiler used more memory than its limit"},
		{"Killed signal terminated program", "a part of the compiler was killed"},
	} {
		if strings.Contains(text, sign.text) {
			return sign.limit
		}
	}
	return ""
}

// boundedWriter keeps the first limit bytes and calls flood once ten times as many have come.
type boundedWriter struct {
	limit   int
	kept    []byte
	written int
	flood   func()
}

// Write never fails, so that the compiler is not stopped by a full pipe.
func (w *boundedWriter) Write(p []byte) (int, error) {
	if room := w.limit - len(w.kept); room > 0 {
		w.kept = append(w.kept, p[:min(room, len(p))]...)
	}
	before := w.written
	w.written += len(p)
	if before <= 10*w.limit && w.written > 10*w.limit {
		w.flood()
	}
	return len(p), nil
}
