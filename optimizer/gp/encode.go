package gp

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/formula"
)

// column is one input of the model: a coordinate of one parameter, or a quantity that a constraint speaks of.
type column struct {
	name        string
	param       int                // of a parameter's column
	table       []float64          // coordinate by value index
	formula     *formula.Formula   // of a derived column
	low, scale  float64            // of a derived column: (log2(value) - low) * scale
	categorical bool               // distance is 0 or 1
	values      []float64          // distinct coordinates by code
	codes       map[float64]uint16 // of a derived column
}

// encoder turns configurations into codes: for each column, the position of its coordinate among the column's distinct
// ones, so that kernels over many configurations become table look-ups.
type encoder struct {
	pool    *optimizer.Pool
	frame   *formula.Frame
	columns []*column // ordered ones first, then categorical
	ordered int
	rows    map[int][]uint16
	kin     *column // the last column: which structure; nil while there is but one
	own     uint16  // this space's
}

// sampleSize is how many configurations the ranges of derived columns are taken from.
const sampleSize = 4096

func newEncoder(pool *optimizer.Pool, o Options) *encoder {
	e := &encoder{pool: pool, rows: map[int][]uint16{}}
	space := pool.Space()
	scope := space.Scope()
	e.frame = scope.NewFrame()
	var categorical []*column
	for i, name := range space.Names() {
		if len(space.Values(i)) < 2 {
			continue
		}
		c := &column{name: name, param: i, table: space.Coordinates(i)}
		c.values = c.table
		if c.categorical = !space.Ordered(i) && len(c.table) > 2; c.categorical {
			categorical = append(categorical, c)
		} else {
			e.columns = append(e.columns, c)
		}
	}
	for i := range space.Names() {
		if table := valuations(space, i); table != nil && o.has(PartValuations) {
			e.columns = append(e.columns, &column{name: "v2(" + space.Names()[i] + ")", param: i, table: table, values: table})
		}
	}
	if o.has(PartConstraints) {
		e.derive(space)
	}
	e.ordered = len(e.columns)
	e.columns = append(e.columns, categorical...)
	return e
}

// addKin adds the column that tells the structures of a family apart; own is the place of this space's history in it.
func (e *encoder) addKin(own, members int) {
	e.kin = &column{name: "structure", param: -1, categorical: true}
	e.own = uint16(own)
	e.growKin(members)
	e.columns = append(e.columns, e.kin)
	e.rows = map[int][]uint16{}
}

// growKin makes the column know so many structures.
func (e *encoder) growKin(members int) {
	for k := len(e.kin.values); k < members; k++ {
		e.kin.values = append(e.kin.values, float64(k))
	}
}

// encodeKin returns the codes of an observation, which may be another structure's. The caller must not change them.
func (e *encoder) encodeKin(p *point) []uint16 {
	codes := e.encode(p.id)
	if e.kin == nil || p.kin == e.own {
		return codes
	}
	codes = append([]uint16(nil), codes...)
	codes[len(codes)-1] = p.kin
	return codes
}

// valuations returns, for an integer parameter of at least five positive values, the number of trailing zero bits of each,
// scaled to [0, 1]: how well it divides warps, banks and vectors. It returns nil where that is monotone in the value.
func valuations(space *optimizer.Space, i int) []float64 {
	values := space.Values(i)
	if len(values) < 5 {
		return nil
	}
	out := make([]float64, len(values))
	low, high, up, down := math.Inf(1), math.Inf(-1), true, true
	for k, v := range values {
		n, ok := v.AsInt()
		if !ok || n <= 0 {
			return nil
		}
		out[k] = float64(bits.TrailingZeros64(uint64(n)))
		low, high = math.Min(low, out[k]), math.Max(high, out[k])
		if k > 0 {
			up, down = up && out[k] >= out[k-1], down && out[k] <= out[k-1]
		}
	}
	if up || down || low == high {
		return nil
	}
	for k := range out {
		out[k] = (out[k] - low) / (high - low)
	}
	return out
}

// derive adds a column for each operand of the constraints with two or more tunables that is positive, varies, and repeats
// no other column.
func (e *encoder) derive(space *optimizer.Space) {
	formulas := space.Operands()
	if len(formulas) == 0 {
		return
	}
	ids := e.sample()
	known := make([][]float64, 0, len(e.columns)+len(formulas))
	for _, c := range e.columns {
		known = append(known, e.coordinates(c, ids))
	}
	for _, f := range formulas {
		c := &column{name: f.Source(), param: -1, formula: f, scale: 1, codes: map[float64]uint16{}}
		logs := make([]float64, len(ids))
		low, high, usable := math.Inf(1), math.Inf(-1), true
		for i, id := range ids {
			v, ok := e.quantity(f, id)
			if !ok {
				usable = false
				break
			}
			logs[i] = v
			low, high = math.Min(low, v), math.Max(high, v)
		}
		if !usable || high-low < 1e-9 {
			continue
		}
		c.low, c.scale = low, 1/(high-low)
		for i := range logs {
			logs[i] = (logs[i] - low) * c.scale
		}
		if !repeats(known, logs) {
			known = append(known, logs)
			e.columns = append(e.columns, c)
		}
	}
}

func (e *encoder) sample() []int {
	n := e.pool.Len()
	if !e.pool.Space().Enumerated() {
		rng := rand.New(rand.NewPCG(1, 1)) // the ranges do not depend on the search's seed
		ids := make([]int, sampleSize)
		for i := range ids {
			ids[i] = e.pool.Draw(rng)
		}
		return ids
	}
	ids := make([]int, min(n, sampleSize))
	for i := range ids {
		ids[i] = i * n / len(ids)
	}
	return ids
}

func (e *encoder) coordinates(c *column, ids []int) []float64 {
	out := make([]float64, len(ids))
	for i, id := range ids {
		out[i] = c.table[e.pool.Row(id)[c.param]]
	}
	return out
}

// quantity returns log2 of a derived quantity; ok is false when it is not positive.
func (e *encoder) quantity(f *formula.Formula, id int) (float64, bool) {
	space, row := e.pool.Space(), e.pool.Row(id)
	for _, slot := range f.Slots() {
		e.frame.Set(slot, space.Values(slot)[row[slot]])
	}
	v, err := f.Number(e.frame)
	if err != nil || !(v > 0) {
		return 0, false
	}
	return math.Log2(v), true
}

func repeats(known [][]float64, logs []float64) bool {
	for _, k := range known {
		same, mirrored := true, true
		for i := range logs {
			same = same && math.Abs(k[i]-logs[i]) < 1e-9
			mirrored = mirrored && math.Abs(1-k[i]-logs[i]) < 1e-9
		}
		if same || mirrored {
			return true
		}
	}
	return false
}

// encode returns the codes of a configuration, one for each column. The caller must not change them.
func (e *encoder) encode(id int) []uint16 {
	if codes, ok := e.rows[id]; ok {
		return codes
	}
	codes := make([]uint16, len(e.columns))
	row := e.pool.Row(id)
	for j, c := range e.columns {
		if c == e.kin {
			codes[j] = e.own
			continue
		}
		if c.formula == nil {
			codes[j] = row[c.param]
			continue
		}
		v, ok := e.quantity(c.formula, id)
		if ok {
			v = (v - c.low) * c.scale
		} // else: outside what the sample showed; the low end
		code, known := c.codes[v]
		if !known {
			code = uint16(min(len(c.values), math.MaxUint16))
			c.codes[v] = code
			c.values = append(c.values, v)
		}
		codes[j] = code
	}
	e.rows[id] = codes
	return codes
}
