package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// line is what the recomputation reads of a line of records.jsonl: nothing of the program's own types.
type line struct {
	Seq       int64    `json:"seq"`
	Trial     int64    `json:"trial"`
	Purpose   string   `json:"purpose"`
	Candidate string   `json:"candidate_id"`
	Structure string   `json:"structure"`
	Score     *float64 `json:"score"`
	Report    struct {
		Fault    string          `json:"fault"`
		Censored json.RawMessage `json:"censored"`
		Sizes    []struct {
			MedianUS float64 `json:"median_us"`
		} `json:"sizes"`
		Contest *struct {
			Contestants []string      `json:"contestants"`
			MedianUS    [][][]float64 `json:"median_us"`
		} `json:"contest"`
	} `json:"report"`
}

func middle(x []float64) float64 {
	sort.Float64s(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// column returns a contestant's times at one size over all rounds.
func (l *line) column(who string, size int) []float64 {
	var out []float64
	for k, name := range l.Report.Contest.Contestants {
		if name == who {
			for _, round := range l.Report.Contest.MedianUS {
				out = append(out, round[k][size])
			}
		}
	}
	return out
}

// speedup is the trimmed mean over rounds of the geometric mean over sizes.
func (l *line) speedup() float64 {
	sizes := len(l.Report.Contest.MedianUS[0][0])
	logs := make([]float64, len(l.Report.Contest.MedianUS))
	for s := range sizes {
		base, own := l.column("baseline", s), l.column("candidate", s)
		for r := range logs {
			logs[r] += (math.Log(base[r]) - math.Log(own[r])) / float64(sizes)
		}
	}
	sort.Float64s(logs)
	cut := len(logs) / 10
	sum := 0.0
	for _, v := range logs[cut : len(logs)-cut] {
		sum += v
	}
	return math.Exp(sum / float64(len(logs)-2*cut))
}

func readLines(t *testing.T, dir string) []line {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "campaigns", "*", "records.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("records.jsonl: %v, %v", found, err)
	}
	f, err := os.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // read only
	var out []line
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReportAgreesWithTheRecords recomputes the report's numbers from records.jsonl by other code than the report's.
func TestReportAgreesWithTheRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, stderr := command(t, dir, fakeHarness(), "run", "--evaluations", "40", "--seed", "9"); code != exitOK {
		t.Fatalf("run: exit code %d\n%s", code, stderr)
	}
	_, stdout, _ := command(t, dir, fakeHarness(), "report", "--json")
	var r struct {
		Result struct {
			Evaluations int64
			Candidates  struct {
				Evaluated, Censored int64
				Failed              map[string]int64
			}
			Winner struct {
				Candidate       string
				Structure       string
				Speedup         float64
				ReplayedSpeedup float64 `json:"replayed_speedup"`
				Sizes           []struct {
					BaselineUS float64 `json:"baseline_us"`
					RuntimeUS  float64 `json:"runtime_us"`
					ReplayedUS float64 `json:"replayed_us"`
				}
			}
		}
		Points []struct {
			Trial         int64
			Evaluation    int64
			Speedup, Best float64
		}
		Structures []struct {
			Name        string
			Evaluated   int64
			Asked       int64
			BestSpeedup float64 `json:"best_speedup"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: the report says %v, the records %v", what, got, want)
		}
	}
	records := readLines(t, dir)
	var baseline []float64
	evaluated, censored, best := int64(0), int64(0), 0.0
	asked, bests, counts := map[string]int64{}, map[string]float64{}, map[string]int64{}
	for i := range records {
		l := &records[i]
		switch {
		case l.Purpose == "aa":
			for s := range l.Report.Contest.MedianUS[0][0] {
				baseline = append(baseline, middle(l.column("baseline", s)))
			}
		case l.Purpose != "search":
		case l.Report.Censored != nil:
			asked[l.Structure]++
			censored++
		default:
			asked[l.Structure]++
			counts[l.Structure]++
			logs, sum, squares := 0.0, 0.0, 0.0
			n := float64(len(baseline))
			for s, z := range l.Report.Sizes {
				x := z.MedianUS / baseline[s]
				logs -= math.Log(x) / n
				sum += x / n
				squares += x * x / n
			}
			near(fmt.Sprintf("score of trial %d", l.Trial), *l.Score, -(sum + 0.1*math.Sqrt(squares-sum*sum)))
			best = math.Max(best, math.Exp(logs))
			bests[l.Structure] = math.Max(bests[l.Structure], math.Exp(logs))
			p := r.Points[evaluated]
			evaluated++
			if p.Trial != l.Trial || p.Evaluation != evaluated {
				t.Fatalf("point %d is trial %d, want %d", evaluated, p.Trial, l.Trial)
			}
			near("speedup", p.Speedup, math.Exp(logs))
			near("best so far", p.Best, best)
		}
	}
	near("evaluations", float64(r.Result.Evaluations), float64(evaluated))
	near("evaluated", float64(r.Result.Candidates.Evaluated), float64(evaluated))
	near("censored", float64(r.Result.Candidates.Censored), float64(censored))
	for _, s := range r.Structures {
		near("tried of "+s.Name, float64(s.Asked), float64(asked[s.Name]))
		near("evaluated of "+s.Name, float64(s.Evaluated), float64(counts[s.Name]))
		near("best of "+s.Name, s.BestSpeedup, bests[s.Name])
	}
	checkWinner := func(l *line, speedup float64, times func(i int) (base, own float64)) {
		near("speedup of the "+l.Purpose, speedup, l.speedup())
		for i := range baseline {
			base, own := times(i)
			near("baseline", base, middle(l.column("baseline", i)))
			near("runtime", own, middle(l.column("candidate", i)))
		}
	}
	for i := len(records) - 1; i >= 0; i-- {
		if l := &records[i]; l.Purpose == "replay" {
			checkWinner(l, r.Result.Winner.ReplayedSpeedup, func(i int) (float64, float64) {
				return r.Result.Winner.Sizes[i].BaselineUS, r.Result.Winner.Sizes[i].ReplayedUS
			})
		}
	}
	confirmed := false
	for i := len(records) - 1; i >= 0 && !confirmed; i-- {
		if l := &records[i]; l.Purpose == "confirm" && l.Candidate == r.Result.Winner.Candidate {
			confirmed = true
			near("confirmed speedup", r.Result.Winner.Speedup, l.speedup())
			for k := range baseline {
				near("confirmed runtime", r.Result.Winner.Sizes[k].RuntimeUS, middle(l.column("candidate", k)))
			}
		}
	}
	if !confirmed || !strings.Contains(stdout, r.Result.Winner.Candidate) {
		t.Error("the winner's confirmation is not among the records")
	}
}
