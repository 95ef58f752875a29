package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"ridgepoint/harness/device"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain/nvrtc"
)

// doctorCmd says what this machine can do, and for what it cannot, the command that would change it.
type doctorCmd struct {
	JSON bool `help:"Print one JSON object a line instead of a table."`
}

// finding is one row of doctor's answer.
type finding struct {
	Area   string `json:"area"`   // what it serves
	What   string `json:"what"`   // the thing looked for
	Found  bool   `json:"found"`  // it is here and answers
	Detail string `json:"detail"` // version, place, number
	Remedy string `json:"remedy,omitempty"`
}

// Run prints the findings. It fails only when nothing at all can be measured here: no C compiler and no GPU.
func (d doctorCmd) Run(ctx context.Context, env environment) error {
	findings := examine(ctx)
	if d.JSON {
		enc := json.NewEncoder(env.stdout)
		for _, f := range findings {
			if err := enc.Encode(f); err != nil {
				return err
			}
		}
	} else if err := printFindings(env.stdout, findings); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Found && (f.What == whatCC || f.What == whatGPU) {
			return nil
		}
	}
	return &exitError{exitInfra, fmt.Errorf("nothing can be measured here: there is no C compiler and no GPU; %s", remedy(needCC))}
}

// Names of the two findings that decide whether anything can be measured.
const (
	whatCC  = "C compiler"
	whatGPU = "CUDA device"
)

// examine looks at everything, in the order it is printed.
func examine(ctx context.Context) []finding {
	findings := []finding{examineHost(), examineCompiler(ctx), examineSandbox()}
	findings = append(findings, examineGPUs()...)
	findings = append(findings,
		examineNVRTC(),
		examineProgram(ctx, "target cuda", "nvcc", "compiles sources that need host headers; NVRTC serves the rest", "", "--version"),
		examineProgram(ctx, "profiles", "ncu", "without it profiles come from the compiler's report and the roofline", "", "--version"),
		examineProgram(ctx, "target hip", "hipcc", "", needHIPCC, "--version"),
		examineProgram(ctx, "fleets", "redis-server", "a single machine needs none: the queue runs in process", needRedis, "--version"),
		examineProgram(ctx, "tests", "g++", "the emulated CUDA device is built with it", needCXX, "--version"),
	)
	return findings
}

func examineHost() finding {
	f := finding{Area: "host", What: "cores", Found: true, Detail: fmt.Sprintf("%d %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)}
	if runtime.NumCPU() < 4 {
		f.Detail += "; fewer than four: compiling and timing take turns"
	}
	return f
}

func examineCompiler(ctx context.Context) finding {
	f := finding{Area: "target cpu", What: whatCC, Remedy: remedy(needCC)}
	for _, name := range []string{"gcc", "clang", "cc"} {
		if path, err := exec.LookPath(name); err == nil {
			f.Found, f.Detail, f.Remedy = true, firstLine(ctx, path, "--version"), ""
			return f
		}
	}
	f.Detail = "no gcc, clang or cc on PATH"
	return f
}

func examineSandbox() finding {
	c := sandbox.Probe()
	f := finding{Area: "host code", What: "sandbox", Found: c.Level() == sandbox.LevelFull, Detail: c.String()}
	if !f.Found {
		f.Detail += "; C structures that are not shipped are refused unless the config says sandbox: reduced"
		f.Remedy = strings.Join(c.Missing, "; ")
	}
	return f
}

// examineNVRTC lists what the toolchain itself would find, and what lies in the home folder's wheels.
func examineNVRTC() finding {
	f := finding{Area: "target cuda", What: "NVRTC"}
	local := ""
	if home, err := os.UserHomeDir(); err == nil {
		local = filepath.Join(home, ".local")
	}
	var found []string
	for _, installation := range nvrtc.Find(local) {
		found = append(found, installation.Path)
	}
	if len(found) == 0 {
		f.Detail, f.Remedy = "no libnvrtc in the toolkit's, the wheels' or the system's folders", remedy(needNVRTC)+"  (Debian: component non-free)"
		return f
	}
	f.Found, f.Detail = true, strings.Join(found, ", ")
	return f
}

func examineProgram(ctx context.Context, area, program, without string, n need, versionFlag string) finding {
	f := finding{Area: area, What: program}
	path, err := exec.LookPath(program)
	if err != nil {
		for _, folder := range []string{"/usr/local/cuda/bin", "/opt/rocm/bin"} {
			if _, err := os.Stat(filepath.Join(folder, program)); err == nil {
				path = filepath.Join(folder, program)
			}
		}
	}
	if path == "" {
		f.Detail = "not on PATH"
		if without != "" {
			f.Detail += "; " + without
		}
		if n != "" {
			f.Remedy = remedy(n)
		} else {
			f.Remedy = "comes with NVIDIA's CUDA toolkit"
		}
		return f
	}
	f.Found, f.Detail = true, firstLine(ctx, path, versionFlag)
	return f
}

// firstLine runs a program and returns the line of its output that holds a version, else the first.
func firstLine(ctx context.Context, path string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).Output()
	if err != nil {
		return fmt.Sprintf("%s does not answer %s: %v", path, strings.Join(args, " "), err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, l := range lines {
		if strings.Contains(l, "release") || strings.Contains(strings.ToLower(l), "version") && strings.ContainsAny(l, "0123456789") {
			return strings.TrimSpace(l) + " (" + path + ")"
		}
	}
	return strings.TrimSpace(lines[0]) + " (" + path + ")"
}

func printFindings(w io.Writer, findings []finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.What))
	}
	for _, f := range findings {
		mark := "ok     "
		if !f.Found {
			mark = "missing"
		}
		if _, err := fmt.Fprintf(w, "%s  %-11s  %-*s  %s\n", mark, f.Area, width, f.What, f.Detail); err != nil {
			return err
		}
		if f.Remedy != "" {
			if _, err := fmt.Fprintf(w, "%*s  -> %s\n", 22+width, "", f.Remedy); err != nil {
				return err
			}
		}
	}
	return nil
}

// examineGPUs lists the cards of both drivers, each with its arch and memory.
func examineGPUs() []finding {
	var out []finding
	for _, g := range []struct {
		area, what, remedy string
		open               func(string) (*device.Driver, error)
	}{
		{"target cuda", whatGPU, "install NVIDIA's driver; without a card `target: cuda, arch: emulated` checks correctness", device.OpenCUDA},
		{"target hip", "HIP device", "install AMD's ROCm runtime", device.OpenHIP},
	} {
		out = append(out, examineDriver(g.area, g.what, g.remedy, g.open)...)
	}
	return out
}

func examineDriver(area, what, remedy string, open func(string) (*device.Driver, error)) []finding {
	missing := finding{Area: area, What: what, Remedy: remedy}
	driver, err := open("")
	if errors.Is(err, device.ErrNoDriver) {
		missing.Detail = "no driver on this machine that finds a device"
		return []finding{missing}
	}
	if err != nil {
		missing.Detail = err.Error()
		return []finding{missing}
	}
	devices, err := driver.Devices()
	if err != nil || len(devices) == 0 {
		missing.Detail = fmt.Sprintf("driver %s answers, but lists no device: %v", driver.VersionString(), err)
		return []finding{missing}
	}
	var out []finding
	for _, d := range devices {
		out = append(out, finding{Area: area, What: what, Found: true,
			Detail: fmt.Sprintf("%s, %s, %d MiB, driver API %s", d.Name, d.Arch, d.MemoryByte>>20, driver.VersionString())})
	}
	return out
}
