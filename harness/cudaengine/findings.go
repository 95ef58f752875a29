package cudaengine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// errTampered is a finding whose signature is wrong: something wrote over it.
func (b *Bench) errTampered() error {
	return &verify.Stop{Fault: harness.FaultIncorrect, Reason: "the harness's findings in device memory were overwritten: the kernel writes far outside its buffers",
		Evidence: harness.Evidence{Kind: verify.KindRedZone, Size: b.layout.Size, Hidden: b.layout.Hidden}}
}

// breach reads the Breach of launch i.
func (b *Bench) breach(i int) (*verify.Breach, error) {
	zones, zoneFirst, inputs, inputFirst := b.word(i, 0), b.word(i, 8), b.word(i, 16), b.word(i, 24)
	if mix(mix(mix(mix(zones^b.engine.keyOf(i))^zoneFirst)^inputs)^inputFirst) != b.word(i, 40) || (zones == 0) != (zoneFirst == 0) || (inputs == 0) != (inputFirst == 0) {
		return nil, b.errTampered()
	}
	const offsetBits = 44
	switch {
	case zones != 0:
		item, off := ^zoneFirst>>offsetBits, int64(^zoneFirst&(1<<offsetBits-1))
		buffer, after := int(item/2), item%2 == 1
		x := b.extents[buffer]
		if !after { // negative: bytes before the start; else bytes past the end
			off -= b.before[buffer]
		}
		return &verify.Breach{Kind: verify.KindRedZone, Tensor: x.Name, Offset: off}, nil
	case inputs != 0:
		item, off := int(^inputFirst>>offsetBits), int64(^inputFirst&(1<<offsetBits-1))
		x := b.extents[item]
		return &verify.Breach{Kind: verify.KindInputsChanged, Tensor: x.Name, Offset: off, Index: logical(x, off/int64(x.DType.SizeBytes()))}, nil
	}
	return nil, nil
}

// comparison reads the Result of one output of launch i, which was compared whole.
func (b *Bench) comparison(i, output int) (verify.Comparison, error) {
	at := breachBytes + int64(output)*resultBytes
	w := func(k int64) uint64 { return b.word(i, at+8*k) }
	x := b.extents[b.outputs[output]]
	// What is counted begins at what the launch left there: a kernel that begins with less than nothing leaves a first mismatch behind.
	if b.signature(i, output) != w(14) || w(0) > uint64(x.Elements) || (w(0) == 0) != (w(3) == 0) {
		return verify.Comparison{}, b.errTampered()
	}
	c := verify.Comparison{Tensor: b.outputs[output], Elements: x.Elements, First: -1, Mismatches: int64(w(0)), NonFinite: int64(w(1)), Unwritten: int64(w(2)),
		MaxAbs: math.Float64frombits(w(5)), SumAbs: math.Float64frombits(w(6))}
	if c.Mismatches == 0 {
		return c, nil
	}
	first, last := int64(^w(3)), int64(w(4))
	c.First, c.Got, c.Want = logical(x, first), math.Float64frombits(w(8)), math.Float64frombits(w(9))
	c.FirstKind = map[uint64]string{1: verify.KindMismatch, 2: verify.KindNonFinite, 3: verify.KindUnwritten}[w(10)]
	switch {
	case c.Mismatches*100 >= x.Elements*99:
		c.Pattern = "all"
	case c.Mismatches == 1:
		c.Pattern = "one element"
	case contiguous(x) && last == x.Elements-1 && c.Mismatches == last-first+1:
		c.Pattern = fmt.Sprintf("tail: the last %d elements", c.Mismatches)
	default:
		c.Pattern = "scattered"
	}
	return c, nil
}

// keyOf is what the findings in a slot are signed with: another one for each launch.
func (e *Engine) keyOf(slot int) uint64 { return mix(e.signKey ^ (e.slots.round<<24 | uint64(slot))) }

// signature is helpers.cu's rp_sign over the Result of an output of launch i.
func (b *Bench) signature(i, output int) uint64 {
	at := breachBytes + int64(output)*resultBytes
	m := mix(b.word(i, at) ^ b.engine.keyOf(i) ^ uint64(output+1)<<48)
	for _, k := range [...]int64{1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13} {
		m = mix(m ^ b.word(i, at+8*k))
	}
	return m
}

// Compare compares every output. Launch has compared them whole already; where something is wrong it is compared again on the
// host, which knows patterns.
func (b *Bench) Compare(ctx context.Context, set *verify.Set, seed uint64, whole bool) ([]verify.Comparison, error) {
	all := make([]verify.Comparison, len(b.outputs))
	p, wrong := b.prepared[set.Key], false
	if p == nil || p != b.judgedAt {
		err := b.engine.do(setupLimit, func(s *device.Session) (err error) {
			if p, err = b.use(s, set); err != nil {
				return err
			}
			return b.again(s, p, seed, whole)
		})
		if err != nil {
			return all, b.wrap("compare the outputs", err)
		}
	} else {
		whole = true
	}
	for o := range b.outputs {
		var err error
		if all[o], err = b.judged(p, 0, o, whole); err != nil {
			return all, b.wrap("compare the outputs", err)
		}
		wrong = wrong || all[o].Mismatches > 0
	}
	if !wrong {
		return all, ctx.Err()
	}
	err := b.engine.do(setupLimit, func(s *device.Session) (err error) {
		for o := range b.outputs {
			if all[o].Mismatches == 0 {
				continue
			}
			if all[o], err = b.closer(s, set, o, seed); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return all, b.wrap("compare the outputs", err)
}

// again compares with another set than the one that was written.
func (b *Bench) again(s *device.Session, p *prepared, seed uint64, whole bool) error {
	if err := b.slots().reserve(s, b.engine.stream, b.slotBytes()); err != nil {
		return err
	}
	b.judgedAt = nil
	for o := range b.outputs {
		if err := b.judge(s, p, 0, o, uint64(verify.PoisonStart(seed)), whole); err != nil {
			return err
		}
	}
	return b.fetch(s, 1)
}

// closer compares an output on the host.
func (b *Bench) closer(s *device.Session, set *verify.Set, output int, seed uint64) (verify.Comparison, error) {
	i := b.outputs[output]
	raw := make([]byte, b.buffers[i].bytes)
	if err := s.Download(b.engine.stream, raw, b.buffers[i].at); err != nil {
		return verify.Comparison{}, err
	}
	return verify.CompareHost(i, b.extents[i], raw, set.Expected[i], set.Tolerances[i], seed), nil
}

// projects reports whether an output is compared by projections when whole is not asked for.
func (b *Bench) projects(output int, whole bool) bool {
	x := b.extents[b.outputs[output]]
	return !whole && x.Bytes() > wholeCompareBytes && contiguous(x)
}

// judge queues the comparison of one output with what a set expects.
func (b *Bench) judge(s *device.Session, p *prepared, slot, output int, start uint64, whole bool) error {
	projects := uint32(0)
	if b.projects(output, whole) {
		if _, err := b.projection(s, p, output); err != nil {
			return err
		}
		projects = 1
	}
	args := new(device.Args).Ptr(p.outputs).Uint32(uint32(output)).Uint32(projects).Uint64(start).Ptr(b.result(slot, output)).Uint64(b.engine.keyOf(slot)).Uint64(b.engine.maskKey).Uint64(b.engine.maskPad)
	return b.engine.helpers.launch(s, b.engine.stream, "rp_compare", b.engine.blocksFor(b.extents[b.outputs[output]].Span), args)
}

func (b *Bench) judged(p *prepared, slot, output int, whole bool) (verify.Comparison, error) {
	if !b.projects(output, whole) {
		return b.comparison(slot, output)
	}
	at := breachBytes + int64(output)*resultBytes
	if b.signature(slot, output) != b.word(slot, at+8*14) {
		return verify.Comparison{}, b.errTampered()
	}
	i := b.outputs[output]
	proj := p.master.proj[i]
	c := verify.Comparison{Tensor: i, Elements: b.extents[i].Elements, First: -1, Projected: true}
	h := mix(^b.engine.keyOf(slot))
	scale := math.Float64frombits(h<<63 | (1023-128+h>>56)<<52) // helpers.cu's rp_scale
	for k, want := range proj.want {
		got := math.Float64frombits(b.word(slot, at+8*int64(11+k))) / scale
		d := math.Abs(got-want) / proj.bound
		if !(d <= 1) {
			c.Mismatches, c.FirstKind, c.Got, c.Want = 1, verify.KindProjection, got, want
		}
		c.MaxAbs = math.Max(c.MaxAbs, d)
	}
	return c, nil
}

// signsOf draws the secret signs under which an output of a set is projected.
func (e *Engine) signsOf(m *master, tensor int) uint64 {
	return mix(e.maskKey ^ mix(uint64(len(m.key))+uint64(tensor)<<32) ^ m.salt())
}

// projection returns what an output's expected values sum to under three secret random signs, made once a set. The bound is
// six standard deviations of the sum of errors that use their tolerance up, each with a random sign: an honest kernel stays
// far below it, and what it lets pass is held by the whole comparisons of the first, the last and one random launch.
func (b *Bench) projection(s *device.Session, p *prepared, output int) (*projection, error) {
	i := b.outputs[output]
	if proj, ok := p.master.proj[i]; ok {
		return proj, nil
	}
	proj := &projection{}
	scratch, err := s.Alloc(resultBytes)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, resultBytes)
	args := new(device.Args).Ptr(p.outputs).Uint32(uint32(output)).Ptr(scratch).Uint64(b.engine.maskKey).Uint64(b.engine.maskPad)
	err = errors.Join(s.Memset(b.engine.stream, scratch, 0, resultBytes), b.engine.helpers.launch(s, b.engine.stream, "rp_expect", b.engine.blocksFor(b.extents[i].Span), args),
		s.Download(b.engine.stream, raw, scratch), s.Free(scratch))
	if err != nil {
		return nil, err
	}
	for k := range proj.want {
		proj.want[k] = float(raw, 11+k)
	}
	proj.bound = 6 * math.Sqrt(float(raw, 8))
	if proj.bound == 0 {
		proj.bound = math.SmallestNonzeroFloat64
	}
	p.master.proj[i] = proj
	return proj, nil
}

// Digest sums up the bits of every output, for tasks that ask for the same bits from the same inputs.
func (b *Bench) Digest(context.Context) (uint64, error) {
	h := fnv.New64a()
	err := b.engine.do(setupLimit, func(s *device.Session) error {
		for _, i := range b.outputs {
			raw := make([]byte, b.buffers[i].bytes)
			if err := s.Download(b.engine.stream, raw, b.buffers[i].at); err != nil {
				return err
			}
			_, _ = h.Write(raw) // a hash never fails to write
		}
		return nil
	})
	return h.Sum64(), b.wrap("sum up the outputs", err)
}
