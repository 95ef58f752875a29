package replay

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"ridgepoint/configs/expr"
	"ridgepoint/optimizer"
)

// Latency is how long one strategy takes to answer at a number of observations.
type Latency struct {
	Strategy     string        `json:"strategy"`
	Observations int           `json:"observations"`
	Median       time.Duration `json:"ask_median_ns"`
	P99          time.Duration `json:"ask_p99_ns"`
	PerTell      time.Duration `json:"per_tell_ns"` // asks and tells, refits included, for each tell
	Restore      time.Duration `json:"restore_ns"`  // the first ask after the observations were told without asking
	HeapBytes    uint64        `json:"heap_bytes"`  // live after the last ask
}

// latencyCycles is how many asks and tells are timed.
const latencyCycles = 200

// LatencySpace is the space that latencies are quoted for: 8 parameters, about 20 000 feasible configurations.
func LatencySpace() (*optimizer.Space, error) {
	ints := func(v ...int64) []expr.Value {
		out := make([]expr.Value, len(v))
		for i, x := range v {
			out[i] = expr.Int(x)
		}
		return out
	}
	return optimizer.New(optimizer.Declaration{
		Params: []optimizer.Param{
			{Name: "bx", Values: ints(16, 32, 48, 64, 96, 128, 192, 256)}, {Name: "by", Values: ints(1, 2, 4, 8, 16)},
			{Name: "tx", Values: ints(1, 2, 3, 4, 6)}, {Name: "ty", Values: ints(1, 2, 3, 4, 6)}, {Name: "vec", Values: ints(1, 2, 4)},
			{Name: "unroll", Values: ints(1, 2, 4, 8)}, {Name: "pad", Values: ints(0, 1)}, {Name: "ro", Values: ints(0, 1)}},
		Constraints: []string{"bx * by <= 1024", "bx * by >= 32", "bx * tx % vec == 0", "bx * tx * by * ty <= 8192", "pad == 0 or tx > 1", "unroll <= tx * ty"},
		Threads:     "bx * by",
	})
}

// MeasureLatency tells n observations of a made-up kernel and times the asks and tells that follow.
func MeasureLatency(ctx context.Context, name string, space *optimizer.Space, s Searcher, n int, now func() time.Time) (*Latency, error) {
	pool, rng := space.NewPool(), rand.New(rand.NewPCG(8, 20000))
	tell := func(c optimizer.Configuration) error { return s.Tell(ctx, madeUp(c)) }
	for _, id := range rng.Perm(pool.Len())[:n] {
		if err := tell(space.Configuration(pool.Row(id))); err != nil {
			return nil, err
		}
	}
	l := &Latency{Strategy: name, Observations: n}
	var asks []float64
	total := time.Duration(0)
	for i := range latencyCycles + 1 {
		begin := now()
		c, err := s.Ask(ctx)
		if err != nil {
			return nil, err
		}
		asked := now()
		if err := tell(c); err != nil {
			return nil, err
		}
		if i == 0 {
			l.Restore = asked.Sub(begin)
			continue
		}
		asks = append(asks, float64(asked.Sub(begin)))
		total += now().Sub(begin)
	}
	l.Median, l.P99, l.PerTell = time.Duration(median(asks)), time.Duration(quantile(asks, 0.99)), total/latencyCycles
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.HeapBytes = m.HeapAlloc
	runtime.KeepAlive(s)
	return l, nil
}

// madeUp is the kernel: threads, tiles and vector width interact, one corner in twenty fails.
func madeUp(c optimizer.Configuration) optimizer.Observation {
	get := func(name string) float64 { v, _ := c[name].AsFloat(); return v }
	threads, tile := get("bx")*get("by"), get("tx")*get("ty")
	t := 1 + 0.2*math.Abs(math.Log2(threads/256)) + 0.15*math.Abs(math.Log2(tile/6)) + 0.1*math.Abs(get("vec")-2) + 0.05*math.Abs(math.Log2(get("unroll")/2)) + 0.1*get("pad") - 0.1*get("ro")
	if math.Mod(threads, 32) != 0 {
		t *= 1.3
	}
	if tile > 16 && get("unroll") == 8 {
		return optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeFailed, FailKind: "launch"}
	}
	return optimizer.Observation{Configuration: c, Outcome: optimizer.OutcomeMeasured, Value: t}
}

// WriteLatencies writes one line a measurement.
func WriteLatencies(w io.Writer, space *optimizer.Space, ls []*Latency) error {
	p := &printer{w: w}
	p.printf("%d parameters, %.0f feasible configurations\n%-14s %12s %12s %12s %14s %12s %10s\n", space.Dims(), space.Size(), "strategy", "observations", "ask median", "ask p99", "ask+tell mean", "restore", "heap")
	for _, l := range ls {
		p.printf("%-14s %12d %12v %12v %14v %12v %10s\n", l.Strategy, l.Observations, l.Median.Round(10*time.Microsecond), l.P99.Round(10*time.Microsecond),
			l.PerTell.Round(10*time.Microsecond), l.Restore.Round(time.Millisecond), fmt.Sprintf("%.0f MB", float64(l.HeapBytes)/1e6))
	}
	return p.err
}
