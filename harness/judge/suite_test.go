package judge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
)

// verdict is one row of testdata/kernels/verdicts.json: what a kernel must be judged to be. Kinds lists the evidence that may
// be given for it, any where it is empty.
type verdict struct {
	File  string        `json:"file"`
	Task  string        `json:"task"`
	Fault harness.Fault `json:"fault"`
	Kinds []string      `json:"kinds"`
	Stage harness.Stage `json:"stage"`
	Why   string        `json:"why"` // what gives it away; no two kernels share it
}

func readVerdicts(t *testing.T) []verdict {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "kernels", "verdicts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []verdict
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// times is how often each kernel is judged: five times with RIDGEPOINT_LONG=1, always with another seed.
func times() int {
	if os.Getenv("RIDGEPOINT_LONG") == "1" {
		return 5
	}
	return 1
}

// Every wrong kernel gets its verdict with its evidence, and no honest one is accused, whatever the seed. All share one judge:
// what one kernel does to its process must not reach the next.
func TestVerdicts(t *testing.T) {
	limit := time.Second
	if times() > 1 { // what else runs on the machine may then be long, too
		limit = 10 * time.Second
	}
	j := newJudge(t, limit)
	tasks := map[string]*harness.Task{}
	reasons := map[string]string{}
	for _, v := range readVerdicts(t) {
		if other, twice := reasons[v.Why]; v.Fault != harness.FaultNone && (twice || v.Why == "") {
			t.Errorf("%s and %s are given away by the same: %q", v.File, other, v.Why)
		}
		reasons[v.Why] = v.File
		if tasks[v.Task] == nil {
			tasks[v.Task] = loadTask(t, v.Task)
		}
		t.Run(v.File, func(t *testing.T) {
			for n := range times() {
				stage := v.Stage
				if stage == "" {
					stage = harness.StageSearch
				}
				q := disguised(t, tasks[v.Task], v.File, harness.Plan{Stage: stage, Seed: uint64(1000*n + len(v.File))})
				r := evaluate(t, j, q)
				checkVerdict(t, v, r)
			}
		})
	}
}

// disguised is request with the source's comments stripped and its names replaced.
func disguised(t *testing.T, tk *harness.Task, file string, plan harness.Plan) *harness.Request {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "kernels", file))
	if err != nil {
		t.Fatal(err)
	}
	return requestOf(t, tk, file, harnesstest.Disguise(string(text), "vadd", "softmax_rows", "rowsum", "write"), plan)
}

func checkVerdict(t *testing.T, v verdict, r *harness.Report) {
	t.Helper()
	e := r.Evidence
	t.Logf("%s: %s, %s", v.File, r.Fault, r.Reason)
	switch {
	case v.Fault == harness.FaultNone && r.Fault.Measured():
		if len(r.Sizes) == 0 || r.Numerical != harness.StatusPass {
			t.Errorf("passed, but the report holds no times or no numerical status: %+v", r)
		}
		return
	case r.Fault != v.Fault:
		t.Errorf("judged %s (%s), want %s; evidence %+v", r.Fault, r.Reason, v.Fault, e)
		return
	case r.Reason == "":
		t.Error("no reason is given")
	case v.Fault == harness.FaultCompile:
		return
	case e == nil || len(v.Kinds) > 0 && !slices.Contains(v.Kinds, e.Kind):
		t.Errorf("evidence %+v, want one of %v", e, v.Kinds)
		return
	}
	if v.Fault != harness.FaultIncorrect {
		return
	}
	if e.Size == nil || e.Distribution == "" {
		t.Errorf("evidence names no size or input set: %+v", e)
	}
	if (e.Kind == "mismatch" || e.Kind == "non_finite" || e.Kind == "unwritten") && (e.Tensor == "" || e.Index == nil || e.Pattern == "") {
		t.Errorf("evidence names no element or pattern: %+v", e)
	}
}
