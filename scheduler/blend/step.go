package blend

import "math"

// Ask is what a model may be asked for. The zero Ask is invalid.
type Ask uint8

// The asks.
const (
	AskInvalid Ask = iota
	AskNew         // a structure in a new direction
	AskRefine      // a better version of one
	AskCross       // two joined
	AskSuggest     // a configuration
)

// Asks are the asks in order.
var Asks = [...]Ask{AskNew, AskRefine, AskCross, AskSuggest}

var askNames = [...]string{"invalid", "new_direction", "refine", "cross", "suggest"}

// String returns the ask's name, as steps are called.
func (a Ask) String() string {
	if int(a) < len(askNames) {
		return askNames[a]
	}
	return "unknown"
}

// Record is how asks of one kind did so far.
type Record struct {
	Asked int
	Gain  float64 // relative improvements that their drafts brought, added up
}

// AskInputs are what the next ask depends on.
type AskInputs struct {
	Records    [len(askNames)]Record // by Ask
	Structures int                   // that have a measured configuration
	Tunable    bool                  // one of them has parameters
	Stagnation float64               // 0 to 1
	Flat       int                   // rounds in a row in the direction of the best that brought nothing
}

// NextAsk returns what to ask for, with the numbers: the kind with the highest mean gain plus a bonus for being tried little. When the
// search stagnates, kinds that explore get the larger bonus; a suggestion is asked for seldom, parameter search is better at it.
func NextAsk(in AskInputs) (Ask, map[string]float64) {
	if in.Structures == 0 {
		return AskNew, map[string]float64{"structures": 0}
	}
	total := 1.0
	for _, a := range Asks {
		total += float64(in.Records[a].Asked)
	}
	best, bestScore := AskNew, math.Inf(-1)
	why := map[string]float64{"stagnation": in.Stagnation, "flat": float64(in.Flat)}
	for _, a := range Asks {
		if (a == AskCross && in.Structures < 2) || (a == AskSuggest && !in.Tunable) || (a == AskRefine && in.Flat > 4 && in.Stagnation >= 1) {
			continue
		}
		r := in.Records[a]
		mean := (r.Gain + priorGain) / (float64(r.Asked) + 1)
		bonus := priorGain * math.Sqrt(math.Log(total+1)/(float64(r.Asked)+1))
		switch a {
		case AskNew, AskCross:
			bonus *= 1 + in.Stagnation
		case AskSuggest:
			bonus *= 0.25
			mean *= 0.5
		case AskRefine:
			bonus *= 1 - 0.5*in.Stagnation
		}
		why[a.String()] = mean + bonus
		if mean+bonus > bestScore {
			best, bestScore = a, mean+bonus
		}
	}
	return best, why
}

// Depth is how many drafts to keep ready: as many as are used in the time that one takes to come, and one more.
func Depth(usesPerSecond, replySeconds float64) int {
	need := math.Ceil(usesPerSecond*replySeconds) + 1
	if math.IsNaN(need) {
		return 1
	}
	return int(min(max(need, 1), maxDepth))
}

// maxDepth bounds the prefetch: a draft that waits longer than eight others knows too little of what has happened since.
const maxDepth = 8
