// Package harnesstest is a harness without kernels: it answers for candidates by a function of the candidate and the seed,
// with faults, latency and noise as a script says. Schedulers and queues are tested, timed and killed against it. It also
// makes a small task with structures to search. It must not be used to judge a kernel.
package harnesstest

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"ridgepoint/harness"
)

// Scripted implements harness.Harness. Every field is optional; the zero Scripted says that every candidate takes 1 µs at
// every size. What it answers depends on the candidate and the plan's seed only, never on time or order.
type Scripted struct {
	// TimeFunc is a candidate's true runtime at a size, in microseconds.
	TimeFunc func(c *harness.Candidate, size harness.Size) float64
	// FaultFunc is what befalls a candidate; strikes are told apart by attempt through the seed only. nil: nothing does.
	FaultFunc func(c *harness.Candidate, p *harness.Plan) harness.Fault
	// NoiseSD is the standard deviation of ln(time) from one measurement to the next, shared by all sizes of a measurement;
	// SizeNoiseSD is that of each size on its own.
	NoiseSD, SizeNoiseSD float64
	// NoiseFunc overrides both: it returns factors for the sizes of one measurement.
	NoiseFunc func(r *rand.Rand, sizes int) []float64
	// CompileLatency and Latency are how long a build and a benchmark take; a paired round takes RoundLatency.
	CompileLatency, Latency, RoundLatency time.Duration
	// ErrorFunc breaks the infrastructure: the n-th benchmark, from 1, returns its error. nil: it never breaks.
	ErrorFunc func(n int64) error
	// ReportFunc has the last word on a measured report.
	ReportFunc func(c *harness.Candidate, rep *harness.Report)

	calls atomic.Int64
}

var _ harness.Harness = (*Scripted)(nil)

// Calls returns how many benchmarks were asked for.
func (s *Scripted) Calls() int64 { return s.calls.Load() }

// Compile answers after CompileLatency; it refuses candidates whose fault is rules or compile.
func (s *Scripted) Compile(ctx context.Context, r *harness.Request) (*harness.Build, *harness.Report, error) {
	if err := pause(ctx, s.CompileLatency); err != nil {
		return nil, nil, err
	}
	switch s.fault(r) {
	case harness.FaultRules, harness.FaultCompile:
		rep := s.report(r)
		rep.Reason = "scripted " + rep.Fault.String()
		return nil, rep, nil
	}
	id := r.Candidate.ID()
	return &harness.Build{Key: id, Artifact: id, Toolchain: "scripted"}, nil, nil
}

// Benchmark answers after Latency, and RoundLatency for each paired round.
func (s *Scripted) Benchmark(ctx context.Context, r *harness.Request, _ *harness.Build) (*harness.Report, error) {
	if n := s.calls.Add(1); s.ErrorFunc != nil {
		if err := s.ErrorFunc(n); err != nil {
			return nil, err
		}
	}
	held := s.Latency + time.Duration(r.Plan.Rounds)*s.RoundLatency
	if err := pause(ctx, held); err != nil {
		return nil, err
	}
	rep := s.report(r)
	rep.Split = harness.Split{Measure: held.Seconds(), Device: held.Seconds() * 0.9, Total: held.Seconds()}
	if !rep.Fault.Measured() {
		rep.Reason = "scripted " + rep.Fault.String()
		return rep, nil
	}
	rng := stream(r.Plan.Seed, r.Candidate.ID())
	sizes := r.Task.ScoredSizes(r.Candidate.Target)
	times := s.measure(r.Candidate, sizes, rng)
	for i, size := range sizes {
		rep.Sizes = append(rep.Sizes, harness.SizeTime{Size: size, MedianUS: times[i], SamplesUS: []float64{times[i] * 0.99, times[i], times[i] * 1.02}, SpreadRatio: 0.03, Warmups: 2})
	}
	rep.Censored = s.race(r, rep)
	if r.Plan.Rounds > 0 {
		rep.Contest = s.contest(r, sizes, rng)
	}
	if s.ReportFunc != nil {
		s.ReportFunc(r.Candidate, rep)
	}
	return rep, nil
}

func (s *Scripted) fault(r *harness.Request) harness.Fault {
	if s.FaultFunc == nil {
		return harness.FaultNone
	}
	return s.FaultFunc(r.Candidate, &r.Plan)
}

func (s *Scripted) report(r *harness.Request) *harness.Report {
	return &harness.Report{Version: harness.ReportVersion, CandidateID: r.Candidate.ID(), Task: r.Task.Name, TaskDigest: r.Task.Digest, Target: r.Candidate.Target,
		Arch: r.Candidate.Options.Arch, Fault: s.fault(r), Stage: r.Plan.Stage, Seed: r.Plan.Seed, Environment: harness.Environment{Host: "scripted", Toolchain: "scripted", Flush: "none"}}
}

func (s *Scripted) time(c *harness.Candidate, size harness.Size) float64 {
	if s.TimeFunc == nil {
		return 1
	}
	return s.TimeFunc(c, size)
}

// measure is one measurement of a candidate over sizes.
func (s *Scripted) measure(c *harness.Candidate, sizes []harness.Size, rng *rand.Rand) []float64 {
	out := make([]float64, len(sizes))
	var factors []float64
	if s.NoiseFunc != nil {
		factors = s.NoiseFunc(rng, len(sizes))
	}
	shared := s.NoiseSD * rng.NormFloat64()
	for i, size := range sizes {
		f := math.Exp(shared + s.SizeNoiseSD*rng.NormFloat64())
		if factors != nil {
			f = factors[i]
		}
		out[i] = s.time(c, size) * f
	}
	return out
}

// race stops a measurement that is clearly behind, after the sizes that it takes to see it.
func (s *Scripted) race(r *harness.Request, rep *harness.Report) *harness.Censored {
	race := r.Plan.Race
	if race == nil {
		return nil
	}
	var incumbent, bound float64
	for i := range rep.Sizes {
		incumbent += race.IncumbentUS[i] / race.BaselineUS[i]
		bound += 0.97 * race.BestUS[i] / race.BaselineUS[i]
	}
	for i := range rep.Sizes {
		bound += (rep.Sizes[i].MedianUS - 0.97*race.BestUS[i]) / race.BaselineUS[i]
		if bound > 1.1*incumbent && i < len(rep.Sizes)-1 {
			rep.Sizes = rep.Sizes[:i+1]
			return &harness.Censored{MeasuredSizes: i + 1, LowerBound: bound / incumbent}
		}
	}
	return nil
}

// contest measures all contestants in rounds, forwards and backwards in turn.
func (s *Scripted) contest(r *harness.Request, sizes []harness.Size, rng *rand.Rand) *harness.Contest {
	c := &harness.Contest{Sizes: sizes}
	var who []*harness.Candidate
	for _, rival := range r.Rivals {
		c.Contestants = append(c.Contestants, rival.Role)
		who = append(who, rival.Candidate)
	}
	c.Contestants, who = append(c.Contestants, "candidate"), append(who, r.Candidate)
	for round := range r.Plan.Rounds {
		order := make([]int, len(who))
		medians := make([][]float64, len(who))
		for i := range who {
			order[i] = i
			if round%2 == 1 {
				order[i] = len(who) - 1 - i
			}
			medians[order[i]] = s.measure(who[order[i]], sizes, rng)
		}
		c.Order, c.MedianUS = append(c.Order, order), append(c.MedianUS, medians)
	}
	return c
}

// stream is the random stream of one measurement.
func stream(seed uint64, id string) *rand.Rand {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, seed) // a hash takes every write
	fmt.Fprint(h, id)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
