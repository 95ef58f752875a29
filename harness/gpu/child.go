package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/device"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/verify"
)

// childArgument is the hidden first argument that makes a process a runner child. Descriptor 3 brings orders, 4 takes answers.
const childArgument = "__gpu"

// Main serves as a runner child when args (without the program's name) ask for it, and reports whether they did.
func Main(args []string) bool {
	if len(args) == 2 && args[0] == launchArgument {
		if err := launchMain(args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "launch for a profiler:", err)
			os.Exit(1)
		}
		return true
	}
	if len(args) != 1 || args[0] != childArgument {
		return false
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // the parent decides
	c := &child{dec: json.NewDecoder(os.NewFile(3, "orders")), enc: json.NewEncoder(os.NewFile(4, "answers"))}
	if err := c.serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "gpu runner:", err)
		os.Exit(1)
	}
	os.Exit(0) // without waiting for a thread that hangs in the driver
	return true
}

type child struct {
	dec *json.Decoder
	enc *json.Encoder

	open    *openOrder
	driver  *device.Driver
	info    device.Info
	monitor *device.Monitor
	engine  *cudaengine.Engine
	pool    *verify.Pool
	version string    // of the driver
	checked time.Time // when foreign processes were last looked for
	making  sync.WaitGroup
	makers  chan struct{} // as many turns as input sets are made at once ahead of their use, each by several cores
}

func (c *child) serve(ctx context.Context) error {
	for {
		var o order
		if err := c.dec.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		var a answer
		var err error
		switch {
		case o.Open != nil:
			a, err = c.find(o.Open)
		case o.Helpers != nil:
			a, err = c.start(ctx, o.Helpers)
		case o.Peaks:
			a, err = c.peaks(ctx)
		case o.Bout != nil:
			a, err = c.bout(ctx, o.Bout)
		default:
			err = errors.New("an order is empty")
		}
		if err != nil {
			a.Error = err.Error()
		}
		a.Lost = c.engine != nil && c.engine.Lost()
		if err := c.enc.Encode(a); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		if a.Lost {
			return nil
		}
	}
}

func (c *child) find(o *openOrder) (answer, error) {
	c.open = o
	drv, err := openDriver(o.HIP, o.Library)
	if err != nil {
		return answer{}, err
	}
	infos, err := drv.Devices()
	if err != nil {
		return answer{}, err
	}
	if o.Device >= len(infos) {
		return answer{}, fmt.Errorf("there is no device %d: the driver sees %d", o.Device, len(infos))
	}
	c.driver, c.info = drv, infos[o.Device]
	return answer{Found: &c.info}, nil
}

func (c *child) start(ctx context.Context, helpers []byte) (answer, error) {
	c.version = strings.ToUpper(c.driver.Dialect()) + " " + c.driver.VersionString()
	if c.open.Monitor != "none" {
		m, err := device.OpenMonitor(c.open.Monitor, c.info.UUID)
		if err == nil {
			c.monitor = m
			if v, err := m.DriverVersion(); err == nil {
				c.version += ", driver " + v
			}
		} else if !errors.Is(err, device.ErrNoDriver) {
			fmt.Fprintln(os.Stderr, "gpu runner: clocks and throttling stay unknown:", err)
		}
	}
	e, err := cudaengine.New(ctx, cudaengine.Config{Driver: c.driver, Device: c.open.Device, Helpers: helpers, Monitor: c.monitor})
	if err != nil {
		return answer{}, err
	}
	c.engine = e
	c.makers = make(chan struct{}, 4)
	c.pool = verify.NewPool(judge.Oracle(nil), c.open.PoolBytes)
	if err := e.Probe(); err != nil {
		return answer{}, fmt.Errorf("probe %s: %w", c.info.Name, err)
	}
	return answer{Ready: &readyAnswer{Driver: c.version}}, nil
}

// peaks measures the device's ceilings, holding the device's lock.
func (c *child) peaks(ctx context.Context) (answer, error) {
	if c.engine == nil {
		return answer{}, errors.New("ceilings were asked for before the device was opened")
	}
	release, err := c.lock(ctx)
	if err != nil {
		return answer{}, err
	}
	defer release()
	if err := c.engine.MeasurePeaks(ctx); err != nil {
		return answer{}, fmt.Errorf("measure the ceilings of %s: %w", c.info.Name, err)
	}
	p := c.engine.Peaks()
	return answer{Peaks: &p}, nil
}

// bout judges one candidate, holding the device's lock.
func (c *child) bout(ctx context.Context, o *boutOrder) (answer, error) {
	if c.engine == nil {
		return answer{}, errors.New("a bout came before the device was opened")
	}
	begin := time.Now()
	release, err := c.lock(ctx)
	if err != nil {
		return answer{}, err
	}
	defer release()
	lost, err := c.alone(ctx)
	if err != nil {
		return answer{}, err
	}
	waited := time.Since(begin)
	c.engine.TakeState()
	c.engine.DeviceBusy()
	c.engine.DeviceFlush()
	b := judge.Bout{Request: o.Request, Engine: c.engine, Module: o.Module, Rivals: o.Rivals, Pool: c.pool, LaunchLimit: o.LaunchLimit, Environment: c.environment(o.Module.Build.Toolchain)}
	c.gather(ctx, b.Request)
	r, err := judge.Evaluate(ctx, b)
	var rival *judge.RivalError
	if errors.As(err, &rival) {
		return answer{Rival: &rivalAnswer{Role: rival.Role, Fault: rival.Stop.Fault, Reason: rival.Stop.Reason, Evidence: rival.Stop.Evidence}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	r.Split.Queue = waited.Seconds()
	r.Split.Device, r.Split.Flush = c.engine.DeviceBusy().Seconds(), c.engine.DeviceFlush().Seconds()
	state := c.engine.TakeState()
	r.Environment.Throttle = state.Throttle
	if state.Readings > 0 {
		r.Environment.ClocksMHz = map[string][2]int{"sm": state.SMClockMHz, "memory": state.MemoryClockMHz}
	}
	if lost > 0 {
		r.Detail = append(r.Detail, fmt.Sprintf("waited %.0f s for another process to leave the card", lost.Seconds()))
	}
	return answer{Report: r}, nil
}

// gather makes the input sets of an evaluation that the pool lacks, with their expected values, while the first of them are
// used: a confirmation's fresh ones took 3 s one after another, with the device idle. Errors come up where the sets are used.
// What is still being made when the evaluation has ended is for the next; it ends with the process at the latest.
func (c *child) gather(ctx context.Context, q *harness.Request) {
	prepare := func(size harness.Size, specs []verify.Spec) {
		for _, spec := range specs {
			c.making.Go(func() {
				c.makers <- struct{}{}
				_, _ = c.pool.Get(ctx, q.Task, size, spec, 0) // whoever uses it gets the error
				<-c.makers
			})
		}
	}
	for _, k := range verify.Cases(q.Task, q.Candidate.Target, q.Plan.Stage, q.Plan.Seed, c.engine.Traits().MemoryBytes) {
		prepare(k.Size, k.Specs)
	}
	for i, size := range q.Task.ScoredSizes(q.Candidate.Target) {
		prepare(size, measure.SetsOf(q.Task, q.Plan.Stage, judge.MeasureSeed(q.Plan.Seed), i, size))
	}
}

func (c *child) environment(compiler string) harness.Environment {
	host, _ := os.Hostname() // "": the record then names no host
	var u unix.Utsname
	_ = unix.Uname(&u) // cannot fail with a valid pointer
	flush := fmt.Sprintf("l2 %dx per launch (%d MB), read where little is written", cudaengine.FlushTimes, cudaengine.FlushBytes(c.info.L2Bytes)>>20)
	return harness.Environment{
		Ridgepoint: c.open.Version, Host: host, OS: runtime.GOOS + " " + strings.TrimRight(string(u.Release[:]), "\x00") + " " + runtime.GOARCH, Device: c.info.Name,
		DeviceID: c.info.UUID, Cores: runtime.NumCPU(), Driver: c.version, Toolchain: compiler, Flush: flush, Sandbox: c.open.Sandbox,
	}
}

// lock takes the device's flock, which every process that measures on it must hold.
func (c *child) lock(ctx context.Context) (release func(), err error) {
	if c.open.LockDir == "" {
		return func() {}, nil
	}
	f, err := os.OpenFile(filepath.Join(c.open.LockDir, "gpu-"+c.info.UUID+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the device: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing gives the lock back
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the device: %w", err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// How long a bout waits for other processes to leave the card, and how often they are looked for.
const (
	foreignLimit = 5 * time.Minute
	foreignEvery = 2 * time.Second
)

// alone waits while another program computes on the card, and returns how long that took.
func (c *child) alone(ctx context.Context) (time.Duration, error) {
	if c.monitor == nil || time.Since(c.checked) < foreignEvery {
		return 0, nil
	}
	begin := time.Now()
	for {
		foreign, err := c.foreign()
		if err != nil {
			return 0, fmt.Errorf("look for other processes on the card: %w", err)
		}
		c.checked = time.Now()
		if len(foreign) == 0 {
			return time.Since(begin).Truncate(time.Second), nil
		}
		if time.Since(begin) > foreignLimit {
			return 0, fmt.Errorf("processes %v have computed on %s for %v: stop them, or give this worker another device", foreign, c.info.Name, foreignLimit)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// foreign lists processes on the card that do not run this program. In a container the driver may count processes of another
// namespace; as many of those as this program's own children on the card are taken for them.
func (c *child) foreign() ([]int, error) {
	pids, err := c.monitor.Processes()
	if err != nil {
		return nil, err
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	const ownContexts = 2 // this child's and the standby's
	var foreign, unseen []int
	for _, pid := range pids {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		switch {
		case errors.Is(err, os.ErrNotExist):
			unseen = append(unseen, pid)
		case err != nil || strings.TrimSuffix(exe, " (deleted)") != strings.TrimSuffix(self, " (deleted)"):
			foreign = append(foreign, pid)
		}
	}
	if len(unseen) > ownContexts {
		foreign = append(foreign, unseen...)
	}
	return foreign, nil
}
