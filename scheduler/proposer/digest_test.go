package proposer

import (
	"strings"
	"testing"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
)

// TestProfileOfTheBestStandsInConvergingPrompts follows a digest from a profile's record into the prompt: of the incumbent's structure,
// its slowest launch first, and not where the prompt is to explore.
func TestProfileOfTheBestStandsInConvergingPrompts(t *testing.T) {
	t.Parallel()
	loaded, err := task.Loader{Shipped: tasks.FS}.Load("softmax_2d")
	if err != nil {
		t.Fatal(err)
	}
	structures, err := loaded.Structures(harness.TargetCUDA)
	if err != nil || len(structures) < 2 {
		t.Fatalf("%d structures, %v", len(structures), err)
	}
	source, err := task.Baseline(loaded.Task, harness.TargetCUDA)
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := task.NewCandidate(loaded.Task, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	campaign := &scheduler.Campaign{Baseline: baseline, Version: scheduler.CampaignVersion, ID: "c", Task: loaded.Task, Target: harness.TargetCUDA,
		Settings: scheduler.Settings{LLM: &scheduler.LLMSettings{Blend: "auto", PromptTokens: 24000, Schema: "structured_v1", AnalystEvery: 5}}}
	v := View{Campaign: campaign, State: decide.New(campaign), Structures: structures[:2]}
	var f findings
	f.structures = map[string]*finding{}
	score := []float64{-0.5, -0.7}
	for i, st := range v.Structures {
		v.State.Structures = append(v.State.Structures, decide.Structure{Number: i + 1, Name: st.Name, Digest: st.Digest, Direction: st.Direction, DefaultPlanned: true, Asked: 3, Told: 3, Measured: 3, Best: -score[i]})
		record := harness.Record{Seq: int64(2*i + 1), Structure: st.Name, StructureSHA: st.Digest, Direction: st.Direction, Purpose: "search", Config: st.Default, Score: &score[i], Report: harness.Report{Fault: harness.FaultNone}}
		f.add(&record)
		record.Seq, record.Purpose, record.Score = int64(2*i+2), "profile", nil
		record.Report.Profile = []harness.Digest{
			{Kernel: "short_" + st.Name, Source: "ncu", Duration: 1000, Registers: 40, Occupancy: 0.5, TopStall: "long_scoreboard", TopStallRatio: 2},
			{Kernel: "long_" + st.Name, Source: "ncu", Duration: 9000, Registers: 77, Occupancy: 0.25, TopStall: "barrier", TopStallRatio: 4},
		}
		f.add(&record)
	}
	prompt := func(step string, exploring bool) string {
		t.Helper()
		ask := scheduler.Ask{Step: step, Exploring: exploring}
		if step == "refine" {
			ask.Parents, ask.Direction = []int{1}, v.Structures[0].Direction
		}
		r, _, err := f.situation(v, []int{1, 2}, &ask).Author()
		if err != nil {
			t.Fatal(err)
		}
		return r.Messages[len(r.Messages)-1].Text
	}
	refine := prompt("refine", false)
	long, short := strings.Index(refine, "long_"+v.Structures[0].Name), strings.Index(refine, "short_"+v.Structures[0].Name)
	if long < 0 || short < long || !strings.Contains(refine[long:], "barrier") || !strings.Contains(refine[long:], "77") {
		t.Errorf("the digest, its slowest launch first, is not in the prompt (at %d and %d):\n%s", long, short, refine)
	}
	if strings.Contains(refine, "long_"+v.Structures[1].Name) {
		t.Error("the digest of another structure is in the prompt")
	}
	if explore := prompt("new_direction", true); strings.Contains(explore, "long_"+v.Structures[0].Name) {
		t.Error("a prompt that is to explore holds the digest")
	}
}
