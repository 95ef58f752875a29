// Package confined runs a compiler as a program in the sandbox, under limits of time, memory and output, and says which limit
// ended it. It reads no messages and knows no language.
package confined

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"ridgepoint/harness/sandbox"
)

// Command is one run of a compiler in its build folder.
type Command struct {
	Name        string // for messages: "the C compiler"
	Path        string
	Args        []string
	Env         []string // besides PATH and the locale
	Dir         string   // the build folder, writable
	ReadOnly    []string // folders it may read besides the system's
	Level       sandbox.Level
	Timeout     time.Duration
	MemoryBytes uint64 // address space of each of its processes; 0: not limited
}

// Output is what the compiler said, with the build folder's path taken out.
type Output struct {
	Text   string
	Failed bool
}

// maxArtifactBytes is the largest file that a compiler may write. Shipped kernels make 16 to 60 KiB.
const maxArtifactBytes = 64 << 20

// maxOutputBytes bounds what is kept of the compiler's messages; ten times it ends the compiler.
const maxOutputBytes = 256 << 10

// Run runs the compiler. limit is non-empty when it ran past one; an error means that compiling itself is broken here.
func Run(ctx context.Context, c Command) (out Output, limit string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	policy := sandbox.Policy{Name: "compile", WorkDir: c.Dir, Writable: true, ReadOnly: c.ReadOnly, Limits: sandbox.Limits{
		MemoryBytes: c.MemoryBytes, CPUSeconds: uint64(c.Timeout/time.Second) + 1, FileBytes: maxArtifactBytes, Processes: 64, OpenFiles: 256, ScratchBytes: 4 * maxArtifactBytes,
	}}
	env := append([]string{"PATH=/usr/bin:/bin:/usr/local/bin", "LC_ALL=C", "TMPDIR=/tmp", "SOURCE_DATE_EPOCH=0"}, c.Env...)
	cmd, err := sandbox.Command(policy, c.Level, env, c.Path, c.Args...)
	if err != nil {
		return Output{}, "", err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // gone already: nothing to end
	var flooded atomic.Bool
	sink := &boundedWriter{limit: maxOutputBytes, flood: func() { flooded.Store(true); kill() }}
	cmd.Stdout, cmd.Stderr = sink, sink
	if err := cmd.Start(); err != nil {
		return Output{}, "", fmt.Errorf("start %s: %w", c.Name, err)
	}
	stop := context.AfterFunc(ctx, kill)
	err = cmd.Wait()
	stop()
	kill() // a reduced sandbox may leave descendants
	out = Output{Text: strings.ReplaceAll(string(sink.kept), c.Dir+"/", ""), Failed: err != nil}
	var exit *exec.ExitError
	switch {
	case flooded.Load():
		return out, fmt.Sprintf("the compiler wrote more than %d KiB of messages", 10*maxOutputBytes>>10), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return out, fmt.Sprintf("the compiler ran longer than its limit of %v", c.Timeout), nil
	case ctx.Err() != nil:
		return out, "", ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == sandbox.StageFailed:
		return out, "", fmt.Errorf("start %s: %s", c.Name, strings.TrimSpace(out.Text))
	case errors.As(err, &exit):
		return out, limitOf(exit, out.Text), nil
	case err != nil:
		return out, "", fmt.Errorf("run %s: %w", c.Name, err)
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
