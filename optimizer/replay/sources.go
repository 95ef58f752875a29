package replay

import (
	"fmt"
	"math"
	"sort"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// The kinds of records that a benchmark can offer as transfer.
const (
	TransferHonest   = ""         // the other recordings of the same space
	TransferReversed = "reversed" // the same with fast and slow swapped
	TransferForeign  = "foreign"  // another kernel's, projected on the parameters that both have
)

// PriorFor returns the prior that the other recordings give for one; nil when there is none of the kind.
func PriorFor(r *Record, all []*Record, kind string) (*transfer.Prior, error) {
	var sources []optimizer.Source
	for _, other := range all {
		if other.Name == r.Name {
			continue
		}
		same := other.Space.Digest() == r.Space.Digest() && other.Kernel == r.Kernel
		switch kind {
		case TransferHonest, TransferReversed:
			if same {
				sources = append(sources, other.source(kind == TransferReversed))
			}
		case TransferForeign:
			if other.Kernel != r.Kernel {
				if s, ok := other.project(r); ok {
					sources = append(sources, s)
				}
			}
		default:
			return nil, fmt.Errorf("transfer %q is unknown: use %q or %q, or leave it empty", kind, TransferReversed, TransferForeign)
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return transfer.New(r.Space, sources)
}

// source returns the recording as observations; reversed mirrors ln(time), so that the slowest becomes the fastest.
func (r *Record) source(reversed bool) optimizer.Source {
	s := optimizer.Source{Name: r.Name}
	slowest := 0.0
	for _, t := range okTimes(r.Time) {
		slowest = math.Max(slowest, t)
	}
	pool := r.Space.NewPool()
	for id, t := range r.Time {
		o := optimizer.Observation{Configuration: r.Space.Configuration(pool.Row(id)), Outcome: optimizer.OutcomeFailed}
		if !math.IsNaN(t) {
			o.Outcome, o.Value = optimizer.OutcomeMeasured, t
			if reversed {
				o.Value = slowest * r.Best / t
			}
		}
		s.Observations = append(s.Observations, o)
	}
	return s
}

// project gives each configuration of target the mean ln(time) of the recording's configurations that agree with it in all
// parameters of the same name; ok is false when they share none or no value.
func (r *Record) project(target *Record) (s optimizer.Source, ok bool) {
	var shared []string
	for _, name := range target.Space.Names() {
		if r.Space.Index(name) >= 0 {
			shared = append(shared, name)
		}
	}
	if len(shared) == 0 {
		return s, false
	}
	sort.Strings(shared)
	sum, count := map[string]float64{}, map[string]float64{}
	pool := r.Space.NewPool()
	for id, t := range r.Time {
		if !math.IsNaN(t) {
			k := agreement(r.Space.Configuration(pool.Row(id)), shared)
			sum[k] += math.Log(t)
			count[k]++
		}
	}
	s.Name = r.Name
	pool = target.Space.NewPool()
	for id := range pool.Len() {
		c := target.Space.Configuration(pool.Row(id))
		if k := agreement(c, shared); count[k] > 0 {
			s.Observations = append(s.Observations, optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: math.Exp(sum[k] / count[k])})
		}
	}
	return s, len(s.Observations) > 0
}

func agreement(c map[string]expr.Value, names []string) string {
	out := ""
	for _, n := range names {
		out += c[n].String() + ","
	}
	return out
}
