package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/device"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/toolchain/cuda"
	"ridgepoint/harness/toolchain/hip"
	"ridgepoint/harness/verify"
)

// Config says which device a Target takes and how it compiles.
type Config struct {
	HIP    bool   // judge candidates of the hip target, on AMD's devices, instead of cuda's
	Driver string // the driver's library; "": the system's
	// NCU is Nsight Compute's program; "": found on PATH and in toolkits, and used on cards alone. One that is named, as tests do,
	// is also started for the emulated device, where it runs the candidate on the host.
	NCU       string
	Monitor   string // NVML's library; "": the system's; "none": clocks stay unknown
	Device    int
	RunDir    string      // the devices' locks; every worker of a host shares it
	CacheDir  string      // builds as judge.Config has it: a confined child reads modules there; the emulator and helpers are kept there too
	Compiler  cuda.Config // also of the emulated device
	HIPTools  hip.Config  // with HIP
	NoStandby bool        // keep no warm child beside the active one
	PoolBytes int64       // of input sets and expected values in the child's memory; 0: a sixteenth of the machine's, 8 GiB at most
	// ReducedSandbox is the person's `sandbox: reduced`: emulated candidates run without the full sandbox.
	ReducedSandbox bool
	Version        string // of this program, for reports
	EmulatorKnobs  string // how the emulated device misbehaves, for tests (harness/device/emulator, driver.cpp)
	Log            zerolog.Logger
}

// Target judges candidates of the cuda target, or of the hip target. It implements judge.Target and is safe for concurrent
// use; evaluations on one device take turns.
type Target struct {
	config Config

	mu       sync.Mutex // guards the finding of compilers
	compiler compiler   // nil: not looked for yet
	emulates *cuda.Compiler

	turn     sync.Mutex // one evaluation at a time
	noted    bool       // the log has that profiles are made without counters
	card     *station
	emulated *station
}

var _ judge.Target = (*Target)(nil)

// compiler is what a Target needs of one.
type compiler interface {
	Key(c *harness.Candidate) string
	Compile(ctx context.Context, c *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error)
	Trusted(ctx context.Context, arch, source string, kernels []string) ([]byte, error)
	Close()
}

// New makes a Target. It starts nothing: compilers and devices are looked for when they are needed.
func New(c Config) *Target {
	if c.Compiler.Dir == "" {
		c.Compiler.Dir = c.CacheDir
	}
	if c.HIPTools.Dir == "" {
		c.HIPTools.Dir = c.CacheDir
	}
	if c.PoolBytes == 0 {
		c.PoolBytes = poolBytes()
	}
	return &Target{config: c}
}

// Target is cuda, or hip.
func (t *Target) Target() harness.Target {
	if t.config.HIP {
		return harness.TargetHIP
	}
	return harness.TargetCUDA
}

// find returns the compiler for an arch, looked for when it is first needed.
func (t *Target) find(ctx context.Context, arch string) (compiler, error) {
	if arch == device.Emulated {
		return t.findEmulated()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.compiler != nil {
		return t.compiler, nil
	}
	t.reduce()
	if t.config.HIP {
		c, err := hip.Find(ctx, t.config.HIPTools)
		if err != nil {
			return nil, err
		}
		t.compiler = c
		return c, nil
	}
	c, err := cuda.Find(ctx, t.config.Compiler)
	if err != nil {
		return nil, err
	}
	t.compiler = c
	return c, nil
}

// findEmulated returns the compiler of the emulated device, whose modules serve both targets.
func (t *Target) findEmulated() (*cuda.Compiler, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.emulates == nil {
		t.reduce()
		c, err := cuda.FindEmulated(t.config.Compiler)
		if err != nil {
			return nil, err
		}
		t.emulates = c
	}
	return t.emulates, nil
}

// reduce lowers the compilers' sandbox where the person allows it and the machine has no better.
func (t *Target) reduce() {
	if t.config.ReducedSandbox && sandbox.Probe().Level() != sandbox.LevelFull {
		t.config.Compiler.Level, t.config.HIPTools.Level = sandbox.LevelReduced, sandbox.LevelReduced
	}
}

// Key returns the cache key of a candidate's build.
func (t *Target) Key(ctx context.Context, c *harness.Candidate) (string, error) {
	compiler, err := t.find(ctx, c.Options.Arch)
	if err != nil {
		return "", err
	}
	return compiler.Key(c), nil
}

// Compile builds a candidate.
func (t *Target) Compile(ctx context.Context, c *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error) {
	compiler, err := t.find(ctx, c.Options.Arch)
	if err != nil {
		return nil, nil, nil, err
	}
	return compiler.Compile(ctx, c)
}

// helpers compiles the engine's own kernels.
func (t *Target) helpers(ctx context.Context, arch string) ([]byte, error) {
	compiler, err := t.find(ctx, arch)
	if err != nil {
		return nil, err
	}
	return compiler.Trusted(ctx, arch, cudaengine.HelperSource, cudaengine.HelperKernels)
}

// station returns the device that a candidate's arch runs on.
func (t *Target) station(ctx context.Context, arch string) (*station, error) {
	if arch == device.Emulated {
		if t.emulated == nil {
			compiler, err := t.findEmulated()
			if err != nil {
				return nil, err
			}
			e, err := compiler.Emulator(ctx)
			if err != nil {
				return nil, err
			}
			t.emulated = &station{helpersFunc: t.helpers, open: t.order(e.Library, e.Library)}
			t.emulated.open.LockDir = ""
			t.emulated.open.Sandbox = string(t.level())
			t.emulated.commandFunc = func() (*exec.Cmd, error) { return t.confined(filepath.Dir(e.Library)) }
		}
		return t.emulated, nil
	}
	if t.card == nil {
		if err := os.MkdirAll(t.config.RunDir, 0o755); err != nil {
			return nil, fmt.Errorf("make the folder of locks: %w", err)
		}
		t.card = &station{helpersFunc: t.helpers, open: t.order(t.config.Driver, t.config.Monitor), commandFunc: plain, keepStandby: !t.config.NoStandby}
		t.card.open.Sandbox = "device code only"
	}
	return t.card, nil
}

func (t *Target) order(library, monitor string) openOrder {
	if t.config.HIP {
		monitor = "none" // NVML knows nothing of AMD's devices
	}
	return openOrder{Library: library, HIP: t.config.HIP, Monitor: monitor, Device: t.config.Device, LockDir: t.config.RunDir, PoolBytes: t.config.PoolBytes, Version: t.config.Version}
}

// plain starts a child that talks to a card: no code of a candidate runs on the host.
func plain() (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", childArgument)
	cmd.Args[0] = "ridgepoint-gpu"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

func (t *Target) level() sandbox.Level {
	if t.config.ReducedSandbox && sandbox.Probe().Level() != sandbox.LevelFull {
		return sandbox.LevelReduced
	}
	return sandbox.LevelFull
}

// confined starts a child for the emulated device, where a candidate's code runs on the host.
func (t *Target) confined(emulator string) (*exec.Cmd, error) {
	work, err := os.MkdirTemp("", "ridgepoint-emulated-")
	if err != nil {
		return nil, err
	}
	policy := sandbox.Policy{Name: "emulated", WorkDir: work, Writable: true, ReadOnly: []string{emulator, t.config.CacheDir},
		Limits: sandbox.Limits{MemoryBytes: 64 << 30, FileBytes: 64 << 20, OpenFiles: 256, ScratchBytes: 256 << 20}}
	scratch := sandbox.InsideWorkDir // modules are mapped from there: the sandbox's /tmp executes nothing
	if t.level() != sandbox.LevelFull {
		scratch = work
	}
	env := []string{"TMPDIR=" + scratch, "RIDGEPOINT_FAKE_CUDA=" + t.config.EmulatorKnobs}
	return sandbox.Command(policy, t.level(), env, "self", childArgument)
}

// Devices lists the cards that the driver sees, without taking one. The error wraps device.ErrNoDriver when there is none.
func (t *Target) Devices() ([]device.Info, error) {
	drv, err := openDriver(t.config.HIP, t.config.Driver)
	if err != nil {
		return nil, err
	}
	return drv.Devices()
}

// Probe starts the card's runner if need be, whose start proves that the device computes.
func (t *Target) Probe(ctx context.Context) error {
	t.turn.Lock()
	defer t.turn.Unlock()
	s, err := t.station(ctx, "")
	if err != nil {
		return err
	}
	_, err = s.get(ctx)
	return err
}

// Peaks returns the card's measured ceilings, starting its runner if need be.
func (t *Target) Peaks(ctx context.Context) (cudaengine.Peaks, *device.Info, error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	s, err := t.station(ctx, "")
	if err != nil {
		return cudaengine.Peaks{}, nil, err
	}
	p, err := s.get(ctx)
	if err != nil {
		return cudaengine.Peaks{}, nil, err
	}
	return p.peaks, &p.info, nil
}

// Close ends the children and gives the devices back.
func (t *Target) Close() error {
	t.turn.Lock()
	defer t.turn.Unlock()
	for _, s := range []*station{t.card, t.emulated} {
		if s != nil {
			s.drop()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.compiler != nil {
		t.compiler.Close()
	}
	if t.emulates != nil {
		t.emulates.Close()
	}
	return nil
}

// openDriver opens one vendor's driver.
func openDriver(hip bool, library string) (*device.Driver, error) {
	if hip {
		return device.OpenHIP(library)
	}
	return device.OpenCUDA(library)
}

// poolBytes is a sixteenth of this machine's memory, 8 GiB at most: a confirmation has three sets at each of eight sizes, 3 GiB of
// them in a product of 4096 x 4096 matrices, and they are kept from candidate to candidate.
func poolBytes() int64 { return verify.PoolBytes(8 << 30) }
