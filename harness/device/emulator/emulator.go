// Package emulator stands in for a card: a driver library written in C++ that executes, on the host, modules made from CUDA
// source by g++ with a small header that emulates blocks, threads, barriers, warp shuffles, shared memory, vector types and
// atomics. It is slow and correct. Tests run the whole GPU path on it, and as `target: cuda, arch: emulated` a person
// checks a kernel's correctness on a machine without a card. No time measured on it means anything.
//
// It must not judge kernels and knows nothing of tasks: it builds the library (Install) and turns CUDA source into what g++
// can compile (Wrap).
package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

//go:embed src include
var sources embed.FS

// ErrNoCompiler is returned when g++ is not installed.
var ErrNoCompiler = errors.New("g++ is not installed: the emulated device needs it (Debian: apt-get install g++)")

// Emulator is an installed emulator.
type Emulator struct {
	Library  string // the driver library's path
	Include  string // the folder of the headers
	Compiler string // g++'s path
	Version  string // g++'s version with the emulator's own hash: part of cache keys
}

var installing sync.Mutex

// Hash names this version of the emulator's sources.
var Hash = sync.OnceValue(func() string {
	hash := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sources.ReadFile(path)
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", path, len(b), b) // a hash never fails to write
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("emulator: embedded sources cannot be read: %v", err))
	}
	return "emulator " + hex.EncodeToString(hash.Sum(nil)[:8])
})

// Install writes the emulator under dir, builds its library unless the same one is there already, and returns it.
func Install(ctx context.Context, dir string) (*Emulator, error) {
	gxx, err := exec.LookPath("g++")
	if err != nil {
		return nil, ErrNoCompiler
	}
	ask := exec.CommandContext(ctx, gxx, "-dumpfullversion", "-dumpversion")
	ask.Env = []string{"PATH=" + os.Getenv("PATH")} // no more: a model's key is in the environment
	version, err := ask.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", gxx, err)
	}
	both := sha256.Sum256([]byte(Hash() + string(version)))
	sum := hex.EncodeToString(both[:8])
	root := filepath.Join(dir, "emulator-"+sum)
	e := &Emulator{
		Library: filepath.Join(root, "libcuda.so.1"), Include: filepath.Join(root, "include"), Compiler: gxx,
		Version: fmt.Sprintf("emulator %s g++ %s", sum, bytes.TrimSpace(version)),
	}
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(e.Library); err == nil {
		return e, nil
	}
	return e, e.build(ctx, dir, root)
}

// build makes everything in a folder of its own and renames it, so that two processes may install at once.
func (e *Emulator) build(ctx context.Context, dir, root string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, "emulator-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone already when it was renamed
	if err := os.CopyFS(tmp, sources); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, e.Compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "src/driver.cpp", "-o", "libcuda.so.1", "-ldl", "-lpthread")
	cmd.Dir, cmd.Env = tmp, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + tmp}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the emulated driver: %w\n%.2000s", err, out)
	}
	if err := os.Rename(tmp, root); err != nil {
		if _, there := os.Stat(e.Library); there == nil {
			return nil // another process was first, with the same content
		}
		return err
	}
	return nil
}

var (
	dynamicShared = regexp.MustCompile(`extern\s+__shared__\s+([^;\[\]]*?)\b(\w+)\s*\[\s*\]\s*;`)
	alignment     = regexp.MustCompile(`(?:__align__|alignas)\s*\([^)]*\)`)
)

// Wrap turns CUDA source into what g++ compiles against the emulator's headers: dynamic shared arrays become pointers, and
// each named kernel gets an entry that the driver finds.
func Wrap(source string, kernels []string) string {
	source = dynamicShared.ReplaceAllStringFunc(source, func(m string) string {
		parts := dynamicShared.FindStringSubmatch(m)
		element := strings.TrimSpace(alignment.ReplaceAllString(parts[1], ""))
		return fmt.Sprintf("%s* const %s = reinterpret_cast<%s*>(ridgepoint::dynamicShared);", element, parts[2], element)
	})
	var b strings.Builder
	b.WriteString(source)
	b.WriteString("\n")
	for _, k := range kernels {
		fmt.Fprintf(&b, "RIDGEPOINT_KERNEL(%s)\n", k)
	}
	return b.String()
}

// Flags returns g++'s arguments for one module, apart from macros, input and output.
func (e *Emulator) Flags() []string {
	return []string{
		"-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-gnu-unique",
		"-Wno-unknown-pragmas", "-Wno-attributes", "-include", "ridgepoint_emulator.h", "-I" + e.Include,
	}
}

// Compile builds one module from CUDA source: macros are "NAME=VALUE", kernels the names to export. A source that g++
// refuses is an *exec.ExitError with g++'s messages as the text.
func (e *Emulator) Compile(ctx context.Context, source string, macros, kernels []string) ([]byte, string, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-emulator-")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	if err := os.WriteFile(filepath.Join(dir, "kernel.cu"), []byte(Wrap(source, kernels)), 0o644); err != nil {
		return nil, "", err
	}
	args := e.Flags()
	for _, m := range macros {
		args = append(args, "-D"+m)
	}
	args = append(args, "-x", "c++", "kernel.cu", "-o", "kernel.so")
	cmd := exec.CommandContext(ctx, e.Compiler, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, string(out), err
	}
	image, err := os.ReadFile(filepath.Join(dir, "kernel.so"))
	return image, string(out), err
}
