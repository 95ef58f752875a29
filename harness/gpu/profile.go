package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/device"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/profile"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cubin"
	"ridgepoint/harness/toolchain/cuda"
	"ridgepoint/harness/toolchain/hip"
	"ridgepoint/harness/verify"
)

// launchArgument, with a file after childArgument's place, makes a process launch a candidate a few times for a profiler.
const launchArgument = "__gpu_launch"

// launchOrder is what such a process reads from its file.
type launchOrder struct {
	Open    openOrder     `json:"open"`
	Helpers []byte        `json:"helpers"`
	Task    *harness.Task `json:"task"`
	Module  verify.Module `json:"module"`
	Size    harness.Size  `json:"size"`
	Times   int           `json:"times"`
}

// launchMain serves the launching process.
func launchMain(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var o launchOrder
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("read the launch order: %w", err)
	}
	ctx := context.Background()
	drv, err := openDriver(o.Open.HIP, o.Open.Library)
	if err != nil {
		return err
	}
	infos, err := drv.Devices()
	if err != nil {
		return err
	}
	if o.Open.Device >= len(infos) {
		return fmt.Errorf("there is no device %d: the driver sees %d", o.Open.Device, len(infos))
	}
	c := &child{open: &o.Open, info: infos[o.Open.Device]}
	release, err := c.lock(ctx) // as every process that runs candidates on the device
	if err != nil {
		return err
	}
	defer release()
	e, err := cudaengine.New(ctx, cudaengine.Config{Driver: drv, Device: o.Open.Device, Helpers: o.Helpers})
	if err != nil {
		return err
	}
	if err := e.MeasurePeaks(ctx); err != nil { // no ceiling is asked for: the clocks go up
		return err
	}
	p, err := e.Open(ctx, o.Module)
	if err != nil {
		return err
	}
	l, err := verify.NewLayout(o.Task, o.Module.Candidate, o.Size, 1)
	if err != nil {
		return err
	}
	bench, err := p.Bind(ctx, l)
	if err != nil {
		return err
	}
	raw, _, err := verify.Generate(l.Plan.Tensors, verify.ScaleSpec)
	if err != nil {
		return err
	}
	n := len(l.Plan.Tensors)
	set := &verify.Set{Key: "profile", Size: o.Size, Inputs: raw, Expected: make([][]float64, n), Tolerances: make([]verify.Tolerance, n)}
	for range o.Times {
		if err := errors.Join(bench.Write(ctx, set), bench.Poison(ctx, 1), bench.Flush(ctx)); err != nil {
			return err
		}
		if _, err := bench.Launch(ctx, verify.Shot{Limit: 5 * time.Minute}); err != nil {
			return err
		}
	}
	return errors.Join(bench.Close(), p.Close(), e.Close())
}

// ProfileOrder asks for the digest of a candidate at a size.
type ProfileOrder struct {
	Task      *harness.Task
	Candidate *harness.Candidate
	Build     *harness.Build
	Path      string // of the artifact
	Size      harness.Size
	Took      time.Duration // of one run of the plan, as measured before; for the fallback
	Report    string        // where the .ncu-rep is kept; "": nowhere
}

// profileLimit bounds one run of ncu: 3 to 6 s on an H200.
const profileLimit = 2 * time.Minute

// Profile runs Nsight Compute on one run of the candidate's plan, holding the device. Where it cannot, the digests are the
// fallback's and the note says in one line why.
func (t *Target) Profile(ctx context.Context, o ProfileOrder) (digests []profile.Digest, note string, err error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	s, err := t.station(ctx, o.Candidate.Options.Arch)
	if err != nil {
		return nil, "", err
	}
	return t.profileLocked(ctx, s, o)
}

// profileLocked is Profile for who has the device's turn.
func (t *Target) profileLocked(ctx context.Context, s *station, o ProfileOrder) (digests []profile.Digest, note string, err error) {
	digests, err = t.counters(ctx, s, o)
	if err == nil {
		return digests, "", nil
	}
	if !errors.Is(err, profile.ErrNoProfiler) {
		return nil, "", err
	}
	digests, ferr := t.fallback(ctx, s, o, err.Error())
	return digests, err.Error(), ferr
}

// attach profiles a measured candidate at its largest scored size and puts the digests into its report. That counters could
// not be read is one line of the detail, and of the log when it is first met.
func (t *Target) attach(ctx context.Context, s *station, b judge.Bout, r *harness.Report) error {
	q := b.Request
	order := verify.Ascending(q.Task, q.Task.ScoredSizes(q.Candidate.Target))
	o := ProfileOrder{Task: q.Task, Candidate: q.Candidate, Build: b.Module.Build, Path: b.Module.Path, Size: q.Task.ScoredSizes(q.Candidate.Target)[order[len(order)-1]]}
	for _, st := range r.Sizes {
		if st.Size.Equal(o.Size) {
			o.Took = time.Duration(st.MedianUS * float64(time.Microsecond))
		}
	}
	digests, note, err := t.profileLocked(ctx, s, o)
	if ctx.Err() != nil {
		return fmt.Errorf("profile %s: %w", q.Candidate.Structure.Name, ctx.Err())
	}
	if err != nil { // the candidate was measured: what a profiler lacks is no fault of it, nor a reason to measure again
		digests, note = nil, "no profile: "+err.Error()
	}
	for _, d := range digests {
		r.Profile = append(r.Profile, harness.Digest(d))
	}
	if note == "" {
		return nil
	}
	r.Detail = append(r.Detail, note)
	if !t.noted {
		t.noted = true
		t.config.Log.Warn().Str("reason", note).Msg("profiles are made without counters")
	}
	return nil
}

func (t *Target) counters(ctx context.Context, s *station, o ProfileOrder) ([]profile.Digest, error) {
	ncu := t.config.NCU
	if ncu == "" { // one that is named is believed to know the device
		if o.Candidate.Options.Arch == device.Emulated {
			return nil, fmt.Errorf("%w: the device is emulated", profile.ErrNoProfiler)
		}
		if t.config.HIP {
			return nil, fmt.Errorf("%w: it knows NVIDIA's devices alone", profile.ErrNoProfiler)
		}
		var err error
		if ncu, err = profile.Find(); err != nil {
			return nil, err
		}
	}
	helpers, err := t.helpers(ctx, o.Candidate.Options.Arch)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ridgepoint-profile-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // scratch
	const times = 2
	b, err := json.Marshal(launchOrder{Open: s.open, Helpers: helpers, Task: o.Task, Module: verify.Module{Build: o.Build, Path: o.Path, Candidate: o.Candidate, Limit: time.Minute}, Size: o.Size, Times: times})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "launch.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := len(o.Candidate.Structure.Launches)
	return profile.Profile(ctx, profile.Run{NCU: ncu, Command: []string{self, launchArgument, file}, Kernels: cuda.Kernels(o.Candidate), Skip: (times - 1) * n, Count: n, Report: o.Report, Timeout: profileLimit})
}

// fallback makes a digest for each launch of the plan; the whole time is laid to the first launch where there is only one.
func (t *Target) fallback(ctx context.Context, s *station, o ProfileOrder, why string) ([]profile.Digest, error) {
	limitsOf := cubin.LimitsOf
	if t.config.HIP && o.Candidate.Options.Arch != device.Emulated {
		limitsOf = hip.LimitsOf
	}
	limits, err := limitsOf(o.Candidate.Options.Arch)
	if err != nil {
		return nil, err
	}
	k := profile.Known{Limits: *limits, Why: why}
	if o.Candidate.Options.Arch != device.Emulated {
		if p, err := s.get(ctx); err == nil {
			k.Limits, k.BytesPerSecond, k.FLOPsPerSecond = p.info.Limits, p.peaks.BytesPerSecond, p.peaks.FLOPsPerSecond
		}
	}
	plan, err := task.Plan(o.Task, o.Candidate.Structure, o.Candidate.Configuration, o.Size)
	if err != nil {
		return nil, err
	}
	if k.FLOPs, k.Bytes, err = task.WorkAt(o.Task, o.Size); err != nil {
		return nil, err
	}
	var out []profile.Digest
	for i := range plan.Launches {
		one := k
		one.Plan = *cuda.PlanOf(&plan.Launches[i])
		one.Kernel.Name = plan.Launches[i].Kernel
		for _, r := range o.Build.Kernels {
			if r.Name == one.Kernel.Name {
				one.Kernel = r
			}
		}
		if len(plan.Launches) == 1 {
			one.Took = o.Took
		}
		out = append(out, profile.Fallback(one))
	}
	return out, nil
}
