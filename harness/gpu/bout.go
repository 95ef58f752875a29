package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/toolchain/cuda"
	"ridgepoint/harness/toolchain/hip"
	"ridgepoint/harness/verify"
)

// boutLimit bounds an evaluation that states no deadline: single launches have their own, shorter limits.
const boutLimit = 15 * time.Minute

// Judge holds the candidate against the device's limits and then evaluates it in the runner child, or in several fresh ones one after
// the other where the plan asks for that: a process of its own keeps an offset of up to 0.2 us on an H200, whatever it measures.
func (t *Target) Judge(ctx context.Context, b judge.Bout) (*harness.Report, error) {
	arrived := time.Now()
	t.turn.Lock()
	defer t.turn.Unlock()
	s, err := t.station(ctx, b.Request.Candidate.Options.Arch)
	if err != nil {
		return nil, err
	}
	if r, err := t.preflight(b); err != nil || r != nil {
		return r, err
	}
	processes := max(b.Request.Plan.Processes, 1)
	if b.Request.Plan.Processes > 0 { // who counts them wants the card alone: the making of a standby's context shows, too
		defer func(keep bool) { s.keepStandby = keep }(s.keepStandby)
		s.keepStandby = false
	}
	var all []*harness.Report
	for i := range processes {
		if i > 0 {
			s.lose()
			arrived = time.Now()
		}
		r, err := t.once(ctx, s, b, arrived)
		if err != nil || !r.Fault.Measured() || r.Censored != nil {
			return r, err
		}
		all = append(all, r)
	}
	r := judge.Pool(b.Request.Task, all)
	if b.Request.Plan.Profile {
		if err := t.attach(ctx, s, b, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// once evaluates the candidate in the runner child.
func (t *Target) once(ctx context.Context, s *station, b judge.Bout, arrived time.Time) (*harness.Report, error) {
	p, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	if arch := b.Request.Candidate.Options.Arch; !runsOn(arch, p.info.Arch) {
		return nil, fmt.Errorf("candidate %s is built for %s; device %s is %s", b.Request.Candidate.Structure.Name, arch, p.info.Name, p.info.Arch)
	}
	limit := boutLimit
	if d := b.Request.Plan.Deadline; d > 0 {
		limit = d + 10*time.Second // the child's own deadline comes first, where it still can
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	queued := time.Since(arrived)
	a, err := p.ask(limited, order{Bout: &boutOrder{Request: b.Request, Module: b.Module, Rivals: b.Rivals, LaunchLimit: b.LaunchLimit}})
	var infra *childError
	switch {
	case errors.As(err, &infra):
		s.lose() // what is broken in the child may be the child
		return nil, fmt.Errorf("judge %s: %w", b.Request.Candidate.Structure.Name, err)
	case errors.Is(err, errGone):
		s.lose()
		return t.fault(b, harness.FaultCrash, "the runner died during the evaluation"), nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		s.lose()
		return t.fault(b, harness.FaultTimeout, fmt.Sprintf("the evaluation did not end within %v and its runner was killed", limit)), nil
	case err != nil:
		s.lose()
		return nil, err
	}
	if a.Lost {
		s.lose()
		if _, err := s.get(ctx); err != nil { // the next candidate finds a device that was probed
			t.config.Log.Error().Err(err).Msg("no runner after a fault")
		}
	}
	if a.Rival != nil {
		return nil, &judge.RivalError{Role: a.Rival.Role, Stop: &verify.Stop{Fault: a.Rival.Fault, Reason: a.Rival.Reason, Evidence: a.Rival.Evidence}}
	}
	if a.Report == nil {
		return nil, errors.New("the runner child answered without a report")
	}
	a.Report.Split.Queue += queued.Seconds()
	return a.Report, nil
}

// preflight returns a report when the driver would refuse a launch, so that no device is taken for it.
func (t *Target) preflight(b judge.Bout) (*harness.Report, error) {
	image, err := os.ReadFile(b.Module.Path)
	if err != nil {
		return nil, fmt.Errorf("read the build: %w", err)
	}
	var limits *device.Limits
	if t.card != nil && t.card.active != nil {
		limits = &t.card.active.info.Limits
	}
	check := cuda.Preflight
	if t.config.HIP && b.Request.Candidate.Options.Arch != device.Emulated {
		check = hip.Preflight
	}
	reason, err := check(b.Request.Task, b.Request.Candidate, image, limits)
	if err != nil || reason == "" {
		return nil, err
	}
	r := t.fault(b, harness.FaultLaunch, reason)
	r.Evidence.Kind = verify.KindLaunch
	return r, nil
}

// fault reports a candidate that ended its runner, or would not launch.
func (t *Target) fault(b judge.Bout, fault harness.Fault, reason string) *harness.Report {
	r := judge.NewReport(b.Request)
	kind := map[harness.Fault]string{harness.FaultCrash: verify.KindCrash, harness.FaultTimeout: verify.KindTimeout}[fault]
	r.Rules, r.Compile, r.Runtime, r.Build, r.Fault, r.Reason = harness.StatusPass, harness.StatusPass, harness.StatusFail, b.Module.Build, fault, reason
	r.Evidence = &harness.Evidence{Kind: kind}
	r.Finished = time.Now().UTC()
	r.Split.Total = r.Finished.Sub(r.Started).Seconds()
	return r
}

// runsOn reports whether machine code of an arch runs on a device: the same major version and no newer minor one; suffixed
// archs (sm_90a) run on their own version alone.
func runsOn(arch, device string) bool {
	var a, d int
	var suffix string
	if _, err := fmt.Sscanf(arch, "sm_%d%s", &a, &suffix); err != nil && a == 0 {
		return arch == device
	}
	if _, err := fmt.Sscanf(device, "sm_%d", &d); err != nil {
		return arch == device
	}
	if suffix == "a" {
		return a == d
	}
	return a/10 == d/10 && a%10 <= d%10
}
