package main

import (
	"errors"
	"strings"
	"testing"
)

func TestPackageCommands(t *testing.T) {
	t.Parallel()
	only := func(program string) func(string) (string, error) {
		return func(name string) (string, error) {
			if name == program {
				return "/usr/bin/" + name, nil
			}
			return "", errors.New("not found")
		}
	}
	for _, c := range []struct {
		program string
		need    need
		asRoot  bool
		want    string
	}{
		{"apt-get", needCC, true, "apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev"},
		{"apt-get", needRedis, false, "sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server"},
		{"dnf", needCC, false, "sudo dnf install -y gcc"},
		{"apk", needCC, true, "apk add gcc musl-dev"},
		{"pacman", needCC, true, "pacman -S --noconfirm gcc"},
		{"zypper", needCC, true, "zypper --non-interactive install gcc"},
		{"brew", needCC, false, "brew install gcc"},
		{"dnf", needNVRTC, true, ""},
		{"none", needCC, true, ""},
	} {
		t.Run(c.program+"/"+string(c.need), func(t *testing.T) {
			t.Parallel()
			var parts []string
			for _, line := range findPackageManager(only(c.program)).commands(c.need, c.asRoot) {
				parts = append(parts, strings.Join(line, " "))
			}
			if got := strings.Join(parts, " && "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
