package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ridgepoint/llm"
	"ridgepoint/llm/command"
)

const plantedKey = "sk-planted-0123456789"

func client(t *testing.T, c command.Config) *command.Client {
	t.Helper()
	c.Name = "prog"
	made, err := command.New(c, command.Hooks{
		EnvFunc: func(name string) string {
			return map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "MODEL_KEY": plantedKey, "OTHER": "hidden"}[name]
		},
		SleepFunc: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func request() *llm.Request {
	return &llm.Request{ID: "1", For: llm.Author, Messages: []llm.Message{{Role: llm.System, Text: "rules"}, {Role: llm.User, Text: "question"}}}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		config command.Config
		want   string
		kind   llm.ErrorKind
		says   string
	}{
		{"reads the prompt", command.Config{Command: []string{"cat"}}, "## system\n\nrules\n\n## user\n\nquestion\n", 0, ""},
		{"ignores the prompt", command.Config{Command: []string{"echo", "hi"}}, "hi\n", 0, ""},
		{"small environment", command.Config{Command: []string{"sh", "-c", "echo $HOME $OTHER"}}, "/nowhere\n", 0, ""},
		{"scrubbed reply", command.Config{Command: []string{"sh", "-c", "echo key=$MODEL_KEY"}, Env: []string{"MODEL_KEY"}}, "key=[secret]\n", 0, ""},
		{"scrubbed failure", command.Config{Command: []string{"sh", "-c", "echo bad $MODEL_KEY >&2; exit 3"}, Env: []string{"MODEL_KEY"}}, "", llm.KindProgram, "exit status 3: bad [secret]"},
		{"hangs", command.Config{Command: []string{"sleep", "60"}, Timeout: 50 * time.Millisecond}, "", llm.KindTimeout, "killed"},
		{"floods", command.Config{Command: []string{"yes"}, LimitBytes: 1000}, "", llm.KindTooLarge, "1000 bytes"},
		{"says nothing", command.Config{Command: []string{"true"}}, "", llm.KindGarbage, "nothing on stdout"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			reply, err := client(t, tc.config).Complete(t.Context(), request())
			if tc.kind == 0 {
				if err != nil || reply.Text != tc.want {
					t.Errorf("reply %+v, err %v, want %q", reply, err, tc.want)
				}
				return
			}
			var failed *llm.Error
			if !errors.As(err, &failed) || failed.Kind != tc.kind || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), plantedKey) {
				t.Errorf("err = %v, want kind %v and %q", err, tc.kind, tc.says)
			}
		})
	}
}

func TestGrandchildrenAreKilled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	c := client(t, command.Config{Command: []string{"sh", "-c", "sleep 300 & echo $! > " + file + "; wait"}, Timeout: 300 * time.Millisecond})
	if _, err := c.Complete(t.Context(), request()); err == nil {
		t.Fatal("want a timeout")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for _, r := range strings.TrimSpace(string(text)) {
		pid = pid*10 + int(r-'0')
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if syscall.Kill(pid, 0) != nil {
			return
		}
	}
	t.Errorf("process %d of the program still runs", pid)
}

func TestMissingProgram(t *testing.T) {
	t.Parallel()
	_, err := command.New(command.Config{Name: "x", Command: []string{"no-such-program-here"}}, command.Hooks{})
	if err == nil || !strings.Contains(err.Error(), "install it") {
		t.Errorf("err = %v, want advice", err)
	}
}
