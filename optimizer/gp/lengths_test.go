package gp

import (
	"math"
	"slices"
	"testing"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/transfer"
)

// told is a source in which the value of a configuration is a function of its row.
func told(space *optimizer.Space, name string, every int, value func(optimizer.Row) float64) optimizer.Source {
	pool := space.NewPool()
	s := optimizer.Source{Name: name}
	for id := 0; id < pool.Len(); id += every {
		s.Observations = append(s.Observations, optimizer.Observation{
			Configuration: space.Configuration(pool.Row(id)), Outcome: optimizer.OutcomeMeasured, Value: value(pool.Row(id)),
		})
	}
	return s
}

// TestRecordsTeachLengths gives records in which the tile matters at every step and the flag not at all, whatever else: the cold model
// expects a short length of the one and a long one of the other, however its first use comes about, and none of records too few to tell.
func TestRecordsTeachLengths(t *testing.T) {
	t.Parallel()
	space := testSpace(t)
	jagged := func(r optimizer.Row) float64 { return []float64{1, 3, 1.5}[r[2]] * (1 + 0.02*float64(r[0])) }
	prior := func(sources ...optimizer.Source) *transfer.Prior {
		p, err := transfer.New(space, sources)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	full := prior(told(space, "a", 1, jagged), told(space, "b", 2, func(r optimizer.Row) float64 { return 7 * jagged(r) }), told(space, "few", 40, jagged))
	if got := lessons(full); len(got) != 2 || got[0] != 0 || got[1] != 1 {
		t.Errorf("sources %v are read, want the two with %d observations and more", got, lessonLeast)
	}
	propose := NewWarm(Options{Seed: 1}, full)
	h := optimizer.NewHistory(space)
	if _, err := propose.Propose(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	judge := NewWarm(Options{Seed: 1}, full)
	judge.Judge(h, 1)
	for name, s := range map[string]*Warm{"propose": propose, "judge": judge} {
		got := map[string]float64{}
		for k, length := range s.cold.model.lengths() {
			got[s.cold.enc.columns[k].name] = length
		}
		usual := usualLength(len(s.cold.enc.columns))
		if !(got["tile"] < usual-0.3 && got["flag"] > usual+0.3) {
			t.Errorf("%s: ln lengths %v; want tile's below %.2f by 0.3 and flag's as far above", name, got, usual)
		}
	}
	if got := recordLengths(prior(told(space, "few", 40, jagged)), Options{}); got != nil {
		t.Errorf("a handful of observations teach ln lengths %.2f, want none", got)
	}
}

// TestLesson draws what a fit reads: no observation twice, half of it from anywhere and much of the rest from the best.
func TestLesson(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, lessonMost, lessonMost + 1, 10_000} {
		logs := make([]float64, n)
		for k := range logs {
			logs[k] = math.Mod(float64(k)*0.754877, 1)
		}
		take := lesson(logs)
		seen, best := map[int]bool{}, 0
		for _, k := range take {
			if seen[k] = true; logs[k] < lessonBest {
				best++
			}
		}
		if len(seen) != len(take) || len(take) > lessonMost || n <= lessonMost && len(take) != n {
			t.Errorf("of %d, %d are read and %d of them differ, want at most %d and none twice", n, len(take), len(seen), lessonMost)
		}
		if n == 10_000 && (len(take) != lessonMost || best < lessonMost/2) {
			t.Errorf("of %d, %d are read and %d of them are of the best %g, want %d and half of them", n, len(take), best, lessonBest, lessonMost)
		}
	}
}

// BenchmarkRecordLengths learns the lengths from one source of all of the space.
func BenchmarkRecordLengths(b *testing.B) {
	space := testSpace(b)
	source := told(space, "a", 1, func(r optimizer.Row) float64 { return 1 + float64(r[0]) + math.Sin(float64(r[1])+2*float64(r[2])) })
	for b.Loop() {
		p, err := transfer.New(space, []optimizer.Source{source})
		if err != nil {
			b.Fatal(err)
		}
		recordLengths(p, Options{})
	}
}

// TestLengthsGiveWay gives a model lengths that are wrong: with few observations it goes by them, from the 40th on it is the model that
// was never told any.
func TestLengthsGiveWay(t *testing.T) {
	t.Parallel()
	space := testSpace(t)
	h, enc := optimizer.NewHistory(space), newEncoder(space.NewPool(), Options{})
	wrong, plain := newModel(Options{}, 1, nil), newModel(Options{}, 1, nil)
	wrong.lengths = func() []float64 { return slices.Repeat([]float64{2.5}, len(enc.columns)) }
	for n := 1; n <= fitEvery; n++ {
		id, err := next(h, nil, 3)
		if err != nil {
			t.Fatal(err)
		}
		h.Ask(id)
		row := h.Pool.Row(id)
		o := optimizer.Observation{Configuration: space.Configuration(row), Outcome: optimizer.OutcomeMeasured, Value: 2 + math.Sin(float64(3*row[0])) + float64(row[2]%2)}
		if _, err := h.Tell(o); err != nil {
			t.Fatal(err)
		}
		if n < 2 {
			continue
		}
		wrong.prepare(h, enc)
		plain.prepare(h, enc)
		same := slices.Equal(wrong.hyper.theta, plain.hyper.theta)
		if want := n >= fitEvery; same != want {
			t.Fatalf("after %d observations the kernels are the same: %v, want %v", n, same, want)
		}
	}
}
