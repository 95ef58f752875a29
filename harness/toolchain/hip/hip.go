// Package hip compiles candidates of the hip target for AMD's devices: by hiprtc in sandboxed children, or by hipcc, where the
// source needs host headers or the person says so. Sources written for CUDA compile too: a prelude gives them what HIP spells
// otherwise. Preflight holds a compiled candidate against its arch's limits. It keeps nothing and launches nothing.
package hip

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/toolchain/codeobject"
	"ridgepoint/harness/toolchain/cubin"
	"ridgepoint/harness/toolchain/cuda"
	"ridgepoint/harness/toolchain/nvrtc"
)

// ErrNoCompiler says that this machine compiles no HIP.
var ErrNoCompiler = errors.New("no HIP compiler: install ROCm, or Debian's hipcc (apt-get install hipcc)")

// The ways to compile.
const (
	Auto   = "auto" // hiprtc first, hipcc when the source needs host headers
	HIPRTC = "hiprtc"
	HIPCC  = "hipcc"
)

//go:embed prelude.h
var prelude string

// Config says how a Compiler works. The zero Config is complete.
type Config struct {
	Use         string        // auto (also ""), hiprtc or hipcc
	Search      []string      // further folders to look for hiprtc and hipcc in, such as $ROCM_PATH
	Children    int           // hiprtc children at once; 0: 1
	Timeout     time.Duration // of one compile; 0: 60 s
	MemoryBytes uint64        // address space of a compiler process; 0: 8 GiB
	Level       sandbox.Level // "": full
	Dir         string        // where Trusted keeps what it made
}

// Compiler compiles HIP. It is safe for concurrent use.
type Compiler struct {
	config  Config
	install *nvrtc.Installation // nil: no hiprtc
	hipcc   *hipccTool          // nil: no hipcc

	mu    sync.Mutex
	pools map[string]*nvrtc.Pool // by include folders
}

// Find looks for compilers. The error wraps ErrNoCompiler when there is none that Config.Use wants.
func Find(ctx context.Context, config Config) (*Compiler, error) {
	if !slices.Contains([]string{"", Auto, HIPRTC, HIPCC}, config.Use) {
		return nil, fmt.Errorf("HIP compiler %q is not known; want auto, hiprtc or hipcc", config.Use)
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
	c := &Compiler{config: config, pools: map[string]*nvrtc.Pool{}}
	if config.Use != HIPCC {
		if found := nvrtc.FindHIP(config.Search...); len(found) > 0 {
			c.install = &found[0]
		}
	}
	if config.Use != HIPRTC {
		var err error
		if c.hipcc, err = findHIPCC(ctx, config.Search); err != nil && !errors.Is(err, exec.ErrNotFound) {
			return nil, err
		}
	}
	if c.install == nil && c.hipcc == nil {
		return nil, ErrNoCompiler
	}
	return c, nil
}

// Version returns the compiler's name and version as records hold it: "hiprtc 5.2", "hipcc 5.2".
func (c *Compiler) Version() string {
	if c.install != nil {
		return fmt.Sprintf("hiprtc %d.%d", c.install.Version[0], c.install.Version[1])
	}
	return c.hipcc.version
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
const keyVersion = 1

// Key returns the candidate's cache key: a SHA-256 in hex over the prelude, the source, the macros, every option, the arch,
// the compiler's version and the contents of the include folders.
func (c *Compiler) Key(candidate *harness.Candidate) string {
	options := candidate.Options
	options.IncludeDirs = nil // by content: IncludeHash
	text, err := json.Marshal(struct {
		Version  int
		Compiler string
		Use      string
		Prelude  string
		Source   string
		Macros   []string
		Options  harness.BuildOptions
		Kernels  []string
	}{keyVersion, c.Version(), c.config.Use, prelude, candidate.Structure.Source, task.Macros(candidate.Structure, candidate.Configuration), options, cuda.Kernels(candidate)})
	if err != nil {
		panic(fmt.Sprintf("hip: candidate cannot be hashed: %v", err)) // strings and ints alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Trusted compiles a source of this program's own, such as helper kernels, and keeps the image on disk by content.
func (c *Compiler) Trusted(ctx context.Context, arch, source string, kernels []string) ([]byte, error) {
	sum := sha256.Sum256([]byte(c.Version() + "\x00" + arch + "\x00" + prelude + source + "\x00" + strings.Join(kernels, ",")))
	return toolchain.Kept(c.config.Dir, "helpers-"+hex.EncodeToString(sum[:8]), func() ([]byte, error) {
		_, made, refused, err := c.Compile(ctx, cuda.TrustedCandidate(harness.TargetHIP, arch, source, kernels))
		if err == nil && refused != nil {
			err = fmt.Errorf("compile helpers: %s", refused.Reason)
		}
		return made, err
	})
}

// sourceName is what messages call a candidate's source.
const sourceName = "kernel.cu"

// compiled is what one compiler run gave; image is nil when the source was refused.
type compiled struct {
	image   []byte
	log     string
	limit   string // the limit that ended it
	version string
	command []string
}

// Compile compiles the candidate. It returns the build (without Artifact and SizeBytes, which the cache fills) and the code
// object, or a Refusal; an error means that compiling itself is broken here.
func (c *Compiler) Compile(ctx context.Context, candidate *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error) {
	s := candidate.Structure
	if r := cuda.UnsafeIncludes(s.Source); r != nil {
		return nil, nil, r, nil
	}
	if want := s.Requires["toolkit"]; want != "" {
		return nil, nil, &toolchain.Refusal{Reason: fmt.Sprintf("requires a CUDA toolkit %s, which HIP is not: this structure is for the cuda target alone", want)}, nil
	}
	if len(s.TensorMaps) > 0 {
		return nil, nil, &toolchain.Refusal{Reason: "tensor maps need NVIDIA's copy engine: this structure is for the cuda target alone"}, nil
	}
	start := time.Now()
	var out *compiled
	var err error
	if c.install != nil {
		out, err = c.byHIPRTC(ctx, candidate)
	} else {
		out, err = c.byHIPCC(ctx, candidate)
	}
	if err == nil && out.image == nil && c.install != nil && c.hipcc != nil && strings.Contains(out.log, "file not found") {
		out, err = c.byHIPCC(ctx, candidate)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if out.image == nil {
		return nil, nil, cuda.Refused(out.log, out.limit, s.Source), nil
	}
	kernels, err := codeobject.Parse(out.image)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read what %s made: %w", out.version, err)
	}
	for _, name := range cuda.Kernels(candidate) {
		if !slices.ContainsFunc(kernels, func(k codeobject.Kernel) bool { return k.Name == name }) {
			return nil, nil, cuda.NoKernel(name), nil
		}
	}
	return &harness.Build{Key: c.Key(candidate), Toolchain: out.version, Command: out.command, Kernels: codeobject.Resources(kernels),
		Diagnostics: cubin.Diagnostics(out.log, sourceName, s.Source, maxDiagnostics), TookSeconds: time.Since(start).Seconds()}, out.image, nil, nil
}

// maxDiagnostics is how many messages are kept, errors first.
const maxDiagnostics = 8

// options returns what hiprtc and hipcc are told alike, without include folders. maxrregcount is NVIDIA's: AMD's compiler
// takes its bound from __launch_bounds__.
func options(candidate *harness.Candidate) []string {
	o := candidate.Options
	std := o.Std
	if std == "" {
		std = "c++17"
	}
	args := []string{"--offload-arch=" + o.Arch, "-std=" + std, "-O3"}
	if o.FastMath {
		args = append(args, "-ffast-math")
	}
	if !slices.ContainsFunc(o.Flags, func(f string) bool { return strings.HasPrefix(f, "-ffp-contract=") }) {
		args = append(args, "-ffp-contract=fast") // as both vendors' compilers do of themselves
	}
	args = append(args, o.Flags...)
	for _, m := range task.Macros(candidate.Structure, candidate.Configuration) {
		args = append(args, "-D"+m)
	}
	return args
}

// pool returns the children for the given include folders, started when they are first needed.
func (c *Compiler) pool(includeDirs []string) (*nvrtc.Pool, error) {
	key := strings.Join(includeDirs, "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.pools[key]; ok {
		return p, nil
	}
	p, err := nvrtc.NewPool(*c.install, nvrtc.Config{Children: c.config.Children, Timeout: c.config.Timeout, MemoryBytes: c.config.MemoryBytes,
		ReadOnly: append(rocmFolders(c.install.Path), includeDirs...), Reduced: c.config.Level == sandbox.LevelReduced})
	if err != nil {
		return nil, err
	}
	c.pools[key] = p
	return p, nil
}

func (c *Compiler) byHIPRTC(ctx context.Context, candidate *harness.Candidate) (*compiled, error) {
	p, err := c.pool(candidate.Options.IncludeDirs)
	if err != nil {
		return nil, err
	}
	args := options(candidate)
	full := slices.Clone(args)
	for _, dir := range candidate.Options.IncludeDirs {
		full = append(full, "-I"+dir)
	}
	r, err := p.Compile(ctx, prelude+candidate.Structure.Source, sourceName, full)
	if errors.Is(err, nvrtc.ErrLimit) {
		return &compiled{limit: "the compiler was stopped: " + err.Error(), version: c.Version()}, nil
	}
	if err != nil {
		return nil, err
	}
	return &compiled{image: r.Image, log: r.Log, version: c.Version(), command: append([]string{"hiprtc"}, args...)}, nil
}

// rocmFolders returns the folder of a ROCm installation that a library or program belongs to, and nothing for one of the
// system's own, which compilers may read anyway.
func rocmFolders(path string) []string {
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), "rocm") {
			return []string{dir}
		}
	}
	return nil
}
