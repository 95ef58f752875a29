// Package cc compiles candidates of the cpu target with the system's C compiler (gcc or clang) into shared objects, inside
// the sandbox and under limits. It must not load what it compiled, and keeps nothing: harness/toolchain has the cache.
package cc

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
	"runtime"
	"strings"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
)

// ErrNoCompiler says that this machine has no C compiler.
var ErrNoCompiler = errors.New("no C compiler (gcc, clang or cc) is on PATH")

// notThere says that the compiler that a person named is not there. It is an ErrNoCompiler too.
type notThere struct{ name, where string }

// Error says what is missing and what to name instead.
func (e *notThere) Error() string {
	return fmt.Sprintf("the C compiler %s %s: name another, or none for the first of gcc, clang and cc on PATH", e.name, e.where)
}

// Is makes it an ErrNoCompiler.
func (e *notThere) Is(target error) bool { return target == ErrNoCompiler }

// Compiler is one C compiler of this machine.
type Compiler struct {
	path    string
	family  string // gcc or clang
	version string
	config  Config
}

// Config says how a Compiler works. The zero Config is complete.
type Config struct {
	Timeout     time.Duration // of one compile; 0: 60 s
	MemoryBytes uint64        // address space of each compiler process; 0: 2 GiB
	// Level is the sandbox to compile in; "": full. Reduced is for machines without the full one, where the person allowed it or the
	// source is shipped with this program.
	Level sandbox.Level
}

// versionPattern finds "12.2.0" in the first line of --version.
var versionPattern = regexp.MustCompile(`\b(\d+\.\d+(\.\d+)?)\b`)

// Find returns the compiler of that name or path; with "" the first of gcc, clang and cc on PATH. The error wraps
// ErrNoCompiler when there is none.
func Find(ctx context.Context, name string, config Config) (*Compiler, error) {
	names := []string{"gcc", "clang", "cc"}
	if name != "" {
		names = []string{name}
	}
	for _, n := range names {
		path, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("find C compiler %s: %w", n, err)
		}
		return identify(ctx, path, config)
	}
	if strings.Contains(name, "/") {
		return nil, &notThere{name, "is not there or may not be executed"}
	}
	if name != "" {
		return nil, &notThere{name, "is not on PATH"}
	}
	return nil, ErrNoCompiler
}

func identify(ctx context.Context, path string, config Config) (*Compiler, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no more: a model's key is in the environment
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	family := "gcc"
	if strings.Contains(line, "clang") {
		family = "clang"
	}
	if config.Timeout == 0 {
		config.Timeout = 60 * time.Second
	}
	if config.MemoryBytes == 0 {
		config.MemoryBytes = 2 << 30
	}
	if config.Level == "" {
		config.Level = sandbox.LevelFull
	}
	// "gcc (Debian 12.2.0-14) 12.2.0": the last number is the compiler's own.
	version := "unknown"
	if all := versionPattern.FindAllString(line, -1); len(all) > 0 {
		version = all[len(all)-1]
		if family == "clang" {
			version = all[0]
		}
	}
	return &Compiler{path: path, family: family, version: version, config: config}, nil
}

// Version returns the compiler's name and version as records hold it: "gcc 12.2.0".
func (c *Compiler) Version() string { return c.family + " " + c.version }

// Path returns the compiler's absolute path.
func (c *Compiler) Path() string { return c.path }

// WithLevel returns the same compiler working in another sandbox.
func (c *Compiler) WithLevel(level sandbox.Level) *Compiler {
	d := *c
	d.config.Level = level
	return &d
}

// keyVersion goes into every key: change it when the way of compiling changes.
const keyVersion = 1

// Key returns the candidate's cache key: a SHA-256 in hex over the source, the macros, every option, the concrete arch, the
// compiler's version and the contents of the include folders.
func (c *Compiler) Key(candidate *harness.Candidate) string {
	options := candidate.Options
	options.IncludeDirs = nil // by content: IncludeHash
	text, err := json.Marshal(struct {
		Version   int
		Compiler  string
		Platform  string
		Source    string
		Arguments []string
		Options   harness.BuildOptions
	}{keyVersion, c.Version(), runtime.GOOS + "/" + runtime.GOARCH, candidate.Structure.Source, c.arguments(candidate, nil), options})
	if err != nil {
		panic(fmt.Sprintf("cc: candidate cannot be hashed: %v", err)) // strings and ints alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Names inside the build folder.
const (
	sourceName = "kernel.c"
	objectName = "kernel.so"
)

// arguments returns the compiler's arguments. Errors of one place are reported, not of all; there is no caret art to parse.
func (c *Compiler) arguments(candidate *harness.Candidate, includeDirs []string) []string {
	o := candidate.Options
	std := o.Std
	if std == "" {
		std = "gnu17"
	}
	args := []string{"-std=" + std, "-O3", "-fPIC", "-shared", "-fno-diagnostics-color", "-fno-caret-diagnostics", "-Wall", "-Wno-unknown-pragmas", "-Wno-psabi"}
	if c.family == "gcc" {
		args[5] = "-fno-diagnostics-show-caret"
	}
	args = append(args, machine(o)...)
	if o.FastMath {
		args = append(args, "-ffast-math")
	}
	if usesOpenMP(candidate.Structure.Source) {
		args = append(args, "-fopenmp")
	}
	args = append(args, o.Flags...)
	for _, m := range task.Macros(candidate.Structure, candidate.Configuration) {
		args = append(args, "-D"+m)
	}
	for _, d := range includeDirs {
		args = append(args, "-I"+d)
	}
	return append(args, sourceName, "-o", objectName, "-lm")
}

// machine spells the concrete arch and its extensions for the compiler: x86 takes -mNAME, arm takes +NAME.
func machine(o harness.BuildOptions) []string {
	if runtime.GOARCH != "amd64" {
		return []string{"-march=" + strings.Join(append([]string{o.Arch}, o.Features...), "+")}
	}
	args := []string{"-march=" + o.Arch}
	for _, f := range o.Features {
		args = append(args, "-m"+f)
	}
	return args
}

// openMPPattern finds a use of OpenMP: a pragma, its _Pragma form, or its header.
var openMPPattern = regexp.MustCompile(`(?m)(^\s*#\s*pragma\s+omp\b|_Pragma\s*\(\s*"omp\b|^\s*#\s*include\s*<omp\.h>)`)

func usesOpenMP(source string) bool { return openMPPattern.MatchString(source) }
