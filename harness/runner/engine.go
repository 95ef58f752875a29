//go:build linux

package runner

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/verify"
)

// Config says how candidates run on this host.
type Config struct {
	RunDir string // for the device's lock and the children's folders
	Cores  []int  // cores given to a candidate; nil: all that this process may use
	// Reduced lets candidates that are not shipped run where this machine cannot make the full sandbox: the person's
	// `sandbox: reduced`.
	Reduced bool
}

// Validate reports what is missing.
func (c Config) Validate() error {
	if c.RunDir == "" {
		return errors.New("runner: RunDir is empty: name a folder for the lock and the children's files")
	}
	return nil
}

// Engine is the cpu of this host as a device. It is used by one goroutine at a time.
type Engine struct {
	cores   []int
	host    Host
	level   sandbox.Level
	reduced bool
	runDir  string
	arena   *arena
	lock    *os.File // the device's lock, shared with every child
	spawner *spawner
	sweep   []byte

	mu      sync.Mutex
	standby map[bool]*process // by verifying
	active  *program          // the one that is not stopped
	open    map[*program]bool
}

var _ verify.Engine = (*Engine)(nil)

// New makes the engine. It starts no child yet.
func New(c Config) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	host, err := ThisHost()
	if err != nil {
		return nil, err
	}
	e := &Engine{cores: c.Cores, host: host, level: sandbox.Probe().Level(), reduced: c.Reduced, standby: map[bool]*process{}, open: map[*program]bool{}}
	if len(e.cores) == 0 {
		e.cores = host.Cores
	}
	if err := os.MkdirAll(c.RunDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the run folder: %w", err)
	}
	if e.runDir, err = filepath.Abs(c.RunDir); err != nil {
		return nil, err
	}
	if e.lock, err = os.OpenFile(filepath.Join(e.runDir, "cpu.lock"), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, fmt.Errorf("open the device's lock: %w", err)
	}
	if e.arena, err = newArena(); err != nil {
		return nil, errors.Join(err, e.lock.Close())
	}
	e.spawner = newSpawner()
	return e, nil
}

// Host returns the processor's description.
func (e *Engine) Host() Host { return e.host }

// Cores returns the cores given to a candidate.
func (e *Engine) Cores() []int { return e.cores }

// Sandbox returns what this machine gives, for reports.
func (e *Engine) Sandbox() string { return sandbox.Probe().String() }

// Traits says that outputs up to 256 MiB are compared whole after every launch: on the host that costs no more than
// projections do.
func (e *Engine) Traits() verify.Traits {
	return verify.Traits{Target: harness.TargetCPU, WholeCompareBytes: 256 << 20, HidesInputs: true, MemoryBytes: 2 << 30}
}

// Hold takes the device's lock, which one process of this host has at a time, and returns how to give it back. The lock also
// ends with the last process that holds it.
func (e *Engine) Hold(ctx context.Context) (release func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Flock(int(e.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			return nil, fmt.Errorf("lock the cpu: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
	return func() {
		_ = unix.Flock(int(e.lock.Fd()), unix.LOCK_UN) // the descriptor is valid: it cannot fail
		e.warm()
	}, nil
}

// warm makes sure that a child of each kind stands by for the next candidate. What fails here fails again, with its reason, when
// a child is needed.
func (e *Engine) warm() {
	for _, verifying := range []bool{true, false} {
		e.mu.Lock()
		have := e.standby[verifying] != nil
		e.mu.Unlock()
		if have {
			continue
		}
		if p, err := e.spawn(verifying); err == nil {
			e.mu.Lock()
			e.standby[verifying] = p
			e.mu.Unlock()
		}
	}
}

// take returns a waiting child, or a new one.
func (e *Engine) take(verifying bool) (*process, error) {
	e.mu.Lock()
	p := e.standby[verifying]
	delete(e.standby, verifying)
	e.mu.Unlock()
	if p != nil {
		select {
		case <-p.done: // died while it waited
			_ = p.close() // nothing of a candidate was in it
		default:
			return p, nil
		}
	}
	return e.spawn(verifying)
}

// Open loads a module in a child that no candidate has touched.
func (e *Engine) Open(ctx context.Context, m verify.Module) (verify.Program, error) {
	s := m.Candidate.Structure
	if e.level != sandbox.LevelFull && !s.Shipped && !e.reduced {
		return nil, fmt.Errorf("structure %s is not shipped with Ridgepoint, and this machine cannot make the full sandbox (%s): set `sandbox: reduced` in the config to run it anyway", s.Name, e.Sandbox())
	}
	p, err := e.take(m.Verifying)
	if err != nil {
		return nil, err
	}
	var kernels []string
	for _, l := range s.Launches {
		kernels = append(kernels, l.Kernel)
	}
	e.activate(nil)
	if err := p.load(ctx, m.Path, kernels, sandbox.Probe().Notify, startTimeout); err != nil {
		return nil, e.infra(err, p)
	}
	prog := &program{engine: e, process: p, cores: 1}
	if threads(m.Path) {
		prog.cores = len(e.cores)
	}
	e.mu.Lock()
	e.open[prog] = true
	e.mu.Unlock()
	e.activate(prog)
	return prog, nil
}

// infra closes a child that could not be loaded.
func (e *Engine) infra(err error, p *process) error {
	var stop *verify.Stop
	if errors.As(err, &stop) {
		_ = p.close() // the candidate's fault is the news
		return err
	}
	return errors.Join(err, p.close())
}

// activate lets one program's processes run and stops all others, so that threads which a candidate left behind neither run
// beside another one nor touch the buffers while it is measured.
func (e *Engine) activate(p *program) {
	if e.active == p {
		return
	}
	if e.active != nil {
		_ = unix.Kill(-e.active.process.cmd.Process.Pid, unix.SIGSTOP) // ESRCH: it has ended
	}
	if p != nil {
		_ = unix.Kill(-p.process.cmd.Process.Pid, unix.SIGCONT) // ESRCH: the next request says so
	}
	e.active = p
}

// Close ends every child.
func (e *Engine) Close() error {
	var err error
	for p := range e.open {
		err = errors.Join(err, p.Close())
	}
	e.mu.Lock()
	waiting := e.standby
	e.standby = map[bool]*process{}
	e.mu.Unlock()
	for _, p := range waiting {
		err = errors.Join(err, p.close())
	}
	e.spawner.close()
	return errors.Join(err, e.arena.close(), e.lock.Close())
}

func (e *Engine) coreList() string {
	if len(e.cores) == len(e.host.Cores) {
		return ""
	}
	words := make([]string, len(e.cores))
	for i, c := range e.cores {
		words[i] = strconv.Itoa(c)
	}
	return strings.Join(words, ",")
}

// program is a candidate loaded in a child.
type program struct {
	engine  *Engine
	process *process
	cores   int // that it may keep busy: one, unless it can make threads
}

// threads reports whether a shared object calls what makes threads. What cannot be read may.
func threads(object string) bool {
	f, err := elf.Open(object)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }() // read only
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(symbols, func(s elf.ImportedSymbol) bool {
		return s.Name == "pthread_create" || s.Name == "thrd_create" || strings.HasPrefix(s.Name, "GOMP_") || strings.HasPrefix(s.Name, "__kmpc_")
	})
}

// Close ends the child.
func (p *program) Close() error {
	if p.engine.active == p {
		p.engine.active = nil
	}
	p.engine.mu.Lock()
	known := p.engine.open[p]
	delete(p.engine.open, p)
	p.engine.mu.Unlock()
	if !known {
		return nil
	}
	return p.process.close()
}
