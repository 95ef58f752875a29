package cuda

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/toolchain/confined"
)

// nvccTool is an installed nvcc.
type nvccTool struct {
	path    string
	version string // "nvcc 13.0"
	toolkit [2]int
}

var releasePattern = regexp.MustCompile(`release (\d+)\.(\d+)`)

// findNVCC looks for nvcc in the given toolkits, on PATH and where toolkits usually are. The error wraps exec.ErrNotFound when
// there is none.
func findNVCC(ctx context.Context, search []string) (*nvccTool, error) {
	var candidates []string
	for _, dir := range search {
		candidates = append(candidates, filepath.Join(dir, "bin", "nvcc"), filepath.Join(dir, "nvcc"))
	}
	if p, err := exec.LookPath("nvcc"); err == nil {
		candidates = append(candidates, p)
	}
	candidates = append(candidates, "/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc")
	for _, path := range candidates {
		if st, err := os.Stat(path); err != nil || st.IsDir() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		cancel()
		if err != nil {
			return nil, fmt.Errorf("ask %s for its version: %w", path, err)
		}
		m := releasePattern.FindSubmatch(out)
		if m == nil {
			return nil, fmt.Errorf("ask %s for its version: it says %.80q", path, out)
		}
		t := &nvccTool{path: path}
		t.toolkit[0], _ = strconv.Atoi(string(m[1])) // digits by the pattern
		t.toolkit[1], _ = strconv.Atoi(string(m[2])) // likewise
		t.version = fmt.Sprintf("nvcc %d.%d", t.toolkit[0], t.toolkit[1])
		return t, nil
	}
	return nil, fmt.Errorf("find nvcc: %w", exec.ErrNotFound)
}

func (c *Compiler) byNVCC(ctx context.Context, candidate *harness.Candidate) (*compiled, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-nvcc-")
	if err != nil {
		return nil, fmt.Errorf("make a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	if err := os.WriteFile(filepath.Join(dir, sourceName), []byte(candidate.Structure.Source), 0o644); err != nil {
		return nil, fmt.Errorf("write the source: %w", err)
	}
	args := append([]string{"-cubin"}, arguments(candidate)...)
	full := append([]string(nil), args...)
	for _, d := range candidate.Options.IncludeDirs {
		full = append(full, "--include-path="+d)
	}
	full = append(full, sourceName, "-o", "kernel.cubin")
	real, err := filepath.EvalSymlinks(c.nvcc.path)
	if err != nil {
		return nil, fmt.Errorf("find nvcc's folder: %w", err)
	}
	toolkit := filepath.Dir(filepath.Dir(real))
	log, limit, err := confined.Run(ctx, confined.Command{Name: "nvcc", Path: c.nvcc.path, Args: full, Dir: dir, Env: []string{"CUDA_CACHE_DISABLE=1"},
		ReadOnly: append([]string{toolkit}, candidate.Options.IncludeDirs...), Level: c.config.Level, Timeout: c.config.Timeout, MemoryBytes: c.config.MemoryBytes})
	if err != nil {
		return nil, err
	}
	out := &compiled{log: log.Text, limit: limit, version: c.nvcc.version, command: append([]string{"nvcc"}, args...)}
	if limit != "" || log.Failed {
		return out, nil
	}
	out.image, err = os.ReadFile(filepath.Join(dir, "kernel.cubin"))
	if errors.Is(err, fs.ErrNotExist) {
		out.log += "\nerror: nvcc wrote no cubin\n" + strings.Join(args, " ")
		return out, nil
	}
	return out, err
}
