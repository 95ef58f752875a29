package blend

import (
	"math"
	"sort"
)

// Kind is a kind of action. The zero Kind is invalid.
type Kind uint8

// The kinds of actions.
const (
	KindInvalid   Kind = iota
	KindTune           // one more configuration of Structure
	KindTry            // take Draft into the search: its default and a few probes
	KindRemeasure      // measure a near-tie again
	KindConfirm        // prove a nominee
)

var kindNames = [...]string{"invalid", "tune", "try", "remeasure", "confirm"}

// String returns the kind's name as `why` prints it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Arm is something that the device could do next, with what it promises.
type Arm struct {
	Kind        Kind
	Structure   int
	Draft       int     // KindTry
	Gain        float64 // expected relative improvement of the best so far; not used for KindTry, which the past prices
	CostSeconds float64 // of device time
	Asked       int     // configurations of the structure so far
	Pinned      bool    // a person wants it: before everything else
}

// Past is what came of one draft that was taken into the search.
type Past struct {
	Gain        float64 // relative improvement of the campaign's best that its structure brought so far; 0 for none
	CostSeconds float64 // of its default and probes
}

// Inputs are what a choice depends on.
type Inputs struct {
	Config       Config
	Arms         []Arm
	Past         []Past  // oldest first
	TuneSeconds  float64 // device time of each half so far
	DraftSeconds float64
	// SinceGainSeconds is the device time since the best last improved.
	SinceGainSeconds float64
	// TryCostSeconds is what a draft's default and probes are expected to take; 0: the mean of the past.
	TryCostSeconds float64
}

// The numbers of the prices. They were chosen on simulated nights with seeds below 100 (package night): eight imaginary drafts that
// each brought 10 % keep the first real ones from deciding, a discount of 0.93 a draft lets the estimate follow as gains become rare, and
// when nothing has improved for 40 evaluations six tenths of the estimate's standard error are added. Correcting the optimizers' promises by
// what they kept made nights worse there, so it is not done.
const (
	priorDrafts   = 8.0
	priorGain     = 0.1
	draftDiscount = 0.93
	stagnantEvals = 40.0
	spreadWeight  = 0.6
	trust         = 0.2 // in the odds of the prices
	patience      = 0.7 // how much stagnation moves the shares towards drafts, and a recent gain towards tuning
	leastShare    = 0.2 // of the device time for drafts, while there are any
	mostShare     = 0.8
	exploreEvery  = 12 // tuning: the least asked structure gets each 12th slot, each 6th when stagnant
)

// Choice is an arm with its price: an entry of the queue.
type Choice struct {
	Arm
	Rate float64            // expected relative improvement per device-second
	Why  map[string]float64 // the numbers behind it
}

// Queue returns the arms ordered by what they promise per device-second, the best first. Ties keep the order of the arms.
func Queue(in Inputs) []Choice {
	stagnation := Stagnation(in)
	draftGain, draftCost, spread := draftPrice(in)
	total := in.TuneSeconds + in.DraftSeconds
	out := make([]Choice, 0, len(in.Arms))
	for _, a := range in.Arms {
		c := Choice{Arm: a, Why: map[string]float64{"stagnation": stagnation}}
		switch a.Kind {
		case KindTry:
			c.Gain, c.CostSeconds = draftGain+stagnation*spreadWeight*spread, draftCost
			c.Why["drafts_before"], c.Why["draft_mean_gain"], c.Why["draft_spread"] = float64(len(in.Past)), draftGain, spread
		default:
			c.Why["predicted_gain"] = a.Gain
		}
		c.Rate = c.Gain / max(c.CostSeconds, 1e-9)
		c.Why["gain"], c.Why["cost_seconds"], c.Why["per_second"] = c.Gain, c.CostSeconds, c.Rate
		out = append(out, c)
	}
	explore(out, stagnation)
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].Pinned != out[j].Pinned {
			return out[i].Pinned
		}
		return out[i].Rate > out[j].Rate
	})
	return share(in.Config, out, in.DraftSeconds, total)
}

// Stagnation is 0 right after a gain and 1 when nothing has improved for long.
func Stagnation(in Inputs) float64 {
	cost, n := 0.0, 0
	for _, a := range in.Arms {
		if a.Kind == KindTune {
			cost += a.CostSeconds
			n++
		}
	}
	if n == 0 || cost == 0 {
		return 0
	}
	return min(1, in.SinceGainSeconds/(stagnantEvals*cost/float64(n)))
}

// draftPrice is the mean gain, cost and standard error of a draft, from the past and the prior.
func draftPrice(in Inputs) (gain, cost, spread float64) {
	weight, gains, squares := priorDrafts, priorDrafts*priorGain, priorDrafts*priorGain*priorGain*4
	costWeight, costs := 0.0, 0.0
	w := 1.0
	for i := len(in.Past) - 1; i >= 0; i-- {
		p := in.Past[i]
		weight += w
		gains += w * p.Gain
		squares += w * p.Gain * p.Gain
		costWeight += w
		costs += w * p.CostSeconds
		w *= draftDiscount
	}
	gain = gains / weight
	spread = math.Sqrt(max(0, squares/weight-gain*gain) / weight)
	cost = in.TryCostSeconds
	if costWeight > 0 {
		cost = (in.TryCostSeconds + costs) / (1 + costWeight)
		if in.TryCostSeconds == 0 {
			cost = costs / costWeight
		}
	}
	return gain, max(cost, 1e-6), spread
}

// explore lifts the structure that was asked least to the top of the tuning arms when its turn has come.
func explore(out []Choice, stagnation float64) {
	every := exploreEvery
	if stagnation >= 1 {
		every /= 2
	}
	asked, least := 0, -1
	best := 0.0
	for i, c := range out {
		if c.Kind != KindTune {
			continue
		}
		asked += c.Asked
		best = max(best, c.Rate)
		if least < 0 || c.Asked < out[least].Asked {
			least = i
		}
	}
	if least >= 0 && asked > 0 && asked%every == 0 && out[least].Rate < best {
		out[least].Rate = best
		out[least].Why["explore"] = 1
		// Before the arm that it ties with: a stable sort keeps the order.
		lifted := out[least]
		copy(out[1:least+1], out[:least])
		out[0] = lifted
	}
}

// share applies the modes that do not compare: a fixed share, or no drafts at all while there is anything to tune.
func share(c Config, out []Choice, draftSeconds, total float64) []Choice {
	var tries, rest []Choice
	for _, x := range out {
		if x.Kind == KindTry && !x.Pinned {
			tries = append(tries, x)
		} else {
			rest = append(rest, x)
		}
	}
	switch c.Mode {
	case Auto:
		if len(tries) > 0 && len(rest) > 0 && !out[0].Pinned {
			part := hedge(tries[0].Rate, rest[0].Rate, out[0].Why["stagnation"])
			for i := range out {
				out[i].Why["draft_share"], out[i].Why["draft_share_so_far"] = part, draftSeconds/max(total, 1e-9)
			}
			if draftSeconds <= part*total {
				return append(tries, rest...)
			}
			return append(rest, tries...)
		}
		return out
	case Off:
		if len(rest) > 0 {
			return rest
		}
		return tries
	case Fixed:
		if c.Share > 0 && draftSeconds <= c.Share*total {
			return append(tries, rest...)
		}
		if c.Share == 1 {
			return append(tries, rest...)
		}
		return append(rest, tries...)
	default:
		panic("blend: the mode is not set; use Parse")
	}
}

// hedge is the share of the device time that goes to drafts: even shares, moved by the odds of the two prices and by stagnation. Both
// prices are rough guesses, and on simulated nights following them to the letter loses to even shares, while this beats them.
func hedge(draft, tune, stagnation float64) float64 {
	odds := math.Pow(max(draft, 1e-9)/max(tune, 1e-9), trust) * math.Exp(patience*(stagnation-0.5))
	return min(max(odds/(1+odds), leastShare), mostShare)
}
