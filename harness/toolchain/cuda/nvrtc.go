package cuda

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/nvrtc"
)

// pool returns the children for the given include folders, started when they are first needed.
func (c *Compiler) pool(includeDirs []string) (*nvrtc.Pool, error) {
	key := strings.Join(includeDirs, "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.pools[key]; ok {
		return p, nil
	}
	p, err := nvrtc.NewPool(*c.install, nvrtc.Config{
		Children: c.config.Children, Timeout: c.config.Timeout, MemoryBytes: c.config.MemoryBytes, ReadOnly: includeDirs, Reduced: c.config.Level == sandbox.LevelReduced,
	})
	if err != nil {
		return nil, err
	}
	c.pools[key] = p
	return p, nil
}

func (c *Compiler) byNVRTC(ctx context.Context, candidate *harness.Candidate) (*compiled, error) {
	p, err := c.pool(candidate.Options.IncludeDirs)
	if err != nil {
		return nil, err
	}
	args := arguments(candidate)
	full := append(args[:len(args):len(args)], given(candidate.Structure.Source)...)
	for _, dir := range append(append([]string(nil), candidate.Options.IncludeDirs...), c.install.Include...) {
		full = append(full, "--include-path="+dir)
	}
	version := fmt.Sprintf("nvrtc %d.%d", p.Version()[0], p.Version()[1])
	r, err := p.Compile(ctx, candidate.Structure.Source, sourceName, full)
	if errors.Is(err, nvrtc.ErrLimit) {
		return &compiled{limit: "the compiler was stopped: " + err.Error(), version: version}, nil
	}
	if err != nil {
		return nil, err
	}
	return &compiled{image: r.Image, log: r.Log, version: version, command: append([]string{"nvrtc"}, args...)}, nil
}

// arguments returns what NVRTC and nvcc are told alike, without include folders.
func arguments(candidate *harness.Candidate) []string {
	o := candidate.Options
	std := o.Std
	if std == "" {
		std = "c++17"
	}
	args := []string{"--gpu-architecture=" + o.Arch, "--std=" + std, "--ptxas-options=-v"}
	if o.MaxRegisters > 0 {
		args = append(args, fmt.Sprintf("--maxrregcount=%d", o.MaxRegisters))
	}
	if o.FastMath {
		args = append(args, "--use_fast_math")
	}
	args = append(args, o.Flags...)
	for _, m := range task.Macros(candidate.Structure, candidate.Configuration) {
		args = append(args, "--define-macro="+m)
	}
	return args
}

// mathNames are constants of math.h, which nvcc includes by itself and NVRTC lacks, with what they are there. Kernels of people and
// models name them without an include.
var mathNames = []struct{ name, value string }{{"INFINITY", "__int_as_float(0x7f800000)"}, {"NAN", "__int_as_float(0x7fffffff)"}}

// given returns the macros for the constants of math.h that a source names and does not define.
func given(source string) []string {
	var out []string
	for _, m := range mathNames {
		named, defined := regexp.MustCompile(`\b`+m.name+`\b`), regexp.MustCompile(`#\s*define\s+`+m.name+`\b`)
		if named.MatchString(source) && !defined.MatchString(source) {
			out = append(out, "--define-macro="+m.name+"="+m.value)
		}
	}
	return out
}

// hostPattern is how NVRTC says that it lacks a header of the host's.
var hostPattern = regexp.MustCompile(`cannot open source file "[^"]*"|could not open source file "[^"]*"`)

func needsHost(log string) bool { return hostPattern.MatchString(log) }
