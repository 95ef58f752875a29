package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"ridgepoint/harness/sandbox"
	"ridgepoint/llm"
	program "ridgepoint/llm/command"
)

// TestModelProgramIsConfined runs a script as the model, which tries to read a file of this user's and to reach a port of this machine.
func TestModelProgramIsConfined(t *testing.T) {
	t.Parallel()
	if sandbox.Probe().Level() != sandbox.LevelFull {
		t.Skipf("this machine makes no full sandbox: %s", sandbox.Probe())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the test is over
	dir := t.TempDir()
	secret, script := filepath.Join(dir, "diary"), filepath.Join(dir, "model")
	text := fmt.Sprintf("#!/bin/bash\nread -r first\necho \"asked: $first\"\ncat %s 2>&1\n(exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null && echo connected\necho scratch > note && cat note\n",
		secret, listener.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("dear diary\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config program.Config
		has    []string
		lacks  []string
	}{
		"auto":         {program.Config{}, []string{"asked: why", "No such file", "scratch"}, []string{"dear diary", "connected"}},
		"full":         {program.Config{Sandbox: "full"}, []string{"asked: why", "No such file"}, []string{"dear diary", "connected"}},
		"with a file":  {program.Config{Files: []string{secret}}, []string{"dear diary"}, []string{"connected"}},
		"with network": {program.Config{Network: true}, []string{"connected", "No such file"}, []string{"dear diary"}},
		"off":          {program.Config{Sandbox: "off"}, []string{"dear diary", "connected", "scratch"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.config.Name, tc.config.Command = "m", []string{script}
			client, err := program.New(tc.config, program.Hooks{EnvFunc: os.Getenv, SandboxFunc: confineModel(zerolog.Nop())})
			if err != nil {
				t.Fatal(err)
			}
			reply, err := client.Complete(t.Context(), &llm.Request{ID: "1", For: llm.Author, Messages: []llm.Message{{Role: llm.User, Text: "why"}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range tc.has {
				if !strings.Contains(reply.Text, s) {
					t.Errorf("lacks %q: %s", s, reply.Text)
				}
			}
			for _, s := range tc.lacks {
				if strings.Contains(reply.Text, s) {
					t.Errorf("has %q: %s", s, reply.Text)
				}
			}
		})
	}
}

func TestModelProgramSaysWhatItMayLack(t *testing.T) {
	t.Parallel()
	if sandbox.Probe().Level() != sandbox.LevelFull {
		t.Skipf("this machine makes no full sandbox: %s", sandbox.Probe())
	}
	client, err := program.New(program.Config{Name: "m", Command: []string{"/bin/sh", "-c", "echo offline >&2; exit 4"}}, program.Hooks{EnvFunc: os.Getenv, SandboxFunc: confineModel(zerolog.Nop())})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Complete(t.Context(), &llm.Request{ID: "1", For: llm.Author, Messages: []llm.Message{{Role: llm.User, Text: "why"}}})
	for _, want := range []string{"exit status 4", "offline", "network: true", "sandbox: off"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
}
