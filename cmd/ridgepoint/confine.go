package main

import (
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"ridgepoint/harness/sandbox"
	program "ridgepoint/llm/command"
)

// networkFiles are what a client of the network reads: names of hosts, and whose certificates to trust.
var networkFiles = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/gai.conf"}

// confineModel returns what puts a model's program into the sandbox. Where this machine makes none and the person did not insist, the
// program runs without, and that is said once.
func confineModel(log zerolog.Logger) func(cmd *exec.Cmd, c program.Confinement) (bool, error) {
	var once sync.Once
	return func(cmd *exec.Cmd, c program.Confinement) (bool, error) {
		if can := sandbox.Probe(); can.Level() != sandbox.LevelFull && !c.Must {
			once.Do(func() {
				log.Warn().Str("model", c.Model).Strs("missing", can.Missing).Msg("the model's program runs without a sandbox")
			})
			return false, nil
		}
		policy := sandbox.Policy{Name: "model", WorkDir: c.Folder, Writable: true, Network: c.Network, ReadOnly: shown(c.Files),
			Limits: sandbox.Limits{Processes: 256, OpenFiles: 1024, FileBytes: 1 << 30, ScratchBytes: 256 << 20}}
		if c.Network {
			for _, f := range networkFiles {
				if _, err := os.Stat(f); err == nil {
					policy.ReadOnly = append(policy.ReadOnly, f)
				}
			}
		}
		env := []string{"TMPDIR=/tmp"}
		for _, v := range cmd.Env {
			if !strings.HasPrefix(v, "TMPDIR=") {
				env = append(env, v)
			}
		}
		confined, err := sandbox.Command(policy, sandbox.LevelFull, env, cmd.Path, cmd.Args[1:]...)
		if err != nil {
			return false, err
		}
		cmd.Path, cmd.Args, cmd.Env, cmd.Dir, cmd.SysProcAttr = confined.Path, confined.Args, confined.Env, confined.Dir, confined.SysProcAttr
		return true, nil
	}
}

// shown are the paths that a sandbox does not show anyway.
func shown(paths []string) []string {
	var out []string
	for _, p := range paths {
		if !strings.HasPrefix(p, "/usr/") && !strings.HasPrefix(p, "/bin/") && !strings.HasPrefix(p, "/sbin/") {
			out = append(out, p)
		}
	}
	return out
}
