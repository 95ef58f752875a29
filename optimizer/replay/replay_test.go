package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
)

func load(t testing.TB, name string) *Record {
	t.Helper()
	r, err := Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLoadRecordings(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		n, fail int
		best    float64
		threads string
	}{
		"coulomb_GTX1070.jsonl.gz": {210, 0, 5.05094, ""},
		"pnpoly_RTX3060L.jsonl.gz": {4092, 318, 26.8137, "block_size_x"},
		"conv_A100.jsonl.gz":       {4362, 161, 0.5536, "block_size_x * block_size_y"},
	} {
		r := load(t, name)
		fails := 0
		for id, ms := range r.Time {
			if math.IsNaN(ms) != (r.Fail[id] != "") {
				t.Fatalf("%s: configuration %d has time %v and failure %q", name, id, ms, r.Fail[id])
			}
			if r.Fail[id] != "" {
				fails++
			}
		}
		if int(r.Space.Size()) != want.n || fails != want.fail || r.Best != want.best || r.Space.Declaration().Threads != want.threads {
			t.Errorf("%s: %v configurations, %d failed, best %v, threads %q; want %+v", name, r.Space.Size(), fails, r.Best, r.Space.Declaration().Threads, want)
		}
	}
}

func TestLoadForeignFormats(t *testing.T) {
	t.Parallel()
	cache, t4 := load(t, "cache_small.json"), load(t, "t4_small.json")
	if cache.Space.Size() != 5 || cache.Best != 1 || cache.GPU != "Test GPU" {
		t.Errorf("cache: %v configurations, best %v, gpu %q", cache.Space.Size(), cache.Best, cache.GPU)
	}
	kinds := map[string]int{}
	for _, f := range cache.Fail {
		kinds[f]++
	}
	if kinds["compile"] != 1 || kinds["runtime"] != 2 || kinds[""] != 2 {
		t.Errorf("cache: failures %v", kinds)
	}
	if t4.Space.Size() != 3 || t4.Best != 1 {
		t.Errorf("T4: %v configurations, best %v ms, want 3 and 1 (1000 us)", t4.Space.Size(), t4.Best)
	}
	open := strings.TrimSuffix(strings.TrimSpace(string(must(os.ReadFile("testdata/cache_small.json")))), "}}") + ","
	if r, err := readJSON("open", []byte(open)); err != nil || r.Space.Size() != 5 {
		t.Errorf("a cache whose tuning run is open: %v", err)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func FuzzReadJSON(f *testing.F) {
	f.Add(must(os.ReadFile("testdata/cache_small.json")))
	f.Add(must(os.ReadFile("testdata/t4_small.json")))
	f.Add([]byte(`{"device_name":"d","kernel_name":"k","tune_params_keys":["x"],"tune_params":{"x":[1]},"cache":{"1":{"x":1,"time":"CompilationFailedConfig"}}}`)) // nothing was measured
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := readJSON("x", b); err == nil && (r == nil || math.IsInf(r.Best, 0)) {
			t.Fatalf("accepted %q without a best", b)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"name\":\"a\",\"params\":[{\"name\":\"x\",\"values\":[1,2]}],\"constraints_exact\":true}\n{\"x\":[1],\"t\":1}\n{\"x\":[2],\"t\":null}\n"))
	const header = "{\"name\":\"a\",\"params\":[{\"name\":\"x\",\"values\":[1,2]}],\"constraints_exact\":true}\n"
	f.Add([]byte(header + "{\"x\":[1],\"t\":0}\n{\"x\":[2],\"t\":3}\n")) // refused, each for a reason of its own
	f.Add([]byte(header + "{\"x\":[1],\"t\":1}\n{\"x\":[1],\"t\":2}\n"))
	f.Add([]byte(header + "{\"x\":[1],\"t\":1}\n{\"x\":[2,3],\"t\":2}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := Read(bytes.NewReader(b)); err == nil && !(r.Best > 0) {
			t.Fatalf("accepted %q with best %v", b, r.Best)
		} else if err == nil && slices.Contains(r.Time, 0) {
			t.Fatalf("accepted %q with a configuration that nobody measured: %v", b, r.Time)
		}
	})
}

// TestRandomIsWhatItMustBe compares random search with the expectation that a count gives: after k draws without repeats of
// N, the chance that none of the best m was drawn.
func TestRandomIsWhatItMustBe(t *testing.T) {
	t.Parallel()
	r := load(t, "coulomb_GTX1070.jsonl.gz")
	within := 0
	for _, ms := range r.Time {
		if r.Best/ms >= 0.95 {
			within++
		}
	}
	n, k := len(r.Time), 40
	miss := 1.0
	for i := range k {
		miss *= float64(n-within-i) / float64(n-i)
	}
	cells, err := Plan{Records: []*Record{r}, Strategies: []string{"random"}, Seeds: 300, Parallel: 2, Conditions: Conditions{Budget: k},
		New: func(r *Record, name string, seed uint64) (Searcher, error) {
			return strategy.New(name, r.Space, strategy.Options{Seed: seed})
		}}.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := Summarise(cells)[0].Within5
	if sd := math.Sqrt(miss * (1 - miss) / 300); math.Abs(got-(1-miss)) > 4*sd {
		t.Errorf("within 5 %% in %.3f of the runs, a draw without repeats gives %.3f ± %.3f", got, 1-miss, sd)
	}
}

func TestFlightAndNoise(t *testing.T) {
	t.Parallel()
	r := load(t, "conv_W7800.jsonl.gz")
	s, err := strategy.New("tpe", r.Space, strategy.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(context.Background(), r, s, Conditions{Budget: 60, InFlight: 8, Noise: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Curve) != 60 {
		t.Errorf("%d evaluations, want 60", len(res.Curve))
	}
	if speedup := res.Work.Seconds() / res.Wall.Seconds(); speedup < 4 || speedup > 8 {
		t.Errorf("eight in flight are %.2f times as fast as one, want 4 to 8", speedup)
	}
	if math.IsInf(res.Returned, 0) || res.Returned < r.Best || float64(res.Repeats) > 0.15*60 {
		t.Errorf("returned %v after %d repeats", res.Returned, res.Repeats)
	}
	for i := 1; i < len(res.Curve); i++ {
		if res.Curve[i] > res.Curve[i-1] {
			t.Fatalf("the best so far got worse at %d", i+1)
		}
	}
}

func TestSplitKeepsEveryConfiguration(t *testing.T) {
	t.Parallel()
	r := load(t, "pnpoly_RTX3060L.jsonl.gz")
	parts, err := Split(r, Switches["pnpoly"])
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	best := math.Inf(1)
	for _, p := range parts {
		total += p.Space.Size()
		for _, ms := range p.Time {
			if ms < best {
				best = ms
			}
		}
		if p.Best != r.Best {
			t.Errorf("%s measures itself against %v, want the whole optimum %v", p.Name, p.Best, r.Best)
		}
	}
	if len(parts) != 12 || total != r.Space.Size() || best != r.Best {
		t.Errorf("%d parts with %v configurations and best %v; want 12, %v, %v", len(parts), total, best, r.Space.Size(), r.Best)
	}
}

func TestWriterRoundTrip(t *testing.T) {
	t.Parallel()
	space, err := optimizer.New(optimizer.Declaration{Params: []optimizer.Param{{Name: "a", Type: "bool"}, {Name: "b", When: "a", Values: load(t, "cache_small.json").Space.Values(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "made.jsonl.gz")
	header := NewHeader(space, "made", "kernel", "gpu")
	record := func(from, to int) *Writer {
		w, err := OpenWriter(path, header, space)
		if err != nil {
			t.Fatal(err)
		}
		for id := from; id < to; id++ {
			m := Measurement{TimeMS: float64(id + 1), SDMS: 0.1, CompileMS: 5}
			if id == 2 {
				m = Measurement{Fail: "launch"}
			}
			if w.Has(id) {
				t.Fatalf("%d is there already", id)
			}
			if err := w.Add(id, m); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	w := record(0, 2)
	if _, _, err := w.Finish(); err == nil {
		t.Fatal("finished a recording with configurations missing")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	torn := must(os.ReadFile(path + ".part"))
	if err := os.WriteFile(path+".part", append(torn, []byte(`{"x":[tr`)...), 0o644); err != nil {
		t.Fatal(err)
	}
	w = record(2, int(space.Size()))
	if best, failed, err := w.Finish(); err != nil || best != 1 || failed != 1 {
		t.Fatalf("best %v, %d failed, %v", best, failed, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Space.Size() != space.Size() || r.Best != 1 || r.Fail[2] != "launch" || r.Compile[0] != 5 {
		t.Errorf("read back %v configurations, best %v, failure %q", r.Space.Size(), r.Best, r.Fail[2])
	}
}

// TestPartOfAnotherSource goes on with part files that something else left, and finishes a recording in which nothing ran.
func TestPartOfAnotherSource(t *testing.T) {
	t.Parallel()
	space, err := optimizer.New(optimizer.Declaration{Params: []optimizer.Param{{Name: "a", Type: "bool"}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "made.jsonl")
	h := NewHeader(space, "made", "kernel", "gpu")
	h.Made = "candidate 1"
	w, err := OpenWriter(path, h, space)
	if err != nil {
		t.Fatal(err)
	}
	for id := range w.pool.Len() {
		if err := w.Add(id, Measurement{Fail: []string{"compile", "launch"}[id]}); err != nil {
			t.Fatal(err)
		}
	}
	var nothing *NothingRanError
	if _, _, err := w.Finish(); !errors.As(err, &nothing) || nothing.Kinds() != "compile 1, launch 1" {
		t.Errorf("finished with %v, want that nothing ran", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h.Made = "candidate 2"
	if _, err := OpenWriter(path, h, space); err == nil || !strings.Contains(err.Error(), "remove it to start afresh") {
		t.Errorf("went on with another candidate's measurements: %v", err)
	}
	h.Made = "candidate 1"
	if w, err = OpenWriter(path, h, space); err != nil || w.Len() != 2 {
		t.Fatalf("the same candidate's part: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	for budget, want := range map[int][]int{1: {1}, 3: {1, 3}, 20: {1, 5, 20}, 220: Checkpoints, 300: append(slices.Clone(Checkpoints), 300)} {
		if got := Marks(budget); !slices.Equal(got, want) {
			t.Errorf("budget %d: %v, want %v", budget, got, want)
		}
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	r := load(t, "coulomb_GTX1070.jsonl.gz")
	cells, err := Plan{Records: []*Record{r}, Strategies: []string{"random", "local"}, Seeds: 3, Conditions: Conditions{Budget: 50},
		New: func(r *Record, name string, seed uint64) (Searcher, error) {
			return strategy.New(name, r.Space, strategy.Options{Seed: seed})
		}}.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var table, csv, svg bytes.Buffer
	if err := WriteTable(&table, Summarise(cells)); err != nil {
		t.Fatal(err)
	}
	if err := WriteCSV(&csv, cells); err != nil {
		t.Fatal(err)
	}
	if err := WriteSVG(&svg, cells, 50); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(csv.String(), "\n"); n != 1+2*3 {
		t.Errorf("%d lines of CSV, want 7", n)
	}
	if !strings.Contains(table.String(), "coulomb_GTX1070") || strings.Count(svg.String(), "<polyline") != 2 || strings.Contains(svg.String(), "NaN") {
		t.Errorf("table or picture lack a strategy:\n%s", table.String())
	}
	if b, err := json.Marshal(Summarise(cells)); err != nil || !bytes.Contains(b, []byte(`"within_5_percent"`)) {
		t.Errorf("summaries as JSON: %v", err)
	}
}
