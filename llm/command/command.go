// Package command runs an external program as a model: the prompt on its stdin, the reply on its stdout. Any command line tool that
// answers a prompt can so be the author. The program gets an empty folder, a small environment and limits; its process group is
// killed when it overruns them.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ridgepoint/llm"
)

// Config describes one program.
type Config struct {
	Name       string        `yaml:"-" json:"name"`
	Command    []string      `yaml:"command" json:"command"`
	Timeout    time.Duration `yaml:"timeout" json:"timeout,omitempty"` // 0: ten minutes
	Retries    int           `yaml:"retries" json:"retries,omitempty"`
	LimitBytes int64         `yaml:"limit_bytes" json:"limit_bytes,omitempty"` // of stdout; 0: 4 MB
	// Env names variables that the program may see besides PATH, HOME, LANG and TMPDIR.
	Env []string `yaml:"env" json:"env,omitempty"`
	// Sandbox is full (the program runs in a sandbox or not at all), off, or auto: in a sandbox where the machine makes one.
	Sandbox string   `yaml:"sandbox" json:"sandbox,omitempty"` // "": auto
	Network bool     `yaml:"network" json:"network,omitempty"` // that the sandbox leaves the program the network
	Files   []string `yaml:"files" json:"files,omitempty"`     // files and folders that it may read there besides the system's
}

// Confinement is what a sandbox leaves the program.
type Confinement struct {
	Model   string // for messages
	Must    bool   // refuse to run it unconfined
	Folder  string // its own, writable
	Network bool
	Files   []string // absolute, with the program's own
}

// The words of Config.Sandbox.
const (
	sandboxAuto = "auto"
	sandboxFull = "full"
	sandboxOff  = "off"
)

const (
	defaultTimeout    = 10 * time.Minute
	defaultLimitBytes = 4 << 20
	stderrBytes       = 4096
	firstPause        = time.Second
)

// argumentSecret are forms of arguments that look like keys: an argument is visible to everyone in the process list.
var argumentSecret = []string{"sk-", "--api-key=", "--key=", "--token=", "Bearer "}

// Validate says what is wrong with the program and what to write instead.
func (c Config) Validate() error {
	where := "llm.models." + c.Name
	if len(c.Command) == 0 || c.Command[0] == "" {
		return fmt.Errorf("%s.command: want a list: [PROGRAM, ARGUMENT, ...]", where)
	}
	for _, a := range c.Command {
		for _, form := range argumentSecret {
			if strings.HasPrefix(a, form) {
				return fmt.Errorf("%s.command: an argument that begins with %q would show a key in the process list: pass it by a variable named in env", where, form)
			}
		}
	}
	if c.Sandbox != "" && c.Sandbox != sandboxAuto && c.Sandbox != sandboxFull && c.Sandbox != sandboxOff {
		return fmt.Errorf("%s.sandbox: %q; want auto, full or off", where, c.Sandbox)
	}
	for _, f := range c.Files {
		if !filepath.IsAbs(f) {
			return fmt.Errorf("%s.files: %s: write the whole path: the program does not run where you are", where, f)
		}
	}
	if c.Timeout < 0 || c.Retries < 0 || c.LimitBytes < 0 {
		return fmt.Errorf("%s: timeout, retries and limit_bytes may not be negative", where)
	}
	return nil
}

// Hooks connect the program to its surroundings. Nil fields do without.
type Hooks struct {
	// EnvFunc reads a variable of this process's environment.
	EnvFunc func(name string) string
	// SandboxFunc wraps the command before it starts, so that it sees no more than the confinement says. It reports whether it did: a
	// machine without the means leaves the command as it is, unless the confinement must be.
	SandboxFunc func(cmd *exec.Cmd, c Confinement) (bool, error)
	ArrivedFunc func(requestID string, r *llm.Reply) error
	SleepFunc   func(ctx context.Context, d time.Duration) error
}

// Client runs one program a request. It is safe for concurrent use.
type Client struct {
	config Config
	hooks  Hooks
	env    []string
	scrub  llm.Scrubber
}

// New returns a client. The program is looked up now, so that a missing one is found before the night begins.
func New(c Config, hooks Hooks) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, fmt.Errorf("llm.models.%s.command: %w: install it or write its whole path", c.Name, err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("llm.models.%s.command: %w", c.Name, err)
	}
	c.Command = append([]string{path}, c.Command[1:]...)
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.LimitBytes == 0 {
		c.LimitBytes = defaultLimitBytes
	}
	client := &Client{config: c, hooks: hooks}
	var secrets []llm.Secret
	if hooks.EnvFunc != nil {
		for _, name := range []string{"PATH", "HOME", "LANG"} {
			client.env = append(client.env, name+"="+hooks.EnvFunc(name))
		}
		for _, name := range c.Env {
			value := hooks.EnvFunc(name)
			client.env = append(client.env, name+"="+value)
			secrets = append(secrets, llm.NewSecret(value))
		}
	}
	client.scrub = llm.NewScrubber(secrets...)
	return client, nil
}

// MaxTokens returns what the output limit allows at most of a usual reply, for budgets: the program states none.
func (c *Client) MaxTokens() int { return 8192 }

// Complete runs the program, again after a failure as often as configured, and returns what it printed.
func (c *Client) Complete(ctx context.Context, r *llm.Request) (*llm.Reply, error) {
	started := time.Now()
	for call := 1; ; call++ {
		text, err := c.once(ctx, prompt(r))
		if err == nil {
			reply := &llm.Reply{Text: text, Model: c.config.Name, Served: filepath.Base(c.config.Command[0]), FinishReason: "stop", Calls: call,
				Took:  time.Since(started),
				Usage: llm.Usage{PromptTokens: r.PromptTokens(), CompletionTokens: llm.EstimateTokens(text), Estimated: true}}
			if c.hooks.ArrivedFunc != nil {
				if err := c.hooks.ArrivedFunc(r.ID, reply); err != nil {
					return nil, fmt.Errorf("keep reply %s: %w", r.ID, err)
				}
			}
			return reply, nil
		}
		var failed *llm.Error
		if !errors.As(err, &failed) || call > c.config.Retries {
			return nil, err
		}
		if err := c.sleep(ctx, firstPause<<min(call-1, 6)); err != nil {
			return nil, err
		}
	}
}

func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	if c.hooks.SleepFunc != nil {
		return c.hooks.SleepFunc(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// prompt writes a conversation as plain text: a single user message as it stands, else each message under its role.
func prompt(r *llm.Request) string {
	if len(r.Messages) == 1 {
		return r.Messages[0].Text
	}
	var b strings.Builder
	for i, m := range r.Messages {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "## %s\n\n%s", m.Role, m.Text)
	}
	b.WriteByte('\n')
	return b.String()
}

func (c *Client) once(ctx context.Context, prompt string) (string, error) {
	dir, err := os.MkdirTemp("", "ridgepoint-model-")
	if err != nil {
		return "", fmt.Errorf("make a folder for model %s: %w", c.config.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // an empty folder left in the temporary directory harms nobody
	timed, stop := context.WithTimeout(ctx, c.config.Timeout)
	defer stop()
	cmd := exec.CommandContext(timed, c.config.Command[0], c.config.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append([]string{"TMPDIR=" + dir}, c.env...), strings.NewReader(prompt)
	out, errs := &limitedBuffer{limit: int(c.config.LimitBytes), overFunc: stop}, &limitedBuffer{limit: stderrBytes, overFunc: func() {}}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second // a grandchild that keeps stdout open does not hold us
	confined, err := c.confine(cmd, dir)
	if err != nil {
		return "", err
	}
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the program left behind; usually there is nothing
	}
	text := c.scrub.Scrub(strings.ToValidUTF8(out.String(), "?"))
	said := strings.TrimSpace(c.scrub.Scrub(strings.ToValidUTF8(errs.String(), "?")))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case out.over:
		return "", c.fail(llm.KindTooLarge, fmt.Sprintf("more than %d bytes on stdout; it was killed", c.config.LimitBytes))
	case timed.Err() != nil:
		return "", c.fail(llm.KindTimeout, fmt.Sprintf("no reply within %s; it was killed. %s", c.config.Timeout, said))
	case err != nil:
		return "", c.fail(llm.KindProgram, fmt.Sprintf("%v: %s%s", err, said, c.advice(confined)))
	case strings.TrimSpace(text) == "":
		return "", c.fail(llm.KindGarbage, "nothing on stdout. "+said+c.advice(confined))
	default:
		return text, nil
	}
}

func (c *Client) fail(kind llm.ErrorKind, reason string) *llm.Error {
	return &llm.Error{Kind: kind, Model: c.config.Name, Calls: 1, Reason: strings.TrimSpace(reason)}
}

// limitedBuffer keeps up to limit bytes, drops the rest and says so once. It does not embed the buffer: io.Copy would find its
// ReadFrom and go round the limit.
type limitedBuffer struct {
	kept     bytes.Buffer
	limit    int
	overFunc func()
	over     bool
}

// Write keeps what fits.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	_, _ = b.kept.Write(p[:min(len(p), room)]) // a bytes.Buffer does not fail
	if len(p) > room && !b.over {
		b.over = true
		b.overFunc()
	}
	return len(p), nil
}

func (b *limitedBuffer) String() string { return b.kept.String() }
