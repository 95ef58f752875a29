package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// need is something that Ridgepoint uses and a system's package manager can bring.
type need string

// The needs.
const (
	needCC    need = "cc"
	needCXX   need = "c++"
	needRedis need = "redis-server"
	needNVRTC need = "nvrtc"
	needHIPCC need = "hipcc"
)

// packageManager is one system's way to install packages. A need without a package there is not in that system's archive.
type packageManager struct {
	program  string
	install  []string // arguments before the package's name
	refresh  []string // run first, as some managers know no package before it; nil: not needed
	packages map[need]string
}

var packageManagers = []packageManager{
	{"apt-get", []string{"install", "-y", "--no-install-recommends"}, []string{"update"},
		map[need]string{needCC: "gcc libc6-dev", needCXX: "g++", needRedis: "redis-server", needNVRTC: "libnvrtc11.2", needHIPCC: "hipcc"}},
	{"dnf", []string{"install", "-y"}, nil, map[need]string{needCC: "gcc", needCXX: "gcc-c++", needRedis: "redis"}},
	{"zypper", []string{"--non-interactive", "install"}, nil, map[need]string{needCC: "gcc", needCXX: "gcc-c++", needRedis: "redis"}},
	{"pacman", []string{"-S", "--noconfirm"}, nil, map[need]string{needCC: "gcc", needCXX: "gcc", needRedis: "redis", needNVRTC: "cuda"}},
	{"apk", []string{"add"}, nil, map[need]string{needCC: "gcc musl-dev", needCXX: "g++", needRedis: "redis"}},
	{"brew", []string{"install"}, nil, map[need]string{needCC: "gcc", needCXX: "gcc", needRedis: "redis"}},
}

// findPackageManager returns the first package manager of this machine, or nil.
func findPackageManager(lookPath func(string) (string, error)) *packageManager {
	for i := range packageManagers {
		if _, err := lookPath(packageManagers[i].program); err == nil {
			return &packageManagers[i]
		}
	}
	return nil
}

// commands returns the command lines that install n, in order, or nil when this manager cannot. asRoot prefixes sudo.
func (m *packageManager) commands(n need, asRoot bool) [][]string {
	if m == nil || m.packages[n] == "" {
		return nil
	}
	var prefix []string
	if !asRoot && m.program != "brew" {
		prefix = []string{"sudo"}
	}
	line := func(args ...string) []string {
		return append(append(append([]string{}, prefix...), m.program), args...)
	}
	var out [][]string
	if m.refresh != nil {
		out = append(out, line(m.refresh...))
	}
	return append(out, line(append(append([]string{}, m.install...), strings.Fields(m.packages[n])...)...))
}

// remedy is the command that a person should type to get n, on one line.
func remedy(n need) string {
	commands := findPackageManager(exec.LookPath).commands(n, os.Geteuid() == 0)
	if commands == nil {
		return fmt.Sprintf("install %s with this system's package manager", n)
	}
	var parts []string
	for _, c := range commands {
		parts = append(parts, strings.Join(c, " "))
	}
	return strings.Join(parts, " && ")
}

// installNeed installs n through the system's package manager, writing each command line and its output to env.stderr.
func installNeed(ctx context.Context, env environment, n need) error {
	commands := findPackageManager(exec.LookPath).commands(n, os.Geteuid() == 0)
	if commands == nil {
		return &exitError{exitInfra, fmt.Errorf("--setup cannot install %s: no package manager of %s that has it is here; install it by hand", n, managerNames())}
	}
	for _, c := range commands {
		if _, err := fmt.Fprintf(env.stderr, "+ %s\n", strings.Join(c, " ")); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, c[0], c[1:]...)
		cmd.Stdout, cmd.Stderr = env.stderr, env.stderr
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := cmd.Run(); err != nil {
			return &exitError{exitInfra, fmt.Errorf("install %s: %s: %w; run it by hand to see what it asks for", n, strings.Join(c, " "), err)}
		}
	}
	return nil
}

func managerNames() string {
	names := make([]string, len(packageManagers))
	for i, m := range packageManagers {
		names[i] = m.program
	}
	return strings.Join(names, ", ")
}
