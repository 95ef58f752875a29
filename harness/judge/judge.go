package judge

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/harness"
	"ridgepoint/harness/baselines"
	"ridgepoint/harness/feedback"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/reference"
	"ridgepoint/harness/rules"
	"ridgepoint/harness/toolchain"
	"ridgepoint/harness/verify"
)

// Config says what a Judge works with.
type Config struct {
	CacheDir string // builds, shared by processes
	RunDir   string // locks and children's folders
	Compiler string // C compiler's name or path; "": the first of gcc, clang, cc
	Cores    []int  // given to candidates of the cpu target; nil: all that this process may use
	// ReducedSandbox is the person's `sandbox: reduced`: sources that are not shipped run without the full sandbox.
	ReducedSandbox bool
	// OracleFunc computes expected values, in float64; nil: the tasks' own references, cached under CacheDir.
	OracleFunc verify.OracleFunc
	// RulesFunc finds what a source may not contain, before anything is compiled; nil: rules.Check.
	RulesFunc   func(t *harness.Task, s *harness.Structure) []rules.Violation
	PoolBytes   int64         // of input sets and expected values kept in memory; 0: a sixteenth of this machine's memory, 1 GiB at most
	LaunchLimit time.Duration // of one launch; 0: by its work
	Version     string        // of this program, for reports
	Targets     []Target      // besides the cpu, which is always there
	Log         zerolog.Logger
}

// Validate reports what is missing.
func (c Config) Validate() error {
	if c.CacheDir == "" || c.RunDir == "" {
		return errors.New("judge: CacheDir and RunDir must both name a folder")
	}
	return nil
}

// Target compiles and judges the candidates of one target.
type Target interface {
	// Target says which.
	Target() harness.Target
	// Key returns the cache key of a candidate's build.
	Key(ctx context.Context, c *harness.Candidate) (string, error)
	// Compile builds a candidate, or says why its compiler refuses.
	Compile(ctx context.Context, c *harness.Candidate) (*harness.Build, []byte, *toolchain.Refusal, error)
	// Judge runs Evaluate where the device is. The Bout's Engine and Environment are the target's to fill.
	Judge(ctx context.Context, b Bout) (*harness.Report, error)
	// Close gives the device back.
	Close() error
}

// Judge implements harness.Harness. It is safe for concurrent use; evaluations of one target take turns.
type Judge struct {
	config Config
	cache  *toolchain.Cache
	pool   *verify.Pool
	// baselines serves reports that were measured without theirs.
	baselines *baselines.Registry
	targets   map[harness.Target]Target

	turns *turns // nil: enough cores for compiling beside timing
}

var _ harness.Harness = (*Judge)(nil)

// cacheLimitBytes bounds the build cache: some 50 000 builds of shipped kernels.
const cacheLimitBytes = 2 << 30

// fewCores is DESIGN.md's: with fewer, compiling and timing alternate.
const fewCores = 4

// New makes a Judge. It starts nothing: compilers and devices are looked for when they are needed.
func New(c Config) (*Judge, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	cache, err := toolchain.OpenCache(filepath.Join(c.CacheDir, "builds"), cacheLimitBytes)
	if err != nil {
		return nil, err
	}
	if c.OracleFunc == nil {
		expected, err := reference.NewCache(filepath.Join(c.CacheDir, "expected"), reference.DefaultCacheBytes)
		if err != nil {
			return nil, err
		}
		c.OracleFunc = Oracle(expected)
	}
	if c.RulesFunc == nil {
		c.RulesFunc = rules.Check
	}
	if c.PoolBytes == 0 {
		c.PoolBytes = verify.PoolBytes(1 << 30)
	}
	j := &Judge{config: c, cache: cache, pool: verify.NewPool(c.OracleFunc, c.PoolBytes), baselines: baselines.Open(filepath.Join(c.CacheDir, "baselines")), targets: map[harness.Target]Target{}}
	if runtime.NumCPU() < fewCores {
		j.turns = newTurns()
	}
	j.targets[harness.TargetCPU] = newCPU(c)
	for _, t := range c.Targets {
		j.targets[t.Target()] = t
	}
	return j, nil
}

// Close gives all devices back.
func (j *Judge) Close() error {
	var err error
	for _, t := range j.targets {
		err = errors.Join(err, t.Close())
	}
	return err
}

// Pool returns the judge's input sets with their expected values.
func (j *Judge) Pool() *verify.Pool { return j.pool }

// Artifact returns the bytes of a build, whose SHA-256 is its Artifact; the error is os.ErrNotExist when it is not in the
// cache.
func (j *Judge) Artifact(b *harness.Build) ([]byte, error) { return j.cache.Artifact(b) }

// Import puts a build made elsewhere into the cache, so that Benchmark can run it.
func (j *Judge) Import(b *harness.Build, artifact []byte) error { return j.cache.Import(b, artifact) }

// Compile applies the rules and builds the candidate, from the cache where it is there and the plan allows it.
func (j *Judge) Compile(ctx context.Context, q *harness.Request) (*harness.Build, *harness.Report, error) {
	r := NewReport(q)
	violations := j.config.RulesFunc(q.Task, q.Candidate.Structure)
	for _, v := range violations {
		r.Detail = append(r.Detail, v.String())
	}
	if v, refused := rules.Refused(violations); refused {
		r.Fault, r.Rules, r.Reason, r.Finished = harness.FaultRules, harness.StatusFail, v.String(), time.Now().UTC()
		feedback.Fill(q.Task, r)
		return nil, r, nil
	}
	r.Rules = harness.StatusPass
	b, refusal, err := j.build(ctx, q.Candidate, q.Plan.FreshCache)
	if err != nil {
		return nil, nil, err
	}
	r.Finished = time.Now().UTC()
	if refusal != nil {
		r.Fault, r.Compile, r.Reason = harness.FaultCompile, harness.StatusFail, refusal.Reason
		r.Split.Compile = r.Finished.Sub(r.Started).Seconds()
		r.Split.Total = r.Split.Compile
		for _, d := range refusal.Diagnostics {
			r.Detail = append(r.Detail, Line(d))
		}
		feedback.Fill(q.Task, r)
		return nil, r, nil
	}
	r.Compile, r.Build = harness.StatusPass, b
	return b, nil, nil
}

// Line prints a compiler's message with the line it is about.
func Line(d harness.Diagnostic) string {
	s := fmt.Sprintf("%s:%d:%d: %s: %s", d.File, d.Line, d.Column, d.Severity, d.Message)
	if d.Source != "" {
		s += "\n    " + d.Source
	}
	return s
}

// build compiles through the cache; fresh makes the build anew and replaces what the cache had.
func (j *Judge) build(ctx context.Context, c *harness.Candidate, fresh bool) (*harness.Build, *toolchain.Refusal, error) {
	t, err := j.target(c.Target)
	if err != nil {
		return nil, nil, err
	}
	key, err := t.Key(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if !fresh {
		if b, ok, err := j.cache.Get(key); err != nil || ok {
			return b, nil, err
		}
	}
	if j.turns != nil {
		done, err := j.turns.compile(ctx)
		if err != nil {
			return nil, nil, err
		}
		defer done()
	}
	b, artifact, refusal, err := t.Compile(ctx, c)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	if err := j.cache.Put(b, artifact); err != nil {
		return nil, nil, err
	}
	return b, nil, nil
}

// Benchmark verifies and measures a built candidate, with its rivals built from the cache or now.
func (j *Judge) Benchmark(ctx context.Context, q *harness.Request, b *harness.Build) (*harness.Report, error) {
	t, err := j.target(q.Candidate.Target)
	if err != nil {
		return nil, err
	}
	if _, err := j.cache.Artifact(b); err != nil {
		return nil, fmt.Errorf("benchmark %s: %w", q.Candidate.Structure.Name, err)
	}
	bout := Bout{Request: q, Pool: j.pool, LaunchLimit: j.config.LaunchLimit, Module: j.module(q.Candidate, b)}
	for _, rival := range q.Rivals {
		built, refusal, err := j.build(ctx, rival.Candidate, false)
		if err != nil {
			return nil, fmt.Errorf("build the %s: %w", rival.Role, err)
		}
		if refusal != nil {
			return nil, &RivalError{Role: rival.Role, Stop: &verify.Stop{Fault: harness.FaultCompile, Reason: refusal.Reason}}
		}
		bout.Rivals = append(bout.Rivals, measure.Contestant{Role: rival.Role, Module: j.module(rival.Candidate, built)})
	}
	if j.turns != nil {
		done, err := j.turns.measure(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	r, err := t.Judge(ctx, bout)
	if err != nil {
		return nil, err
	}
	if !b.Cached {
		r.Split.Compile = b.TookSeconds
	}
	if err := errors.Join(j.baselines.Take(q.Task, r), j.baselines.Fill(q.Task, r)); err != nil {
		j.config.Log.Warn().Err(err).Msg("the baseline registry cannot be used")
	}
	for _, v := range j.config.RulesFunc(q.Task, q.Candidate.Structure) {
		r.Detail = append(r.Detail, v.String())
	}
	for _, d := range b.Diagnostics {
		r.Detail = append(r.Detail, Line(d))
	}
	feedback.Fill(q.Task, r)
	return r, nil
}

func (j *Judge) module(c *harness.Candidate, b *harness.Build) verify.Module {
	return verify.Module{Build: b, Path: j.cache.Path(b), Candidate: c}
}

func (j *Judge) target(t harness.Target) (Target, error) {
	if x, ok := j.targets[t]; ok {
		return x, nil
	}
	return nil, fmt.Errorf("target %s cannot be judged on this machine; `ridgepoint doctor` says what is missing", t)
}
