package cuda

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/toolchain/confined"
)

// emulate compiles a candidate for the emulated device.
func (c *Compiler) emulate(ctx context.Context, candidate *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error) {
	e, err := c.Emulator(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(candidate.Structure.TensorMaps) > 0 {
		return nil, nil, &toolchain.Refusal{Reason: "tensor maps are not emulated: this structure needs a card"}, nil
	}
	start := time.Now()
	dir, err := os.MkdirTemp("", "ridgepoint-emulated-")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	kernels := Kernels(candidate)
	if err := os.WriteFile(filepath.Join(dir, sourceName), []byte(emulator.Wrap(candidate.Structure.Source, kernels)), 0o644); err != nil {
		return nil, nil, nil, fmt.Errorf("write the source: %w", err)
	}
	var macros []string
	for _, m := range task.Macros(candidate.Structure, candidate.Configuration) {
		macros = append(macros, "-D"+m)
	}
	args := append(e.Flags(), macros...)
	for _, d := range candidate.Options.IncludeDirs {
		args = append(args, "-I"+d)
	}
	args = append(args, "-x", "c++", sourceName, "-o", "kernel.so")
	log, limit, err := confined.Run(ctx, confined.Command{Name: "g++", Path: e.Compiler, Args: args, Dir: dir, ReadOnly: append([]string{e.Include}, candidate.Options.IncludeDirs...),
		Level: c.config.Level, Timeout: c.config.Timeout, MemoryBytes: c.config.MemoryBytes})
	if err != nil {
		return nil, nil, nil, err
	}
	out := &compiled{log: log.Text, limit: limit, version: e.Version}
	if limit != "" || log.Failed {
		r := Refused(out.log, out.limit, candidate.Structure.Source)
		for _, k := range kernels {
			if strings.Contains(log.Text, "RIDGEPOINT_KERNEL") && strings.Contains(log.Text, "‘"+k+"’ was not declared") || strings.Contains(log.Text, "'"+k+"' was not declared") {
				r = NoKernel(k)
			}
		}
		return nil, nil, r, nil
	}
	image, err := os.ReadFile(filepath.Join(dir, "kernel.so"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read the compiled module: %w", err)
	}
	return &harness.Build{Key: c.Key(candidate), Toolchain: e.Version, Command: append([]string{"g++"}, macros...), TookSeconds: time.Since(start).Seconds()}, image, nil, nil
}
