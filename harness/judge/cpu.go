package judge

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/runner"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/toolchain/cc"
)

// cpu is the cpu target: cc compiles, runner children run, the judge stays in this process.
type cpu struct {
	config Config

	mu       sync.Mutex // guards the finding and making of both
	compiler *cc.Compiler
	engine   *runner.Engine

	bout sync.Mutex // one evaluation at a time
}

func newCPU(c Config) *cpu { return &cpu{config: c} }

// Target is the cpu.
func (c *cpu) Target() harness.Target { return harness.TargetCPU }

// find returns the compiler, looked for once it is needed.
func (c *cpu) find(ctx context.Context) (*cc.Compiler, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiler == nil {
		found, err := cc.Find(ctx, c.config.Compiler, cc.Config{})
		if err != nil {
			return nil, err
		}
		c.compiler = found
	}
	return c.compiler, nil
}

// Key returns the cache key of a candidate's build.
func (c *cpu) Key(ctx context.Context, candidate *harness.Candidate) (string, error) {
	compiler, err := c.find(ctx)
	if err != nil {
		return "", err
	}
	return compiler.Key(candidate), nil
}

// Compile builds a candidate in the sandbox; a reduced one serves shipped sources, and others where the person said so.
func (c *cpu) Compile(ctx context.Context, candidate *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error) {
	compiler, err := c.find(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if probe := sandbox.Probe(); probe.Level() != sandbox.LevelFull {
		if !candidate.Structure.Shipped && !c.config.ReducedSandbox {
			return nil, nil, nil, fmt.Errorf("structure %s is not shipped with Ridgepoint, and this machine cannot make the full sandbox (%s): set `sandbox: reduced` in the config to build it anyway",
				candidate.Structure.Name, probe)
		}
		c.config.Log.Warn().Str("structure", candidate.Structure.Name).Strs("missing", probe.Missing).Msg("compiling in a reduced sandbox")
		compiler = compiler.WithLevel(probe.Level())
	}
	return compiler.Compile(ctx, candidate)
}

// Judge evaluates on this host's processor, one bout at a time, holding the device's lock.
func (c *cpu) Judge(ctx context.Context, b Bout) (*harness.Report, error) {
	c.bout.Lock()
	defer c.bout.Unlock()
	engine, err := c.device()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	notice := time.AfterFunc(2*time.Second, func() {
		c.config.Log.Warn().Str("holder", engine.Holder()).Msg("another process of this host is measuring: waiting for the cpu")
	})
	release, err := engine.Hold(ctx)
	notice.Stop()
	if err != nil {
		return nil, fmt.Errorf("wait for the cpu: %w", err)
	}
	defer release()
	waited := time.Since(begin)
	b.Engine = engine
	b.Environment = c.environment(engine, b.Module.Build.Toolchain)
	foreign := engine.Foreign()
	r, err := Evaluate(ctx, b)
	if err != nil {
		return nil, err
	}
	if share := foreign(); share > foreignShare {
		r.Environment.Throttle = append(r.Environment.Throttle, fmt.Sprintf("other processes took %.0f %% of the cores", 100*share))
	}
	r.Split.Queue = waited.Seconds()
	return r, nil
}

// foreignShare is how much of the cores' time may go to other processes unsaid: a quiet machine's background is 1 to 3 %.
const foreignShare = 0.05

// device makes the engine once it is needed.
func (c *cpu) device() (*runner.Engine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine == nil {
		e, err := runner.New(runner.Config{RunDir: c.config.RunDir, Cores: c.config.Cores, Reduced: c.config.ReducedSandbox})
		if err != nil {
			return nil, err
		}
		c.engine = e
	}
	return c.engine, nil
}

func (c *cpu) environment(e *runner.Engine, compiler string) harness.Environment {
	host, _ := os.Hostname() // "": the record then names no host
	var u unix.Utsname
	_ = unix.Uname(&u) // cannot fail with a valid pointer
	release := strings.TrimRight(string(u.Release[:]), "\x00")
	return harness.Environment{
		Ridgepoint: c.config.Version, Host: host, OS: runtime.GOOS + " " + release + " " + runtime.GOARCH, Device: e.Host().Name, DeviceID: "cpu",
		Cores: len(e.Cores()), Toolchain: compiler, Flush: "block", Sandbox: e.Sandbox(),
	}
}

// Close ends the children.
func (c *cpu) Close() error {
	c.bout.Lock()
	defer c.bout.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine == nil {
		return nil
	}
	err := c.engine.Close()
	c.engine = nil
	return err
}
