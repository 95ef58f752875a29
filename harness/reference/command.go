package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
	"ridgepoint/harness/task"
)

const (
	commandTimeout = 10 * time.Minute // of one evaluation by a program
	maxMessage     = 4 << 10          // bytes of its output that an error shows
)

// command hands the inputs to the task's program. It runs as `argv... FOLDER` in the task file's folder; FOLDER holds
// NAME.npy for every input and size.json with the dims and scalars, and the program writes NAME.npy for every output there.
func (r *Reference) command(ctx context.Context, size harness.Size, extents []task.Extent, values map[string][]float64) (Outputs, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-reference-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the reference's program: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder: what stays is the system's to clean
	for _, e := range extents {
		v, ok := values[e.Name]
		if !ok {
			continue
		}
		b, err := EncodeNpy(e.Shape, v, e.DType)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", e.Name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name+".npy"), b, 0o600); err != nil {
			return nil, fmt.Errorf("hand over %s: %w", e.Name, err)
		}
	}
	if err := r.writeSize(dir, size); err != nil {
		return nil, err
	}
	if err := r.runCommand(ctx, dir, size); err != nil {
		return nil, err
	}
	out := Outputs{}
	for _, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		v, err := readOutput(filepath.Join(dir, e.Name+".npy"), e)
		if err != nil {
			return nil, r.fault(fmt.Errorf("output %s of %s: %w", e.Name, r.CommandLine(), err), size)
		}
		out[e.Name] = v
	}
	return out, nil
}

func (r *Reference) writeSize(dir string, size harness.Size) error {
	scalars := map[string]float64{}
	for _, s := range r.task.Scalars {
		scalars[s.Name] = codec.Round(s.Value, s.DType)
	}
	b, err := json.Marshal(map[string]any{"dims": size, "scalars": scalars})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "size.json"), b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("hand over the size: %w", err)
	}
	return nil
}

func (r *Reference) runCommand(ctx context.Context, dir string, size harness.Size) error {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("ran over %s", commandTimeout))
	defer cancel()
	argv := append(r.task.Reference.Command[1:len(r.task.Reference.Command):len(r.task.Reference.Command)], dir)
	cmd := exec.CommandContext(ctx, r.task.Reference.Command[0], argv...)
	cmd.Dir = filepath.Dir(r.task.File)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var message bytes.Buffer
	cmd.Stdout = &limited{w: &message, left: maxMessage}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return r.fault(fmt.Errorf("%s: %w: %s", r.CommandLine(), err, bytes.TrimSpace(message.Bytes())), size)
	}
	return nil
}

// readOutput reads one output, never more of the file than it may hold.
func readOutput(file string, e task.Extent) ([]float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("was not written to %s in the folder that it was given", filepath.Base(file))
	}
	defer func() { _ = f.Close() }() // read only
	b, err := io.ReadAll(io.LimitReader(f, e.Elements*8+1<<16))
	if err != nil {
		return nil, err
	}
	shape, v, err := DecodeNpy(b, e.Elements)
	if err != nil {
		return nil, err
	}
	if int64(len(v)) != e.Elements {
		return nil, fmt.Errorf("has the shape %v, want %v", shape, e.Shape)
	}
	return v, nil
}

// limited keeps the first bytes and drops the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if _, err := l.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}
