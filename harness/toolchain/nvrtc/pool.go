package nvrtc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ridgepoint/harness/sandbox"
)

// Config says how a Pool compiles.
type Config struct {
	Children    int           // at once; 0: 1
	Timeout     time.Duration // of one compile; 0: 30 s
	MemoryBytes uint64        // address space of a child; 0: 8 GiB
	ReadOnly    []string      // folders that a child may read besides the system's and the toolkit's: the person's include_dirs
	Reduced     bool          // run children where the full sandbox is not to be had
}

// Pool keeps compiler children of one installation. It is safe for concurrent use.
type Pool struct {
	install Installation
	config  Config
	turns   chan struct{} // Children of them: each is a turn to compile
	version [2]int

	mu   sync.Mutex
	idle []*child // the last one used comes first: a child more is started only when all are at work
}

// Result is what a compile gave. Image is nil when the source was refused; then Log says why.
type Result struct {
	Image   []byte
	Log     string
	Version [2]int
	Took    time.Duration
}

// ErrLimit is wrapped when a source made its compiler run past its limits or crash: a result about the source.
var ErrLimit = errors.New("the compiler ran past its limits")

// NewPool starts one child of the installation, to know that it works; the others start when they are needed.
func NewPool(install Installation, config Config) (*Pool, error) {
	config.Children = max(config.Children, 1)
	if config.Timeout == 0 {
		config.Timeout = 30 * time.Second
	}
	if config.MemoryBytes == 0 {
		config.MemoryBytes = 8 << 30
	}
	p := &Pool{install: install, config: config, turns: make(chan struct{}, config.Children)}
	first, err := p.start()
	if err != nil {
		return nil, err
	}
	p.version = first.version
	p.idle = append(p.idle, first)
	for range config.Children {
		p.turns <- struct{}{}
	}
	return p, nil
}

// Version returns the compiler's own version, major and minor.
func (p *Pool) Version() [2]int { return p.version }

// Installation returns what the pool compiles with.
func (p *Pool) Installation() Installation { return p.install }

// Compile compiles source, called name in messages, with the compiler's own options. It waits for a free child. A refused source is a
// Result without an Image; ErrLimit is wrapped when the source hung or crashed its compiler, which is then replaced.
func (p *Pool) Compile(ctx context.Context, source, name string, options []string) (*Result, error) {
	select {
	case <-p.turns:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c := p.take()
	defer func() {
		p.put(c)
		p.turns <- struct{}{}
	}()
	if c == nil {
		fresh, err := p.start()
		if err != nil {
			return nil, err
		}
		c = fresh
	}
	start := time.Now()
	r, err := c.ask(ctx, p.config.Timeout, request{Source: source, Name: name, Options: options})
	if err != nil {
		c.kill()
		c = nil
		return nil, err
	}
	if c.served++; c.served >= recycleAfter {
		c.kill()
		c = nil
	}
	if r.Error != "" {
		return nil, fmt.Errorf("compile with %s: %s", p.install, r.Error)
	}
	return &Result{Image: r.Image, Log: r.Log, Version: r.Version, Took: time.Since(start)}, nil
}

// take returns a child that waits for work, or nil.
func (p *Pool) take() *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c
}

// put gives a child back; nil: it is gone.
func (p *Pool) put(c *child) {
	if c == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// recycleAfter bounds what a leak in the compiler can amount to.
const recycleAfter = 2000

// Close ends the children. It waits for compiles that run.
func (p *Pool) Close() {
	for range cap(p.turns) {
		<-p.turns
	}
	for c := p.take(); c != nil; c = p.take() {
		c.kill()
	}
	for range cap(p.turns) {
		p.turns <- struct{}{}
	}
}

type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	enc     *json.Encoder
	replies chan reply // closed when the child is gone
	version [2]int
	served  int
	folder  string // its own, removed with it; "": none
}

func (p *Pool) start() (*child, error) {
	level := sandbox.LevelFull
	if p.config.Reduced && sandbox.Probe().Level() != sandbox.LevelFull {
		level = sandbox.LevelReduced
	}
	work, err := os.MkdirTemp("", "ridgepoint-nvrtc-")
	if err != nil {
		return nil, err
	}
	keep, started := flavorOf(p.install.Path) == &amd, false // hiprtc looks at the folder that it stands in, and writes beside it
	defer func() {
		if !keep || !started {
			_ = os.RemoveAll(work) // empty; the child only stands in it
		}
	}()
	readOnly := append([]string{filepath.Dir(p.install.Path)}, p.install.Include...)
	policy := sandbox.Policy{
		Name: "nvrtc", WorkDir: work, Writable: keep, ReadOnly: append(readOnly, p.config.ReadOnly...),
		Limits: sandbox.Limits{MemoryBytes: p.config.MemoryBytes, FileBytes: 64 << 20, OpenFiles: 256},
	}
	cmd, err := sandbox.Command(policy, level, []string{"LC_ALL=C", "TMPDIR=/tmp"}, "self", childArgument, p.install.Path)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a compiler child: %w", err)
	}
	c := &child{cmd: cmd, in: in, enc: json.NewEncoder(in), replies: make(chan reply)}
	if started = true; keep {
		c.folder = work
	}
	go c.read(out)
	select {
	case r, ok := <-c.replies:
		if !ok || r.Error != "" {
			c.kill()
			return nil, fmt.Errorf("start a compiler child with %s: it ended at once %s", p.install, r.Error)
		}
		c.version = r.Version
	case <-time.After(p.config.Timeout):
		c.kill()
		return nil, fmt.Errorf("start a compiler child with %s: no answer within %v", p.install, p.config.Timeout)
	}
	return c, nil
}

// read owns replies; it ends when the child's output closes.
func (c *child) read(out io.Reader) {
	defer close(c.replies)
	dec := json.NewDecoder(out)
	for {
		var r reply
		if dec.Decode(&r) != nil {
			return
		}
		c.replies <- r
	}
}

func (c *child) ask(ctx context.Context, timeout time.Duration, rq request) (reply, error) {
	if err := c.enc.Encode(rq); err != nil {
		return reply{}, fmt.Errorf("the compiler child is gone: %w", err)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r, ok := <-c.replies:
		if !ok {
			return reply{}, fmt.Errorf("it crashed: %w", ErrLimit)
		}
		return r, nil
	case <-timer.C:
		return reply{}, fmt.Errorf("no answer within %v: %w", timeout, ErrLimit)
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

func (c *child) kill() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // it may be gone already
	_ = c.in.Close()                                      // likewise
	for range c.replies {                                 // until read has ended
	}
	_ = c.cmd.Wait() // its status says nothing more
	if c.folder != "" {
		_ = os.RemoveAll(c.folder) // made for it alone
	}
}
