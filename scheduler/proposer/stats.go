package proposer

import (
	"context"
	"fmt"
	"math"
	"sort"

	"ridgepoint/harness"
	"ridgepoint/scheduler/memory"
)

// findings is what parameter search learned, gathered from the campaign's records as they come.
type findings struct {
	seq        int64                // of the last record read
	structures map[string]*finding  // by digest
	device     *harness.Environment // of the last report
}

// finding is what is known of one structure.
type finding struct {
	name, direction string
	tried           int
	best            float64 // lowest objective (negated score); 0: none
	bestTrial       int64
	bestConfig      harness.Configuration
	bestReport      *harness.Report
	values          map[string]map[string]float64 // parameter -> value -> lowest objective with it
	profile         []harness.Digest              // of its last incumbent
	failure         *harness.Report               // its last failure
	failures        []failure                     // the last few, oldest first
}

type failure struct {
	seq    int64
	fault  harness.Fault
	reason string
	config harness.Configuration
}

// keptFailures is how many failures of a structure are remembered: a prompt shows fewer.
const keptFailures = 4

// read takes in the records that came since the last call.
func (f *findings) read(ctx context.Context, store *memory.Store, campaign string) error {
	if f.structures == nil {
		f.structures = map[string]*finding{}
	}
	return store.Records(ctx, campaign, f.seq, func(r *harness.Record) error {
		f.seq = r.Seq
		f.add(r)
		return nil
	})
}

func (f *findings) add(r *harness.Record) {
	if r.Report.Environment.Device != "" {
		env := r.Report.Environment
		f.device = &env
	}
	if r.StructureSHA == "" || r.Purpose == "aa" || r.Purpose == "baseline" {
		return
	}
	s := f.structures[r.StructureSHA]
	if s == nil {
		s = &finding{name: r.Structure, direction: r.Direction, values: map[string]map[string]float64{}}
		f.structures[r.StructureSHA] = s
	}
	if len(r.Report.Profile) > 0 {
		s.profile = r.Report.Profile
	}
	if r.Purpose != "search" {
		return
	}
	s.tried++
	report := r.Report
	if !report.Fault.Measured() {
		s.failure = &report
		s.failures = append(s.failures, failure{r.Seq, report.Fault, report.Reason, r.Config})
		if len(s.failures) > keptFailures {
			s.failures = s.failures[1:]
		}
		return
	}
	if r.Score == nil || report.Censored != nil {
		return
	}
	objective := -*r.Score
	for name, v := range r.Config {
		if s.values[name] == nil {
			s.values[name] = map[string]float64{}
		}
		key := v.String()
		if old, ok := s.values[name][key]; !ok || objective < old {
			s.values[name][key] = objective
		}
	}
	if s.best == 0 || objective < s.best {
		s.best, s.bestTrial, s.bestConfig, s.bestReport = objective, r.Trial, r.Config, &report
	}
}

// learned says in a few lines which parameters matter and where the best lie.
func (s *finding) learned() []string {
	type effect struct {
		name, best, worst string
		ratio             float64
		values            int
	}
	var effects []effect
	for name, values := range s.values {
		e := effect{name: name, values: len(values)}
		low, high := math.Inf(1), 0.0
		for _, v := range sortedKeys(values) {
			if t := values[v]; t < low {
				low, e.best = t, v
			}
			if t := values[v]; t > high {
				high, e.worst = t, v
			}
		}
		if e.values > 1 && low > 0 {
			e.ratio = high / low
			effects = append(effects, e)
		}
	}
	sort.Slice(effects, func(i, j int) bool {
		if effects[i].ratio != effects[j].ratio {
			return effects[i].ratio > effects[j].ratio
		}
		return effects[i].name < effects[j].name
	})
	var out []string
	for i, e := range effects {
		if i == 3 {
			break
		}
		if e.ratio < 1.02 {
			out = append(out, fmt.Sprintf("%s makes no difference so far (%d values tried)", e.name, e.values))
			continue
		}
		out = append(out, fmt.Sprintf("%s: best at %s; the best with %s is %.2f times as slow", e.name, e.best, e.worst, e.ratio))
	}
	if s.tried > 0 {
		out = append(out, fmt.Sprintf("%d configurations tried", s.tried))
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// assignment writes a configuration as "TILE=32, VEC=4".
func assignment(c harness.Configuration) string {
	out := ""
	for i, name := range sortedKeys(c) {
		if i > 0 {
			out += ", "
		}
		out += name + "=" + c[name].String()
	}
	return out
}
