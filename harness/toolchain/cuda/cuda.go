// Package cuda compiles candidates of the cuda target: by NVRTC in sandboxed children, by nvcc where the source needs a host
// compiler's headers or the person says so, and for arch "emulated" by g++ against the emulator. It keeps nothing
// (harness/toolchain has the cache) and launches nothing; Preflight holds a compiled candidate against a device's limits.
package cuda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/device/emulator"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/toolchain/cubin"
	"ridgepoint/harness/toolchain/nvrtc"
)

// ErrNoCompiler says that this machine compiles no CUDA.
var ErrNoCompiler = errors.New("no CUDA compiler: install the CUDA toolkit, `pip install nvidia-cuda-nvrtc`, or Debian's libnvrtc11.2 (non-free)")

// The ways to compile.
const (
	Auto  = "auto" // NVRTC first, nvcc when the source needs host headers
	NVRTC = "nvrtc"
	NVCC  = "nvcc"
)

// Config says how a Compiler works. The zero Config is complete.
type Config struct {
	Use         string        // auto (also ""), nvrtc or nvcc
	Library     string        // an NVRTC library or its folder, by config; "": the newest found
	Search      []string      // further folders to look for NVRTC and nvcc in, such as $CUDA_HOME
	Children    int           // NVRTC children at once; 0: 1
	Timeout     time.Duration // of one compile; 0: 60 s
	MemoryBytes uint64        // address space of a compiler process; 0: 8 GiB
	Dir         string        // where the emulator is installed; "": a folder under the user's cache
	Level       sandbox.Level // "": full
}

// Compiler compiles CUDA. It is safe for concurrent use.
type Compiler struct {
	config  Config
	install *nvrtc.Installation // nil: no NVRTC
	nvcc    *nvccTool           // nil: no nvcc

	mu       sync.Mutex
	pools    map[string]*nvrtc.Pool // by include folders
	emulator *emulator.Emulator
}

// Find looks for compilers. The error wraps ErrNoCompiler when there is none that Config.Use wants; candidates of arch
// "emulated" need only g++ and are compiled by a Compiler that found nothing (FindEmulated).
func Find(ctx context.Context, config Config) (*Compiler, error) {
	c, err := FindEmulated(config)
	if err != nil {
		return nil, err
	}
	if config.Use != NVCC {
		extra := slices.Clone(config.Search)
		if config.Library != "" {
			extra = append([]string{config.Library}, extra...)
		}
		found := nvrtc.Find(extra...)
		if config.Library != "" {
			real, err := filepath.EvalSymlinks(config.Library)
			if err != nil {
				return nil, fmt.Errorf("find NVRTC: %w", err)
			}
			found = slices.DeleteFunc(found, func(i nvrtc.Installation) bool { return i.Path != real && filepath.Dir(i.Path) != real })
		}
		if len(found) > 0 {
			c.install = &found[0]
		}
	}
	if config.Use != NVRTC {
		if c.nvcc, err = findNVCC(ctx, config.Search); err != nil && !errors.Is(err, exec.ErrNotFound) {
			return nil, err
		}
	}
	if c.install == nil && c.nvcc == nil {
		return nil, ErrNoCompiler
	}
	return c, nil
}

// FindEmulated returns a Compiler for arch "emulated" alone; it looks for nothing yet.
func FindEmulated(config Config) (*Compiler, error) {
	if !slices.Contains([]string{"", Auto, NVRTC, NVCC}, config.Use) {
		return nil, fmt.Errorf("CUDA compiler %q is not known; want auto, nvrtc or nvcc", config.Use)
	}
	if config.Timeout == 0 {
		config.Timeout = 60 * time.Second
	}
	if config.MemoryBytes == 0 {
		config.MemoryBytes = 8 << 30
	}
	if config.Level == "" {
		config.Level = sandbox.LevelFull
	}
	if config.Dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		config.Dir = filepath.Join(base, "ridgepoint")
	}
	return &Compiler{config: config, pools: map[string]*nvrtc.Pool{}}, nil
}

// Version returns the compiler's name and version as records hold it: "nvrtc 13.0", "nvcc 13.0".
func (c *Compiler) Version() string {
	switch {
	case c.install != nil:
		return fmt.Sprintf("nvrtc %d.%d", c.install.Version[0], c.install.Version[1])
	case c.nvcc != nil:
		return c.nvcc.version
	default:
		return "none"
	}
}

// Toolkit returns the toolkit's version, major and minor, which a structure's `requires: {toolkit: ...}` is held against.
func (c *Compiler) Toolkit() [2]int {
	switch {
	case c.install != nil:
		return c.install.Version
	case c.nvcc != nil:
		return c.nvcc.toolkit
	default:
		return [2]int{}
	}
}

// Emulator returns the installed emulator, installing it when it is first asked for.
func (c *Compiler) Emulator(ctx context.Context) (*emulator.Emulator, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.emulator == nil {
		e, err := emulator.Install(ctx, c.config.Dir)
		if err != nil {
			return nil, err
		}
		c.emulator = e
	}
	return c.emulator, nil
}

// Close ends the compiler children.
func (c *Compiler) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pools {
		p.Close()
	}
	c.pools = map[string]*nvrtc.Pool{}
}

// keyVersion goes into every key: change it when the way of compiling changes.
const keyVersion = 2

// Key returns the candidate's cache key: a SHA-256 in hex over the source, the macros, every option, the arch, the compiler's
// version and the contents of the include folders.
func (c *Compiler) Key(candidate *harness.Candidate) string {
	options := candidate.Options
	options.IncludeDirs = nil // by content: IncludeHash
	version := c.Version()
	if options.Arch == device.Emulated {
		version = emulator.Hash()
	}
	text, err := json.Marshal(struct {
		Version  int
		Compiler string
		Use      string
		Source   string
		Macros   []string
		Options  harness.BuildOptions
		Kernels  []string
	}{keyVersion, version, c.config.Use, candidate.Structure.Source, task.Macros(candidate.Structure, candidate.Configuration), options, Kernels(candidate)})
	if err != nil {
		panic(fmt.Sprintf("cuda: candidate cannot be hashed: %v", err)) // strings and ints alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Kernels returns the kernels that a candidate's launches name, each once, in order.
func Kernels(candidate *harness.Candidate) []string {
	var out []string
	for _, l := range candidate.Structure.Launches {
		if !slices.Contains(out, l.Kernel) {
			out = append(out, l.Kernel)
		}
	}
	return out
}

// sourceName is what messages call a candidate's source.
const sourceName = "kernel.cu"

// Compile compiles the candidate. It returns the build (without Artifact and SizeBytes, which the cache fills) and the image,
// or a Refusal; an error means that compiling itself is broken here.
func (c *Compiler) Compile(ctx context.Context, candidate *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error) {
	source, options := candidate.Structure.Source, candidate.Options
	if r := UnsafeIncludes(source); r != nil {
		return nil, nil, r, nil
	}
	if options.Arch == device.Emulated {
		return c.emulate(ctx, candidate)
	}
	if err := meets(candidate.Structure.Requires["toolkit"], c.Toolkit()); err != nil {
		return nil, nil, &toolchain.Refusal{Reason: err.Error()}, nil
	}
	start := time.Now()
	var out *compiled
	var err error
	if c.install != nil {
		out, err = c.byNVRTC(ctx, candidate)
	} else {
		out, err = c.byNVCC(ctx, candidate)
	}
	if err == nil && out.image == nil && c.install != nil && c.nvcc != nil && c.config.Use != NVRTC && needsHost(out.log) {
		out, err = c.byNVCC(ctx, candidate)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if out.image == nil {
		return nil, nil, Refused(out.log, out.limit, source), nil
	}
	return c.finish(candidate, out, time.Since(start))
}

// compiled is what one compiler run gave; image is nil when the source was refused.
type compiled struct {
	image   []byte
	log     string
	limit   string // the limit that ended it
	version string
	command []string
}

// finish reads the image and makes the build.
func (c *Compiler) finish(candidate *harness.Candidate, out *compiled, took time.Duration) (*harness.Build, []byte, *toolchain.Refusal, error) {
	kernels, err := cubin.Parse(out.image)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read what %s made: %w", out.version, err)
	}
	for _, name := range Kernels(candidate) {
		if !slices.ContainsFunc(kernels, func(k cubin.Kernel) bool { return k.Name == name }) {
			return nil, nil, NoKernel(name), nil
		}
	}
	return &harness.Build{
		Key: c.Key(candidate), Toolchain: out.version, Command: out.command, Kernels: cubin.Resources(kernels, out.log),
		Diagnostics: cubin.Diagnostics(out.log, sourceName, candidate.Structure.Source, maxDiagnostics), TookSeconds: took.Seconds(),
	}, out.image, nil, nil
}

// NoKernel refuses a source that lacks a kernel which its launch names.
func NoKernel(name string) *toolchain.Refusal {
	return &toolchain.Refusal{Reason: fmt.Sprintf("the source has no kernel %s, which the launch names: declare it extern \"C\" __global__ void %s(...)", name, name)}
}

// maxDiagnostics is how many messages are kept, errors first.
const maxDiagnostics = 8

// Refused makes the refusal of a source from what its compiler printed; limit is the limit that ended the compiler, "" for none.
func Refused(log, limit, source string) *toolchain.Refusal {
	r := &toolchain.Refusal{Diagnostics: cubin.Diagnostics(log, sourceName, source, maxDiagnostics), Limit: limit != ""}
	switch {
	case r.Limit:
		r.Reason = limit
	case len(r.Diagnostics) > 0 && r.Diagnostics[0].Severity == "error":
		d := r.Diagnostics[0]
		r.Reason = fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Message)
	default:
		r.Reason = cubin.FirstError(log)
	}
	return r
}

// includePattern finds the file that an include names in quotes or angle brackets.
var includePattern = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]*)[>"]`)

// UnsafeIncludes refuses absolute and climbing includes before any compiler runs, with the line; what hides behind a macro is
// held by the sandbox, which shows the compiler nothing else.
func UnsafeIncludes(source string) *toolchain.Refusal {
	for _, m := range includePattern.FindAllStringSubmatchIndex(source, -1) {
		name := source[m[2]:m[3]]
		if strings.HasPrefix(name, "/") || slices.Contains(strings.Split(filepath.ToSlash(name), "/"), "..") {
			line := 1 + strings.Count(source[:m[2]], "\n")
			d := harness.Diagnostic{Severity: "error", File: sourceName, Line: line, Message: fmt.Sprintf("%q is included from outside the source's folder, the toolkit and include_dirs", name),
				Source: strings.TrimSpace(source[m[0]:m[1]])}
			return &toolchain.Refusal{Reason: fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Message), Diagnostics: []harness.Diagnostic{d}}
		}
	}
	return nil
}

// requirement is ">=12.0", the one form of `requires: {toolkit: ...}`.
var requirement = regexp.MustCompile(`^\s*(>=|>|==)\s*(\d+)(?:\.(\d+))?\s*$`)

// meets says what is wrong when a toolkit's version does not meet a requirement; "" is met by all.
func meets(want string, have [2]int) error {
	if want == "" {
		return nil
	}
	m := requirement.FindStringSubmatch(want)
	if m == nil {
		return fmt.Errorf("requires toolkit %q: write it as \">=12.0\"", want)
	}
	var v [2]int
	_, _ = fmt.Sscan(m[2], &v[0]) // digits by the pattern
	_, _ = fmt.Sscan(m[3], &v[1]) // digits, or "" for 0
	at, ours := v[0]*1000+v[1], have[0]*1000+have[1]
	ok := map[string]bool{">=": ours >= at, ">": ours > at, "==": ours == at}[m[1]]
	if !ok {
		return fmt.Errorf("requires a CUDA toolkit %s; this is %d.%d", want, have[0], have[1])
	}
	return nil
}

// Trusted compiles a source of this program's own, such as helper kernels, and keeps the image on disk by content.
func (c *Compiler) Trusted(ctx context.Context, arch, source string, kernels []string) ([]byte, error) {
	version := c.Version()
	if arch == device.Emulated {
		version = emulator.Hash()
	}
	sum := sha256.Sum256([]byte(version + "\x00" + arch + "\x00" + source + "\x00" + strings.Join(kernels, ",")))
	return toolchain.Kept(c.config.Dir, "helpers-"+hex.EncodeToString(sum[:8]), func() ([]byte, error) {
		if arch == device.Emulated {
			return c.trustedEmulated(ctx, source, kernels)
		}
		_, made, refused, err := c.Compile(ctx, TrustedCandidate(harness.TargetCUDA, arch, source, kernels))
		if err == nil && refused != nil {
			err = fmt.Errorf("compile helpers: %s", refused.Reason)
		}
		return made, err
	})
}

func (c *Compiler) trustedEmulated(ctx context.Context, source string, kernels []string) ([]byte, error) {
	e, err := c.Emulator(ctx)
	if err != nil {
		return nil, err
	}
	image, text, err := e.Compile(ctx, source, nil, kernels)
	if err != nil {
		return nil, fmt.Errorf("compile helpers: %w\n%.2000s", err, text)
	}
	return image, nil
}

// TrustedCandidate dresses a source of this program's own as a candidate without parameters.
func TrustedCandidate(target harness.Target, arch, source string, kernels []string) *harness.Candidate {
	sum := sha256.Sum256([]byte(source))
	s := &harness.Structure{Name: "helpers", Target: target, Source: source, Digest: hex.EncodeToString(sum[:])}
	for _, k := range kernels {
		s.Launches = append(s.Launches, harness.Launch{Kernel: k})
	}
	return &harness.Candidate{Structure: s, Target: target, Options: harness.BuildOptions{Arch: arch}}
}
