package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cc"
	"ridgepoint/workers/compile"
	"ridgepoint/workers/gpu"
	"ridgepoint/workers/queue"
	"ridgepoint/workers/spool"
)

// workerCmd serves a fleet's queues on this machine until it is stopped.
type workerCmd struct {
	Kind    string   `help:"What to do: ${enum}." enum:"compile,gpu,all" default:"all"`
	Targets []string `help:"Targets to compile for: cpu, cuda, hip (default: those whose compiler is here)." placeholder:"TARGET"`
	Devices []string `help:"Devices to measure on: cpu, emulated, all, numbers of NVIDIA cards, or hip0, hip1 and so on for AMD's (default: the cards; cpu where there is none)." placeholder:"DEVICE"`
	Slots   int      `help:"Candidates compiled at once (default: half the cores, all of them below four)."`
	Host    string   `help:"Name of this host in the fleet (default: its hostname)." placeholder:"NAME"`

	Grace           time.Duration `help:"How long work in hand may go on after a stop was asked for." default:"30s"`
	ExitWhenDrained bool          `help:"End once the host was drained, instead of waiting to be taken back."`
	AllowReduced    bool          `help:"Run C sources that are not shipped even where this machine cannot make the full sandbox."`
	Setup           bool          `help:"Install what is missing (a C compiler) with the system's package manager first."`
	dataFlag
	redisFlags
	serveFlags
}

// Run serves.
func (c workerCmd) Run(ctx context.Context, env environment) error {
	cfg, err := c.config(env)
	if err != nil {
		return err
	}
	if cfg.IsEmbedded() {
		return &exitError{exitUsage, errors.New("a worker serves a fleet: name its Redis with --redis or RIDGEPOINT_REDIS (on one machine, `ridgepoint run` needs no worker)")}
	}
	log := c.logger(env)
	m := &machine{env: env, reduced: c.AllowReduced, log: log}
	work, err := c.prepare(ctx, m)
	if err != nil {
		return errors.Join(err, m.close())
	}
	dir, err := c.dir(env, nil)
	if err != nil {
		return errors.Join(err, m.close())
	}
	if work.Spool, err = spool.Open(filepath.Join(dir, "worker")); err != nil {
		return errors.Join(&exitError{exitInfra, err}, m.close())
	}
	err = withNode(ctx, env, nodeConfig{Redis: cfg, Serve: c.serveFlags, Host: c.Host, Log: log}, func(ctx context.Context, n *queue.Node) error {
		log.Info().Str("id", n.ID()).Int("compile_slots", work.CompileSlots).Strs("devices", deviceNames(work.Devices)).Msg("serving; stop with an interrupt")
		return n.Worker(ctx, *work)
	})
	return errors.Join(err, work.Spool.Close(), m.close())
}

// prepare finds what this machine can do of what is asked.
func (c workerCmd) prepare(ctx context.Context, m *machine) (*queue.WorkerConfig, error) {
	if err := m.prepareCC(ctx, c.Setup, c.Targets, c.Devices); err != nil {
		return nil, err
	}
	work := &queue.WorkerConfig{Grace: c.Grace, ExitWhenDrained: c.ExitWhenDrained}
	if c.Kind != "gpu" {
		targets, err := m.compileTargets(ctx, c.Targets)
		if err != nil {
			return nil, err
		}
		j, err := m.shared()
		if err != nil {
			return nil, err
		}
		work.Compile, work.Targets, work.CompileSlots = &compile.Handler{Harness: j, Artifacts: j}, targets, c.slots()
	}
	if c.Kind != "compile" {
		devices, err := m.devices(c.Devices)
		if err != nil {
			return nil, err
		}
		work.Devices = devices
	}
	return work, nil
}

func (c workerCmd) slots() int {
	if c.Slots > 0 {
		return c.Slots
	}
	return compileSlots()
}

// compileSlots leaves half the cores to measuring; below four cores compiling and timing alternate and compiling has all.
func compileSlots() int {
	if n := runtime.NumCPU(); n >= 4 {
		return n / 2
	}
	return runtime.NumCPU()
}

func deviceNames(devices []gpu.Device) []string {
	var out []string
	for _, d := range devices {
		out = append(out, d.ID+" ("+d.Arch+")")
	}
	return out
}

// machine is what this host can compile and measure with. Judges are opened when they are first needed.
type machine struct {
	env     environment
	reduced bool
	log     zerolog.Logger
	judges  []*judge.Judge
	common  *judge.Judge
}

func (m *machine) open(targets ...judge.Target) (*judge.Judge, error) {
	j, err := newJudge(m.env, m.env.getenv("CC"), m.reduced, targets...)
	if err != nil {
		return nil, err
	}
	m.judges = append(m.judges, j)
	return j, nil
}

// shared returns the judge that compiles, and that measures on the cpu: it keeps the two apart where cores are few.
func (m *machine) shared() (*judge.Judge, error) {
	if m.common == nil {
		j, err := m.open()
		if err != nil {
			return nil, err
		}
		m.common = j
	}
	return m.common, nil
}

func (m *machine) close() error {
	var err error
	for _, j := range m.judges {
		err = errors.Join(err, j.Close())
	}
	return err
}

// prepareCC sees to a C compiler where C candidates are asked for by name.
func (m *machine) prepareCC(ctx context.Context, setup bool, targets, devices []string) error {
	if !setup && !slices.Contains(targets, "cpu") && !slices.Contains(devices, "cpu") {
		return nil
	}
	return evalCmd{Setup: setup}.prepare(ctx, m.env, harness.TargetCPU)
}

// compileTargets parses the named targets, or finds those whose compiler is here.
func (m *machine) compileTargets(ctx context.Context, named []string) ([]harness.Target, error) {
	var out []harness.Target
	for _, name := range named {
		t, err := harness.ParseTarget(name)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		out = append(out, t)
	}
	if len(out) > 0 {
		return out, nil
	}
	if _, err := cc.Find(ctx, m.env.getenv("CC"), cc.Config{}); err == nil {
		out = append(out, harness.TargetCPU)
	}
	if findCUDA(ctx, m.env) == nil {
		out = append(out, harness.TargetCUDA)
	}
	if findHIP(ctx, m.env) == nil {
		out = append(out, harness.TargetHIP)
	}
	if len(out) == 0 {
		return nil, &exitError{exitInfra, fmt.Errorf("no compiler is here, neither C nor CUDA nor HIP: run `%s`, or see `ridgepoint doctor`", remedy(needCC))}
	}
	return out, nil
}

// devices opens the named devices, or all cards, or the cpu where there is no card.
func (m *machine) devices(named []string) ([]gpu.Device, error) {
	cards, err := gpuTarget(m.env, m.reduced).Devices()
	if err != nil && !errors.Is(err, device.ErrNoDriver) {
		m.log.Warn().Err(err).Msg("cards cannot be listed")
	}
	amd, err := hipTarget(m.env, m.reduced, 0).Devices()
	if err != nil && !errors.Is(err, device.ErrNoDriver) {
		m.log.Warn().Err(err).Msg("AMD's cards cannot be listed")
	}
	if len(named) == 0 && len(cards)+len(amd) == 0 {
		named = []string{"cpu"}
	}
	if len(named) == 0 || slices.Contains(named, "all") {
		named = slices.DeleteFunc(slices.Clone(named), func(s string) bool { return s == "all" })
		for i := range cards {
			named = append(named, strconv.Itoa(i))
		}
		for i := range amd {
			named = append(named, hipPrefix+strconv.Itoa(i))
		}
	}
	var out []gpu.Device
	for _, name := range named {
		d, err := m.device(name, cards, amd)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// hipPrefix stands before the numbers of AMD's cards.
const hipPrefix = "hip"

// amd opens one of AMD's cards.
func (m *machine) amd(name string, i int, info device.Info) (gpu.Device, error) {
	target := hipTarget(m.env, m.reduced, i)
	j, err := m.open(target)
	if err != nil {
		return gpu.Device{}, err
	}
	return gpu.Device{ID: name, Name: info.Name, Arch: info.Arch, Target: harness.TargetHIP, Harness: j, Builds: builds{j}, ProbeFunc: target.Probe}, nil
}

func (m *machine) device(name string, cards, amd []device.Info) (gpu.Device, error) {
	switch name {
	case "cpu":
		return m.cpu()
	case device.Emulated:
		j, err := m.open()
		if err != nil {
			return gpu.Device{}, err
		}
		return gpu.Device{ID: device.Emulated, Name: "emulated card", Arch: device.Emulated, Target: harness.TargetCUDA, Harness: j, Builds: builds{j}}, nil
	}
	if number, ok := strings.CutPrefix(name, hipPrefix); ok {
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(amd) {
			return m.amd(name, i, amd[i])
		}
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= len(cards) {
		return gpu.Device{}, &exitError{exitUsage, fmt.Errorf("device %q is not here: want cpu, emulated, all, a card's number below %d or %s with a number below %d", name, len(cards), hipPrefix, len(amd))}
	}
	target := cardTarget(m.env, m.reduced, i)
	j, err := m.open(target)
	if err != nil {
		return gpu.Device{}, err
	}
	info := cards[i]
	return gpu.Device{ID: "cuda" + name, Name: info.Name, Arch: info.Arch, Archs: []string{info.Arch + "a"}, Target: harness.TargetCUDA, Harness: j, Builds: builds{j},
		ProbeFunc: target.Probe}, nil
}

// cpu is this host's processor as a device: it runs what was made for it, and for the levels that it has.
func (m *machine) cpu() (gpu.Device, error) {
	host, err := task.ThisHost()
	if err != nil {
		return gpu.Device{}, &exitError{exitInfra, err}
	}
	j, err := m.shared()
	if err != nil {
		return gpu.Device{}, err
	}
	d := gpu.Device{ID: "cpu", Name: runtime.GOARCH, Arch: host.March, Features: host.Features, Target: harness.TargetCPU, Harness: j, Builds: builds{j}}
	const level = "x86-64-v"
	if n, ok := strings.CutPrefix(host.March, level); ok {
		d.Archs = []string{"x86-64"}
		highest, _ := strconv.Atoi(n) // not a number: no further levels
		for v := 2; v <= highest; v++ {
			d.Archs = append(d.Archs, level+strconv.Itoa(v))
		}
	}
	return d, nil
}

// builds lets a device take builds that were made elsewhere.
type builds struct{ *judge.Judge }

// Has reports whether the build is in the judge's cache.
func (b builds) Has(build *harness.Build) bool {
	_, err := b.Artifact(build)
	return err == nil
}
