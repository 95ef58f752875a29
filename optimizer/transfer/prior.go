// Package transfer turns what was measured elsewhere (another device, size set, arch or campaign) into a prior over the
// configurations of a space. It holds the records; the model that reads them decides how far each is to be trusted.
package transfer

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"sync"

	"ridgepoint/optimizer"
)

// Figures of the prior: how much slower than where others saw it a configuration counts that one source
// did not see, and how slow one that none saw.
const (
	missingPenalty = 0.7
	missingAll     = 2.0
)

// Prior is what each source says of a space's configurations. It does not change and is safe for concurrent use.
type Prior struct {
	space *optimizer.Space
	names []string
	byID  [][]float64          // by source, then id: of a small space
	rows  []optimizer.Row      // that some source measured: of a large space
	byRow []map[string]float64 // by source, what it says of those rows
	guess []*surrogate         // by source; nil where the source measured most of the space
	ran   []uint16             // by id: sources that measured the configuration; of a small space
	own   []Measured           // by source

	mu   sync.Mutex
	kept map[string][]float64 // see Keep
}

// Measured is what one source itself measured.
type Measured struct {
	Rows []optimizer.Row // of the prior's space; the caller must not change them
	Logs []float64       // ln(value/the source's best)
}

// New builds the prior of a space. Observations whose configuration the space does not have are left out; a source without a
// single measured one in common is left out, and none left gives a nil Prior.
func New(space *optimizer.Space, sources []optimizer.Source) (*Prior, error) {
	p := &Prior{space: space}
	pool := space.NewPool()
	var logs []map[int]float64
	for _, src := range sources {
		values, failed, err := relative(pool, src)
		if err != nil {
			return nil, fmt.Errorf("transfer source %s: %w", src.Name, err)
		}
		if len(values) > 0 {
			logs, p.names = append(logs, values), append(p.names, src.Name)
			var guess *surrogate
			if float64(len(values)+len(failed)) < dense*space.Size() {
				guess = newSurrogate(pool, values, failed)
			}
			p.guess = append(p.guess, guess)
			p.own = append(p.own, measured(pool, values))
		}
	}
	if len(logs) == 0 {
		return nil, nil
	}
	p.fill(pool, logs)
	return p, nil
}

// relative returns ln(value/best) of each configuration that the source measured, by id, and the ids of those that failed.
// The last of several measurements of one configuration counts.
func relative(pool *optimizer.Pool, src optimizer.Source) (values map[int]float64, failed []int, err error) {
	values = map[int]float64{}
	best := math.Inf(1)
	for _, o := range src.Observations {
		ran := o.Outcome == optimizer.OutcomeMeasured || o.Outcome == optimizer.OutcomeNoisy
		if !ran && o.Outcome != optimizer.OutcomeFailed {
			continue
		}
		row, err := pool.Space().Row(o.Configuration)
		if err != nil {
			continue // another size set or a newer file may allow other configurations
		}
		id, _ := pool.ID(row)
		if !ran {
			failed = append(failed, id)
			continue
		}
		if !(o.Value > 0) || math.IsInf(o.Value, 0) {
			return nil, nil, fmt.Errorf("value %g; want a positive finite number", o.Value)
		}
		values[id] = math.Log(o.Value)
		best = math.Min(best, values[id])
	}
	for id := range values {
		values[id] -= best
	}
	return values, failed, nil
}

// measured lists what a source measured, in the order of the ids.
func measured(pool *optimizer.Pool, values map[int]float64) Measured {
	var m Measured
	for _, id := range met([]map[int]float64{values}) {
		m.Rows = append(m.Rows, append(optimizer.Row(nil), pool.Row(id)...))
		m.Logs = append(m.Logs, values[id])
	}
	return m
}

// tableMost is the size of a space up to which what the sources say of every configuration is worked out at once; in a larger one,
// where that would take seconds, of those that some source met, and of others when they are asked for.
const tableMost = 50_000

// fill completes each source with what the others say.
func (p *Prior) fill(pool *optimizer.Pool, logs []map[int]float64) {
	whole := p.space.Enumerated() && p.space.Size() <= tableMost
	ids := met(logs)
	if whole {
		ids = ids[:0]
		for id := range pool.Len() {
			ids = append(ids, id)
		}
	}
	table := make([][]float64, len(logs))
	for c := range table {
		table[c] = make([]float64, len(ids))
	}
	for k, id := range ids {
		sum, have := 0.0, 0
		for _, l := range logs {
			if v, ok := l[id]; ok {
				sum += v
				have++
			}
		}
		missing := missingAll
		if have > 0 {
			missing = sum/float64(have) + missingPenalty
		}
		for c, l := range logs {
			v, ok := l[id]
			switch {
			case ok:
			case p.guess[c] != nil:
				v = p.guess[c].predict(pool.Row(id))
			default:
				v = missing
			}
			table[c][k] = v
		}
	}
	if whole {
		p.byID, p.ran = table, make([]uint16, len(ids))
		for c, l := range logs {
			for id := range ids {
				if _, ran := l[id]; ran || p.guess[c] != nil {
					p.ran[id]++
				}
			}
		}
		return
	}
	for _, id := range ids {
		p.rows = append(p.rows, append(optimizer.Row(nil), pool.Row(id)...))
	}
	p.byRow = make([]map[string]float64, len(logs))
	for c := range logs {
		p.byRow[c] = make(map[string]float64, len(ids))
		for k, row := range p.rows {
			p.byRow[c][key(row)] = table[c][k]
		}
	}
}

// met returns the ids that some source measured, ascending.
func met(logs []map[int]float64) []int {
	var out []int
	seen := map[int]bool{}
	for _, l := range logs {
		for id := range l {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	sort.Ints(out)
	return out
}

// Sources returns the names of the sources in use.
func (p *Prior) Sources() []string { return p.names }

// Len returns the number of sources.
func (p *Prior) Len() int { return len(p.names) }

// Measured returns what a source itself measured, in a fixed order.
func (p *Prior) Measured(source int) Measured { return p.own[source] }

// Keep returns what work returned at the first call with this name: what takes seconds to learn of the records is learned once for all
// searches that share them. It must depend on nothing but the prior and the name; the caller must not change it.
func (p *Prior) Keep(name string, work func() []float64) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.kept[name]
	if !ok {
		if p.kept == nil {
			p.kept = map[string][]float64{}
		}
		v = work()
		p.kept[name] = v
	}
	return v
}

// Space returns the space that the prior is about.
func (p *Prior) Space() *optimizer.Space { return p.space }

// Relative appends what each source says of a configuration, ln(value/the source's best), to dst.
func (p *Prior) Relative(pool *optimizer.Pool, id int, dst []float64) []float64 {
	for c := range p.names {
		if p.byID != nil {
			dst = append(dst, p.byID[c][id])
			continue
		}
		v, ok := p.byRow[c][key(pool.Row(id))]
		if !ok {
			v = missingAll
			if p.guess[c] != nil {
				v = p.guess[c].predict(pool.Row(id))
			}
		}
		dst = append(dst, v)
	}
	return dst
}

func key(row optimizer.Row) string {
	b := make([]byte, 0, 2*len(row))
	for _, k := range row {
		b = binary.LittleEndian.AppendUint16(b, k)
	}
	return string(b)
}

// Lowest returns the ids in a pool of the n configurations (fewer when fewer are known) with the lowest weighted sum of what the
// sources say, lowest first; ties in a fixed order. Of a large space it knows those that some source measured.
func (p *Prior) Lowest(pool *optimizer.Pool, weights []float64, n int) []int {
	var ids []int
	if p.byID != nil {
		for id := range p.byID[0] {
			ids = append(ids, id)
		}
	}
	for _, row := range p.rows {
		if id, ok := pool.ID(row); ok {
			ids = append(ids, id)
		}
	}
	sums := make([]float64, len(ids))
	var buf []float64
	for k, id := range ids {
		buf = p.Relative(pool, id, buf[:0])
		for c, w := range weights {
			sums[k] += w * buf[c]
		}
	}
	order := make([]int, len(ids))
	for k := range order {
		order[k] = k
	}
	sort.SliceStable(order, func(a, b int) bool { return sums[order[a]] < sums[order[b]] })
	out := make([]int, min(n, len(order)))
	for k := range out {
		out[k] = ids[order[k]]
	}
	return out
}

// Ran returns in how many sources a configuration ran, or is not known to fail; of a large space all of them.
func (p *Prior) Ran(id int) int {
	if p.ran == nil {
		return p.Len()
	}
	return int(p.ran[id])
}

// Candidates returns the ids in a pool of the configurations with the lowest mean of what the sources say and the best of each source, without
// repeats, in a fixed order.
func (p *Prior) Candidates(pool *optimizer.Pool, lowest, each int) []int {
	equal := make([]float64, p.Len())
	for c := range equal {
		equal[c] = 1 / float64(p.Len())
	}
	out := p.Lowest(pool, equal, lowest)
	seen := make(map[int]bool, len(out))
	for _, id := range out {
		seen[id] = true
	}
	for c := range equal {
		one := make([]float64, p.Len())
		one[c] = 1
		for _, id := range p.Lowest(pool, one, each) {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}
