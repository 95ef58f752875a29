package night

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ridgepoint/scheduler/blend"
	"ridgepoint/scheduler/crown"
)

// Policy is a way to share the device.
type Policy struct {
	Name  string
	Blend blend.Config
	// Only tries drafts and waits for them when none is ready.
	Only bool
}

// Policies are the blend and what it is compared with.
func Policies() []Policy {
	fixed := func(share float64) blend.Config { return blend.Config{Mode: blend.Fixed, Share: share} }
	return []Policy{
		{Name: "auto", Blend: blend.Config{Mode: blend.Auto}},
		{Name: "tune-only", Blend: blend.Config{Mode: blend.Off}},
		{Name: "model-only", Blend: fixed(1), Only: true},
		{Name: "fixed 20:80", Blend: fixed(0.2)},
		{Name: "fixed 50:50", Blend: fixed(0.5)},
		{Name: "fixed 80:20", Blend: fixed(0.8)},
	}
}

// The night that is simulated. Times are in seconds.
const (
	DeviceSeconds = 600.0
	evalSeconds   = 1.0  // of one configuration
	firstSeconds  = 3.0  // of a structure's first, which is verified more
	failSeconds   = 0.25 // of one that fails
	probes        = 3    // after the default
	failShare     = 0.12
	shipped       = 2
	drafts        = 400 // more than any policy uses
)

// structure is one on its way.
type structure struct {
	space    *Space
	scale    float64
	broken   bool
	seen     []bool
	left     int
	bestRow  int
	best     float64
	logs     crown.Moments
	asked    int
	draft    bool
	adoptAt  float64 // the campaign's best when it was taken in
	first    float64 // the best after default and probes
	paid     float64 // device seconds of default and probes
	rng      *rand.Rand
	defaults int
}

// sim is one night of one policy.
type sim struct {
	policy    Policy
	structs   []*structure
	pending   []*structure // drafts in order of arrival
	next      int          // of pending
	ready     []*structure
	arrive    float64 // wall time at which the next draft comes
	wall      float64
	device    float64
	best      float64
	optimum   float64
	area      float64
	lastGain  float64
	tune, try float64
	used      int
	reply     float64 // mean time until a model's reply comes, in seconds
	rng       *rand.Rand
}

// Nights differ in what the model is worth: how fast it answers (2 to 40 seconds in the mean) and how many of its drafts are better than
// the library's structures can become (1 to 20 of 100), both drawn evenly on a logarithmic scale.
const (
	fastReply, slowReply = 2.0, 40.0
	fewGains, manyGains  = 0.01, 0.2
)

func logUniform(rng *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, rng.Float64())
}

// Run simulates one night and returns the area under the best so far: the mean over device-seconds of optimum / best, from 0 to 1.
// Everything random follows from the seed, the same for every policy: structures, defaults, replies and their delays.
func Run(family []*Space, seed uint64, p Policy) float64 {
	s := &sim{policy: p, best: math.Inf(1), optimum: math.Inf(1), rng: rand.New(rand.NewPCG(seed, 1))}
	world := rand.New(rand.NewPCG(seed, 2))
	s.reply = logUniform(world, fastReply, slowReply)
	gains := logUniform(world, fewGains, manyGains)
	for i := range shipped {
		s.structs = append(s.structs, s.newStructure(family, world, 1+0.2*float64(i)*world.Float64(), false, uint64(i)))
	}
	for i := range drafts {
		scale := math.Exp(0.05 + 0.5*math.Abs(world.NormFloat64()))
		if world.Float64() < gains {
			scale = 0.55 + 0.42*world.Float64()
		}
		broken := world.Float64() < failShare
		d := s.newStructure(family, world, scale, broken, uint64(100+i))
		d.draft = true
		s.pending = append(s.pending, d)
	}
	s.arrive = s.delay()
	for _, st := range s.structs {
		s.admit(st)
	}
	for s.device < DeviceSeconds && s.step() {
	}
	s.spend(max(0, DeviceSeconds-s.device))
	return s.area / DeviceSeconds
}

func (s *sim) newStructure(family []*Space, world *rand.Rand, scale float64, broken bool, n uint64) *structure {
	space := family[world.IntN(len(family))]
	d := &structure{space: space, scale: scale, broken: broken, seen: make([]bool, len(space.Rows)), left: len(space.Rows), bestRow: -1, best: math.Inf(1),
		rng: rand.New(rand.NewPCG(world.Uint64(), n)), defaults: world.IntN(len(space.Rows))}
	if !broken {
		s.optimum = min(s.optimum, scale)
	}
	return d
}

func (s *sim) delay() float64 { return s.reply * (0.5 + s.rng.ExpFloat64()*0.5) }

// spend lets device time pass.
func (s *sim) spend(seconds float64) {
	seconds = min(seconds, DeviceSeconds-s.device)
	s.device += seconds
	if !math.IsInf(s.best, 1) {
		s.area += seconds * s.optimum / s.best
	}
	s.pass(seconds)
}

// pass lets wall time pass; drafts arrive meanwhile, as many as the prefetch holds.
func (s *sim) pass(seconds float64) {
	s.wall += seconds
	for s.arrive <= s.wall && s.next < len(s.pending) {
		if len(s.ready) >= blend.Depth(float64(s.used)/max(s.wall, 60), s.reply) {
			s.arrive = s.wall + s.delay() // asked for once there is room
			return
		}
		s.ready = append(s.ready, s.pending[s.next])
		s.next++
		s.arrive += s.delay()
	}
}

// step does one thing and reports whether there was one.
func (s *sim) step() bool {
	var arms []blend.Arm
	if !s.policy.Only {
		for i, st := range s.structs {
			if st.left > 0 && !st.broken {
				arms = append(arms, blend.Arm{Kind: blend.KindTune, Structure: i + 1, Gain: s.gain(st), CostSeconds: evalSeconds, Asked: st.asked})
			}
		}
	}
	if len(s.ready) > 0 {
		arms = append(arms, blend.Arm{Kind: blend.KindTry})
	}
	if len(arms) == 0 {
		if s.next >= len(s.pending) {
			return false
		}
		s.pass(max(1, s.arrive-s.wall))
		return true
	}
	in := blend.Inputs{Config: s.policy.Blend, Arms: arms, TuneSeconds: s.tune, DraftSeconds: s.try,
		SinceGainSeconds: s.device - s.lastGain, TryCostSeconds: firstSeconds + probes*evalSeconds}
	for _, st := range s.structs[shipped:] {
		past := blend.Past{CostSeconds: st.paid}
		b := math.Sqrt(st.first * st.best) // half of what tuning adds is the draft's, as the scheduler books it
		if st.best < st.adoptAt && !math.IsInf(st.first, 1) && b < st.adoptAt {
			past.Gain = 1 - b/st.adoptAt
		}
		in.Past = append(in.Past, past)
	}
	c := blend.Queue(in)[0]
	if c.Kind == blend.KindTry {
		d := s.ready[0]
		s.ready = s.ready[1:]
		s.used++
		s.structs = append(s.structs, d)
		before := s.device
		s.admit(d)
		d.paid = s.device - before
		d.first = d.best
		s.try += d.paid
		return true
	}
	at := s.device
	s.eval(s.structs[c.Structure-1], evalSeconds)
	s.tune += s.device - at
	return true
}

// admit measures a structure's default and probes.
func (s *sim) admit(st *structure) {
	st.adoptAt = s.best
	if math.IsInf(st.adoptAt, 1) {
		st.adoptAt = 0
	}
	if st.broken {
		s.spend(failSeconds)
		return
	}
	st.measure(s, st.defaults, firstSeconds)
	for range probes {
		s.eval(st, evalSeconds)
	}
}

// eval tries the next configuration of a structure: near its best in two of three cases, anywhere else; a stand-in for an optimizer that
// is cheap, fair to all policies and works on any excerpt of a space.
func (s *sim) eval(st *structure, seconds float64) {
	if st.left == 0 {
		return
	}
	row := -1
	if st.bestRow >= 0 && st.rng.IntN(3) > 0 {
		row = st.near()
	}
	for row < 0 || st.seen[row] {
		row = st.rng.IntN(len(st.seen))
	}
	st.measure(s, row, seconds)
}

// near draws an unseen row that differs from the best in one or two values.
func (st *structure) near() int {
	best, found, n := st.space.Rows[st.bestRow], -1, 0
	for i, row := range st.space.Rows {
		if st.seen[i] {
			continue
		}
		d := 0
		for k := range row {
			if row[k] != best[k] {
				d++
			}
		}
		if d <= 2 {
			if n++; st.rng.IntN(n) == 0 {
				found = i
			}
		}
	}
	return found
}

func (st *structure) measure(s *sim, row int, seconds float64) {
	if st.seen[row] {
		return
	}
	st.seen[row] = true
	st.left--
	st.asked++
	t := st.space.Ratios[row] * st.scale
	if t == 0 {
		s.spend(failSeconds)
		return
	}
	s.spend(seconds)
	st.logs.Add(math.Log(t))
	if t < st.best {
		st.best, st.bestRow = t, row
	}
	if t < s.best {
		s.best, s.lastGain = t, s.device
	}
}

// gain is the relative improvement that one more configuration is expected to bring, as the scheduler estimates it without a model.
func (s *sim) gain(st *structure) float64 {
	if math.IsInf(st.best, 1) {
		return 0.01
	}
	spread := math.Sqrt(st.logs.Variance())
	if st.logs.N < 3 {
		spread = max(spread, 0.3)
	}
	spread = min(max(spread, 0.02), 1)
	b := crown.Belief{Mean: math.Log(st.best) + spread/2, SD: spread / math.Sqrt(1+float64(st.logs.N)/16)}
	return b.Improvement(math.Log(s.best))
}

// Comparison is one policy against the blend over the same nights.
type Comparison struct {
	Policy string  `json:"policy"`
	Area   float64 `json:"area"` // mean over nights
	// Difference is the blend's area less this policy's, paired by night, with its 95 % interval.
	Difference float64    `json:"difference"`
	Interval   [2]float64 `json:"interval"`
	Nights     int        `json:"nights"`
}

// nightsPerSeed is how many nights each seed and family stand for.
const nightsPerSeed = 4

// Compare runs every policy on the same nights: seeds from first on, each with every family.
func Compare(families [][]*Space, first uint64, seeds int) ([]Comparison, error) {
	if seeds < 2 {
		return nil, fmt.Errorf("need >= 2 seeds for an interval, got %d", seeds)
	}
	policies := Policies()
	areas := make([][]float64, len(policies))
	for seed := range uint64(seeds) {
		for i, p := range policies {
			sum := 0.0
			for k, family := range families {
				for n := range uint64(nightsPerSeed) {
					sum += Run(family, (first+seed)*1000+n*100+uint64(k), p)
				}
			}
			areas[i] = append(areas[i], sum/float64(nightsPerSeed*len(families)))
		}
	}
	out := make([]Comparison, len(policies))
	for i, p := range policies {
		var m, d crown.Moments
		for n := range areas[i] {
			m.Add(areas[i][n])
			d.Add(areas[0][n] - areas[i][n])
		}
		half := studentHalf(seeds-1) * math.Sqrt(d.Variance()/float64(seeds))
		out[i] = Comparison{Policy: p.Name, Area: m.Mean, Difference: d.Mean, Interval: [2]float64{d.Mean - half, d.Mean + half}, Nights: seeds * nightsPerSeed * len(families)}
	}
	return out, nil
}
