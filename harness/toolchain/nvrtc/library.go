// Package nvrtc compiles CUDA and HIP source in memory with the vendors' run-time compilers, NVIDIA's NVRTC and AMD's hiprtc,
// which have the same functions under other names, by purego, without cgo. They keep state and can crash or hang on hostile
// source, so they never run in the process that asks: a Pool keeps compiler children, each this same binary in the sandbox,
// and replaces one that misbehaves.
//
//	caller ── Pool.Compile ──> child 1..n (sandboxed, library loaded and warm) ──> image, log
//
// Main must be called first thing in main and in TestMain of tests that use a Pool. The package does not read logs or
// images: harness/toolchain/cubin and harness/toolchain/codeobject do.
package nvrtc

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ErrNotInstalled is returned when no NVRTC is found.
var ErrNotInstalled = errors.New("NVRTC is not installed: install the CUDA toolkit, `pip install nvidia-cuda-nvrtc`, or Debian's libnvrtc11.2 (non-free)")

// Installation is one NVRTC or hiprtc on this machine.
type Installation struct {
	Path    string   // the library
	Version [2]int   // as its file name tells until it is opened
	Include []string // the toolkit's headers that belong to it; none for Debian's package
}

// String returns "NVRTC 13.0 (/usr/local/cuda/lib64/libnvrtc.so.13)".
func (i Installation) String() string {
	return fmt.Sprintf("%s %d.%d (%s)", flavorOf(i.Path).name, i.Version[0], i.Version[1], i.Path)
}

// flavor is how one vendor spells the functions, and what its compiler needs to be told to start.
type flavor struct {
	name, prefix, image string
	warm                []string
	oldest              string
}

var (
	nvidia = flavor{name: "NVRTC", prefix: "nvrtc", image: "CUBIN", oldest: "11.1"}
	amd    = flavor{name: "hiprtc", prefix: "hiprtc", image: "Code", warm: []string{"--offload-arch=gfx90a"}, oldest: "4.2"}
)

// flavorOf tells the vendor by the library's file name.
func flavorOf(path string) *flavor {
	if strings.Contains(filepath.Base(path), "nvrtc") {
		return &nvidia
	}
	return &amd
}

// places are where NVRTC is looked for: toolkits, Python wheels, distributions.
var places = []string{
	"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/targets/*/lib", "/opt/cuda/lib64",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
	"/usr/lib/python3*/*-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib", "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
	"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib",
}

// Find lists the installed NVRTCs, newest first. extra are further folders or libraries to look at, such as $CUDA_HOME/lib64
// or a virtual environment's; they come first among equals.
func Find(extra ...string) []Installation {
	return find(append(extra, places...), "libnvrtc.so", []string{"", "lib64", "lib/python3*/site-packages/nvidia/*/lib"})
}

// hipPlaces are where hiprtc is looked for: ROCm's folders and distributions.
var hipPlaces = []string{"/opt/rocm/lib", "/opt/rocm-*/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"}

// FindHIP lists the installed hiprtcs, newest first: a library of its own since ROCm 6, a part of the runtime before.
func FindHIP(extra ...string) []Installation {
	where := append(extra, hipPlaces...)
	if own := find(where, "libhiprtc.so", []string{"", "lib"}); len(own) > 0 {
		return own
	}
	return find(where, "libamdhip64.so", []string{"", "lib"})
}

// find looks for a library by its name in folders and in their named parts; a place may also be the library itself.
func find(where []string, library string, parts []string) []Installation {
	var found []Installation
	seen := map[string]bool{}
	for _, place := range where {
		if place == "" {
			continue
		}
		var patterns []string
		for _, part := range parts {
			patterns = append(patterns, filepath.Join(place, part, library+"*"))
		}
		if strings.Contains(filepath.Base(place), library) {
			patterns = []string{place}
		}
		for _, pattern := range patterns {
			matches, _ := filepath.Glob(pattern) // only a malformed pattern errs, and these are constant
			for _, m := range matches {
				real, err := filepath.EvalSymlinks(m)
				if err != nil || seen[real] {
					continue
				}
				seen[real] = true
				found = append(found, Installation{Path: real, Version: versionOf(real), Include: headersOf(real)})
			}
		}
	}
	sort.SliceStable(found, func(a, b int) bool {
		va, vb := found[a].Version, found[b].Version
		return va[0] > vb[0] || va[0] == vb[0] && va[1] > vb[1]
	})
	return found
}

// versionOf reads the version off "libnvrtc.so.11.8.89" or "libnvrtc.so.13".
func versionOf(path string) (v [2]int) {
	_, tail, _ := strings.Cut(filepath.Base(path), ".so.")
	for i, part := range strings.SplitN(tail, ".", 3) {
		if n, err := strconv.Atoi(part); err == nil && i < 2 {
			v[i] = n
		}
	}
	return v
}

// headersOf finds the headers beside a toolkit's or a wheel's library.
func headersOf(path string) []string {
	dir := filepath.Dir(path)
	for _, rel := range []string{"../include", "../../include", "../../../include", "../../cuda_runtime/include"} {
		inc := filepath.Clean(filepath.Join(dir, rel))
		if m, _ := filepath.Glob(filepath.Join(inc, "cuda_fp16.h")); len(m) == 1 { // as in Find
			out := []string{inc}
			if m, _ := filepath.Glob(filepath.Join(inc, "cccl")); len(m) == 1 { // CUDA 13 keeps CUB and libcu++ there
				out = append(out, m[0])
			}
			return out
		}
	}
	return nil
}

// library is NVRTC or hiprtc opened in this process; only a compiler child does that.
type library struct {
	*flavor
	fn      map[string]uintptr // by name without prefix
	version [2]int
}

// functions returns the names, without prefix, that a library must have.
func (f *flavor) functions() []string {
	return []string{"Version", "CreateProgram", "CompileProgram", "GetProgramLogSize", "GetProgramLog", "Get" + f.image + "Size", "Get" + f.image, "DestroyProgram"}
}

func open(path string) (*library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", flavorOf(path).name, err)
	}
	l := &library{flavor: flavorOf(path), fn: map[string]uintptr{}}
	for _, name := range l.functions() {
		if l.fn[name], err = purego.Dlsym(h, l.prefix+name); err != nil {
			return nil, fmt.Errorf("open %s %s: no function %s%s: it is older than %s", l.name, path, l.prefix, name, l.oldest)
		}
	}
	var major, minor int32
	if code := l.call("Version", uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor))); code != 0 {
		return nil, fmt.Errorf("open %s %s: %sVersion: error %d", l.name, path, l.prefix, code)
	}
	l.version = [2]int{int(major), int(minor)}
	return l, nil
}

//go:uintptrescapes
func (l *library) call(name string, args ...uintptr) int {
	r, _, _ := purego.SyscallN(l.fn[name], args...)
	return int(int32(r))
}

// compile returns the image and the log. A source that the compiler refuses has no image and no error.
func (l *library) compile(source, name string, options []string) (image []byte, log string, err error) {
	text, file := append([]byte(source), 0), append([]byte(name), 0)
	var program uintptr
	if code := l.call("CreateProgram", uintptr(unsafe.Pointer(&program)), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&file[0])), 0, 0, 0); code != 0 {
		return nil, "", fmt.Errorf("%sCreateProgram: error %d", l.prefix, code)
	}
	defer l.call("DestroyProgram", uintptr(unsafe.Pointer(&program)))
	keep := make([][]byte, len(options))
	opts := make([]unsafe.Pointer, len(options)+1)
	for i, o := range options {
		keep[i] = append([]byte(o), 0)
		opts[i] = unsafe.Pointer(&keep[i][0])
	}
	code := l.call("CompileProgram", program, uintptr(len(options)), uintptr(unsafe.Pointer(&opts[0])))
	runtime.KeepAlive(keep)
	raw, err := l.bytes(program, "GetProgramLogSize", "GetProgramLog")
	if err != nil {
		return nil, "", err
	}
	log = strings.TrimRight(string(raw), "\x00")
	if code != 0 {
		const invalidOption, internalError = 5, 11
		if code == invalidOption || code == internalError {
			log = fmt.Sprintf("%s\nerror: %s refused (code %d)", log, l.name, code)
		}
		return nil, log, nil
	}
	image, err = l.bytes(program, "Get"+l.image+"Size", "Get"+l.image)
	return image, log, err
}

func (l *library) bytes(program uintptr, size, get string) ([]byte, error) {
	var n uint64
	if code := l.call(size, program, uintptr(unsafe.Pointer(&n))); code != 0 {
		return nil, fmt.Errorf("%s%s: error %d", l.prefix, size, code)
	}
	b := make([]byte, n+1)
	if code := l.call(get, program, uintptr(unsafe.Pointer(&b[0]))); code != 0 {
		return nil, fmt.Errorf("%s%s: error %d", l.prefix, get, code)
	}
	return b[:n], nil
}
