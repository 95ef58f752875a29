package hip

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/toolchain/confined"
)

// hipccTool is an installed hipcc.
type hipccTool struct {
	path    string
	version string // "hipcc 5.2"
}

var versionPattern = regexp.MustCompile(`HIP version: (\d+\.\d+)`)

// findHIPCC looks for hipcc in the given installations, on PATH and where ROCm usually is. The error wraps exec.ErrNotFound
// when there is none.
func findHIPCC(ctx context.Context, search []string) (*hipccTool, error) {
	var candidates []string
	for _, dir := range search {
		if dir != "" {
			candidates = append(candidates, filepath.Join(dir, "bin", "hipcc"), filepath.Join(dir, "hipcc"))
		}
	}
	if p, err := exec.LookPath("hipcc"); err == nil {
		candidates = append(candidates, p)
	}
	for _, path := range append(candidates, "/opt/rocm/bin/hipcc") {
		if st, err := os.Stat(path); err != nil || st.IsDir() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		cmd := exec.CommandContext(ctx, path, "--version")
		cmd.Env = append(os.Environ(), hipEnvironment...)
		out, err := cmd.Output()
		cancel()
		m := versionPattern.FindSubmatch(out)
		if m == nil {
			return nil, fmt.Errorf("ask %s for its version: it says %.80q (%v)", path, out, err)
		}
		return &hipccTool{path: path, version: "hipcc " + string(m[1])}, nil
	}
	return nil, fmt.Errorf("find hipcc: %w", exec.ErrNotFound)
}

// hipEnvironment keeps hipcc from looking for a vendor and a card by itself.
var hipEnvironment = []string{"HIP_PLATFORM=amd", "ROCM_TARGET_LST=/dev/null"}

func (c *Compiler) byHIPCC(ctx context.Context, candidate *harness.Candidate) (*compiled, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-hipcc-")
	if err != nil {
		return nil, fmt.Errorf("make a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	text := "#include <hip/hip_runtime.h>\n" + prelude + candidate.Structure.Source
	if err := os.WriteFile(filepath.Join(dir, sourceName), []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("write the source: %w", err)
	}
	args := append([]string{"--genco", "--no-gpu-bundle-output"}, options(candidate)...)
	full := slices.Clone(args)
	for _, d := range candidate.Options.IncludeDirs {
		full = append(full, "-I"+d)
	}
	full = append(full, "-x", "hip", sourceName, "-o", "kernel.hsaco")
	real, err := filepath.EvalSymlinks(c.hipcc.path)
	if err != nil {
		return nil, fmt.Errorf("find hipcc's folder: %w", err)
	}
	program, full, err := runnable(real, full)
	if err != nil {
		return nil, err
	}
	log, limit, err := confined.Run(ctx, confined.Command{Name: "hipcc", Path: program, Args: full, Dir: dir, Env: hipEnvironment,
		ReadOnly: append(rocmFolders(real), candidate.Options.IncludeDirs...), Level: c.config.Level, Timeout: c.config.Timeout, MemoryBytes: c.config.MemoryBytes})
	if err != nil {
		return nil, err
	}
	out := &compiled{log: log.Text, limit: limit, version: c.hipcc.version, command: append([]string{"hipcc"}, args...)}
	if limit != "" || log.Failed {
		return out, nil
	}
	out.image, err = os.ReadFile(filepath.Join(dir, "kernel.hsaco"))
	if errors.Is(err, fs.ErrNotExist) {
		out.log += "\nerror: hipcc wrote no code object"
		return out, nil
	}
	return out, err
}

// runnable returns what the sandbox can start: hipcc is a script, or a program in newer versions, and the sandbox starts
// programs alone.
func runnable(path string, args []string) (string, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("read hipcc: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	head := make([]byte, 256)
	n, _ := f.Read(head) // an empty file is no script, and starting it says what is wrong
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	if !strings.HasPrefix(line, "#!") {
		return path, args, nil
	}
	words := strings.Fields(line[2:])
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", nil, fmt.Errorf("read hipcc: %s names no interpreter", path)
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return "", nil, fmt.Errorf("start hipcc's interpreter: %w", err)
	}
	return program, append(append(slices.Clone(words[1:]), path), args...), nil
}
