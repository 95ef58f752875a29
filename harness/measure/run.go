package measure

import (
	"context"
	"errors"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
)

// Contestant is one module that is timed: the candidate, or a rival beside it.
type Contestant struct {
	Role   string // candidate, baseline or incumbent
	Module verify.Module
}

// RoleCandidate is the role of the module that is judged; RoleBaseline that of the textbook kernel.
const (
	RoleCandidate = "candidate"
	RoleBaseline  = "baseline"
)

// Order asks for the timing of a candidate and its rivals.
type Order struct {
	Task      *harness.Task
	Target    harness.Target
	Candidate Contestant
	Rivals    []Contestant // timed under the same protocol; the baseline's times go into BaselineUS
	Stage     harness.Stage
	Seed      uint64
	Race      *harness.Race
	Rounds    int // over 0: interleaved rounds, and a Contest in the result
	Pool      *verify.Pool
	LimitFunc func(size harness.Size) time.Duration
	Hidden    []harness.Size // timed after the scored sizes, in a replay
}

// Result is what timing found. Stop is nil for a candidate whose every launch was right; Role names whose fault it is else.
type Result struct {
	Stop     *verify.Stop
	Role     string
	Errors   *harness.Errors
	Sizes    []harness.SizeTime // in the task's order; only the measured ones when Censored is set
	Hidden   []harness.SizeTime // of Order.Hidden
	Censored *harness.Censored
	Contest  *harness.Contest
	Split    harness.Split // Load, Inputs, Flush, Measure and Device are filled
	Noisy    bool
}

// Run times a candidate on an engine in freshly loaded modules. An error means broken infrastructure; a candidate at fault is
// a Result with Stop set.
func Run(ctx context.Context, engine verify.Engine, o Order) (*Result, error) {
	m := &meter{Order: o, engine: engine, timing: TimingFor(o.Task, engine.Traits()), result: &Result{}}
	err := m.open(ctx)
	if err == nil {
		err = m.sizes(ctx)
	}
	if err == nil && m.Stage == harness.StageReplay && !engine.Traits().Untimed {
		err = m.hidden(ctx)
	}
	for _, p := range m.programs {
		err = errors.Join(err, p.Close())
	}
	if m.result.Errors == nil {
		m.result.Errors = m.tally.Errors()
	}
	if errors.As(err, &m.result.Stop) {
		m.result.Role = m.role
		return m.result, nil
	}
	return m.result, err
}

type meter struct {
	Order
	engine   verify.Engine
	timing   Timing
	programs []verify.Program // the candidate's first, then the rivals' in order
	role     string           // whose launch was the last
	tally    verify.Tally
	early    [][]float64 // of a pilot, by scored size; nil where there is none
	result   *Result
}

func (m *meter) contestants() []Contestant { return append([]Contestant{m.Candidate}, m.Rivals...) }

func (m *meter) open(ctx context.Context) error {
	begin := time.Now()
	defer func() { m.result.Split.Load = time.Since(begin).Seconds() }()
	for _, c := range m.contestants() {
		m.role = c.Role
		p, err := m.engine.Open(ctx, c.Module)
		if err != nil {
			return err
		}
		m.programs = append(m.programs, p)
	}
	return nil
}

// sizes times the scored sizes from the least work to the most, so that racing decides early.
func (m *meter) sizes(ctx context.Context) error {
	scored := m.Task.ScoredSizes(m.Target)
	times := make([]*harness.SizeTime, len(scored))
	measured := make([][]float64, len(scored))
	if m.Rounds > 0 {
		m.result.Contest = newContest(m.contestants(), scored, m.Rounds)
	}
	done := 0
	order := verify.Ascending(m.Task, scored)
	if m.engine.Traits().Untimed {
		order, m.timing.Retries = order[:min(len(order), 1)], 0
	}
	m.early = make([][]float64, len(scored))
	if m.pilots(len(scored)) {
		over := false
		var err error
		if m.early, over, err = m.pilot(ctx, order, scored); err != nil {
			return err
		}
		if over {
			return nil
		}
	}
	for _, i := range order {
		st, err := m.size(ctx, i, scored[i])
		if err != nil {
			return err
		}
		times[i], measured[i] = st, st.SamplesUS
		m.result.Noisy = m.result.Noisy || st.Noisy
		done++
		if m.Race == nil || m.Rounds > 0 || done == len(scored) {
			continue
		}
		if bound, stop := race(m.Race, measured); stop {
			m.result.Censored = &harness.Censored{MeasuredSizes: done, LowerBound: bound}
			break
		}
	}
	if m.engine.Traits().Untimed { // the launches of one size were judged; their times mean nothing
		m.result.Noisy, m.result.Contest = false, nil
		return nil
	}
	for _, st := range times {
		if st != nil {
			m.result.Sizes = append(m.result.Sizes, *st)
		}
	}
	return nil
}

// size times one scored size for everyone.
func (m *meter) size(ctx context.Context, index int, size harness.Size) (*harness.SizeTime, error) {
	benches, err := m.bind(ctx, index, size)
	defer closeAll(benches)
	if err != nil {
		return nil, err
	}
	var st harness.SizeTime
	if m.Rounds > 0 {
		st, err = m.contest(ctx, index, benches)
	} else {
		st, err = m.each(ctx, benches, m.early[index])
	}
	if err != nil {
		m.keepFailed(benches)
		return nil, err
	}
	m.role = RoleCandidate
	if err := m.checks(ctx, benches[0], st.MedianUS); err != nil {
		m.keepFailed(benches)
		return nil, err
	}
	flops, bytes, err := task.WorkAt(m.Task, size)
	if err != nil {
		return nil, err
	}
	if st.GraphUS, err = m.graph(ctx, benches[0], st.MedianUS); err != nil {
		return nil, err
	}
	if st.Timeline, err = m.timeline(ctx, benches[0]); err != nil {
		return nil, err
	}
	st.FLOPs, st.Bytes, st.FloorUS = flops, bytes, m.engine.Traits().FloorUS(flops, bytes)
	return &st, nil
}

// graphBelowUS is the runtime below which GPUs time a kernel a second way, and graphLaunches how many launches one graph holds.
const (
	graphBelowUS  = 10
	graphLaunches = 50
)

// graph times a kernel that is short for events by many launches in one graph, where the device can. It costs allocations: the
// search does without.
func (m *meter) graph(ctx context.Context, b *bench, medianUS float64) (float64, error) {
	g, ok := b.Bench.(verify.Grapher)
	if !ok || medianUS >= graphBelowUS || m.Stage == harness.StageSearch {
		return 0, nil
	}
	each, err := g.Graph(ctx, b.sets[0], graphLaunches)
	if err != nil {
		return 0, verify.Blame(err, b.layout, b.sets[0], verify.Aim{Launch: b.launches, Timed: true})
	}
	return float64(each) / float64(time.Microsecond), nil
}

// timelineLaunches is how many runs a timeline's medians are over.
const timelineLaunches = 11

// timeline times the steps of a plan that has several, where the device can. The search does without.
func (m *meter) timeline(ctx context.Context, b *bench) ([]harness.Step, error) {
	steps := len(b.layout.Plan.Launches)
	for _, w := range b.layout.Plan.Workspace {
		if w.Init == "zero" {
			steps++
		}
	}
	t, ok := b.Bench.(verify.Timeliner)
	if !ok || steps < 2 || m.Stage == harness.StageSearch {
		return nil, nil
	}
	out, err := t.Timeline(ctx, b.sets[0], timelineLaunches)
	if err != nil {
		return nil, verify.Blame(err, b.layout, b.sets[0], verify.Aim{Launch: b.launches, Timed: true})
	}
	return out, nil
}

func (m *meter) keepFailed(benches []*bench) {
	for _, b := range benches {
		if b.failed != nil {
			m.result.Errors = b.failed
		}
	}
}

// bind lays the size out for every contestant and gets the input sets.
func (m *meter) bind(ctx context.Context, index int, size harness.Size) ([]*bench, error) {
	var out []*bench
	var sets []*verify.Set
	for i, c := range m.contestants() {
		m.role = c.Role
		l, err := verify.NewLayout(m.Task, c.Module.Candidate, size, len(sets))
		if err != nil {
			return out, &verify.Stop{Fault: harness.FaultLaunch, Reason: err.Error(), Evidence: harness.Evidence{Kind: verify.KindLaunch, Size: size}}
		}
		if sets == nil {
			if sets, err = m.inputs(ctx, index, l); err != nil {
				return out, err
			}
			l.SetCount = len(sets)
		}
		begin := time.Now()
		b, err := m.programs[i].Bind(ctx, l)
		m.result.Split.Load += time.Since(begin).Seconds()
		if err != nil {
			return out, verify.Blame(err, l, sets[0], verify.Aim{Timed: true})
		}
		out = append(out, &bench{Bench: b, layout: l, sets: sets, limit: m.LimitFunc(size), seed: verify.Mix(m.Seed, uint64(index), uint64(i), 0x71ed), tally: &m.tally, split: &m.result.Split})
	}
	return out, nil
}

func (m *meter) inputs(ctx context.Context, index int, l *verify.Layout) ([]*verify.Set, error) {
	begin := time.Now()
	defer func() { m.result.Split.Inputs += time.Since(begin).Seconds() }()
	var out []*verify.Set
	for i, spec := range SetsOf(m.Task, m.Stage, m.Seed, index, l.Size) {
		s, err := m.Pool.Get(ctx, m.Task, l.Size, spec, i)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// each times the candidate, of which a pilot may have some samples, and then its rivals, one after the other.
func (m *meter) each(ctx context.Context, benches []*bench, early []float64) (harness.SizeTime, error) {
	var st harness.SizeTime
	for i, c := range m.contestants() {
		m.role = c.Role
		timing := m.timing
		if i == 0 {
			timing = timing.rest(early)
			timing.Unseen = true
		}
		got, walls, err := benches[i].time(ctx, timing)
		if err != nil {
			return st, err
		}
		if i == 0 {
			st = benches[0].merge(early, got, m.timing)
			if err := checkWalls(benches[0], got.SamplesUS, walls); err != nil {
				return st, err
			}
		} else if c.Role == RoleBaseline {
			st.BaselineUS, st.BaselineNoisy = got.MedianUS, got.Noisy
			st.Noisy = st.Noisy || got.Noisy
		}
	}
	if m.Race != nil && st.BaselineUS == 0 {
		st.BaselineUS = m.cachedBaseline(benches[0].layout.Size)
	}
	return st, nil
}

// cachedBaseline returns what the plan says of the baseline where it is not measured: it serves progress lines.
func (m *meter) cachedBaseline(size harness.Size) float64 {
	for i, s := range m.Task.ScoredSizes(m.Target) {
		if s.Equal(size) && i < len(m.Race.BaselineUS) {
			return m.Race.BaselineUS[i]
		}
	}
	return 0
}

// checks are what no timed launch shows: that repeated inputs are no quicker than new ones, and that the clock agrees.
func (m *meter) checks(ctx context.Context, b *bench, medianUS float64) error {
	traits := m.engine.Traits()
	if traits.Untimed {
		return nil
	}
	if err := b.fresh(ctx, m.timing, medianUS); err != nil || traits.Target != harness.TargetCPU {
		return err // a GPU's events are beyond the candidate's reach
	}
	return b.batch(ctx, medianUS)
}
