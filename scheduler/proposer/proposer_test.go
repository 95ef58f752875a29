package proposer_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/harnesstest"
	"ridgepoint/harness/task"
	"ridgepoint/llm"
	"ridgepoint/llm/pool"
	"ridgepoint/llm/propose"
	"ridgepoint/llm/scripted"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/proposer"
	"ridgepoint/workers/local"
)

const plantedKey = "sk-planted-9f8e7d6c5b4a"

func softmax(t testing.TB) (*harness.Task, []*harness.Structure) {
	t.Helper()
	loaded, err := task.Loader{Shipped: tasks.FS}.Load("softmax_2d")
	if err != nil {
		t.Fatal(err)
	}
	structures, err := loaded.Structures(harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Task, structures
}

// night is a campaign of softmax on the cpu target whose harness is scripted: the three real improvements are fast, the cheats wrong.
type night struct {
	campaign   *scheduler.Campaign
	structures []*harness.Structure
	script     *harnesstest.Scripted
	dir        string
	server     *scripted.Server
	hurry      int // how many times as fast as the real one the models' clock runs; 0: as fast
	drafts     int // says stop when so many drafts have ended and enough outcomes have come since; 0: never
	log        strings.Builder
	logMu      sync.Mutex
}

func (n *night) Write(p []byte) (int, error) {
	n.logMu.Lock()
	defer n.logMu.Unlock()
	return n.log.Write(p)
}

// speed is what each kernel takes of the baseline's time, by the name of its kernel.
func speed(c *harness.Candidate) float64 {
	value := func(name string) float64 { v, _ := c.Configuration[name].AsFloat(); return v }
	switch c.Structure.Launches[0].Kernel {
	case "softmax":
		return 1
	case "softmax_buffered":
		return 0.2 + 0.02*value("TEAM")
	case "softmax_tiles":
		return 0.3 + 0.01*value("TEAM")
	case "softmax_pairs":
		return 0.28 + 0.01*value("TEAM")
	case "softmax_blocked", "softmax_online":
		return 0.45 + 0.01*value("UNROLL")
	default:
		return 0.8
	}
}

func newNight(t testing.TB, script *scripted.Script, settings func(*scheduler.Settings)) *night {
	t.Helper()
	n := &night{dir: t.TempDir()}
	var tk *harness.Task
	tk, n.structures = softmax(t)
	source, err := task.Baseline(tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := task.NewCandidate(tk, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.script = &harnesstest.Scripted{NoiseSD: 0.003, Latency: 3 * time.Millisecond,
		TimeFunc: func(c *harness.Candidate, size harness.Size) float64 {
			rows, _ := size.Get("rows")
			return float64(rows) * speed(c)
		},
		FaultFunc: func(c *harness.Candidate, _ *harness.Plan) harness.Fault {
			switch c.Structure.Launches[0].Kernel {
			case "softmax_known", "softmax_remember":
				return harness.FaultIncorrect
			default:
				return harness.FaultNone
			}
		}}
	n.server, err = scripted.New(script, llm.NewSecret(plantedKey))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(n.server)
	t.Cleanup(web.Close)
	retries := 1
	s := scheduler.Settings{Budget: scheduler.Budget{Evaluations: 300}, Optimizer: "random", Probes: 2, InFlight: 2, RemeasureShare: 0.05, OverdueSeconds: 60, ReplayReserve: 0.1,
		Confirm: scheduler.ConfirmSettings{Gain: 0.01, Power: 0.9, Alpha: 0.05, AARounds: 8, MinRounds: 4, MaxRounds: 20, Share: 0.5},
		LLM: &scheduler.LLMSettings{Blend: "auto", PromptTokens: 24000, MaxDrafts: 30, Schema: "structured_v1", AnalystEvery: 5,
			Pool: pool.Config{Models: []pool.Model{{Name: "scripted", BaseURL: web.URL + "/v1", Model: "scripted", KeyEnv: "KEY", Retries: &retries,
				StallTimeout: 20 * time.Second, Price: llm.Price{Prompt: 1, Completion: 5}}}}}}
	if settings != nil {
		settings(&s)
	}
	n.campaign = &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: "softmax_2d-cpu-0001", Name: "night", Task: tk, Target: harness.TargetCPU, Baseline: baseline, Seed: 7,
		Reward: tk.Reward, Settings: s, Created: time.Now().UTC()}
	return n
}

// run works on the campaign until it ends or stop says so of an event; then as after a kill: nothing is written down any more.
func (n *night) run(t testing.TB, stop func(e *scheduler.Event, data any) bool) (*scheduler.Result, *decide.State, error) {
	t.Helper()
	store, err := memory.Open(t.Context(), n.dir)
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(n)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := local.New(local.Default(n.script, true, log))
	var p *proposer.Proposer
	structures := n.structures
	if _, err := store.Campaign(ctx, n.campaign.ID); err == nil {
		structures = nil
	}
	ended, since := map[int64]bool{}, 0
	var l *loop.Loop
	var stopping sync.WaitGroup
	defer stopping.Wait()
	enough := func(data any) bool {
		switch x := data.(type) {
		case *scheduler.Draft:
			ended[x.Number] = true
		case *scheduler.Summary:
			if n.drafts > 0 && len(ended) >= n.drafts {
				since++
			}
		}
		return since == 120
	}
	l, err = loop.New(loop.Config{Campaign: n.campaign, Structures: structures, Store: store, Dispatcher: d, Log: log, DraftingFunc: func() bool { return p.Drafting() },
		OptimizerFunc: func(space *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
			return strategy.New("random", space, strategy.Options{Seed: seed})
		},
		EventFunc: func(e *scheduler.Event, data any) {
			if stop != nil && stop(e, data) {
				cancel()
			}
			if enough(data) {
				since++
				stopping.Go(func() { // not from within the loop, which would wait for itself
					_ = l.Post(t.Context(), scheduler.EventControl, &scheduler.Control{ID: "enough", Action: scheduler.ControlStop}) // the loop may have ended
				})
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	now, began := time.Now, time.Now()
	if n.hurry > 0 {
		now = func() time.Time { return began.Add(time.Duration(n.hurry) * time.Since(began)) }
	}
	ledger := pool.Ledger{Days: map[string]llm.Spent{}}
	state := n.fold(t, store)
	ledger.Campaign, ledger.Days = state.Drafts.Spent, state.Drafts.Days
	models, err := pool.New(n.campaign.Settings.LLM.Pool, 1, ledger, pool.Hooks{EnvFunc: func(string) string { return plantedKey }, ReadFileFunc: os.ReadFile, NowFunc: now,
		SleepFunc: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		ArrivedFunc: func(id string, r *llm.Reply) error {
			return p.Arrived(context.WithoutCancel(ctx), l, id, r)
		}})
	if err != nil {
		t.Fatal(err)
	}
	p = proposer.New(proposer.Config{Campaign: n.campaign, Store: store, Models: models, Log: log, Now: now})
	work, done := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _ = d.Run(work, l.Deliver) }) // its only error is the cancelled context
	group.Go(func() {
		if err := p.Run(work, l); err != nil {
			t.Errorf("proposer: %v", err)
		}
	})
	result, err := l.Run(ctx)
	done()
	group.Wait()
	final := n.fold(t, store)
	return result, final, errors.Join(err, store.Close())
}

// fold rebuilds the campaign's state from the log alone.
func (n *night) fold(t testing.TB, store *memory.Store) *decide.State {
	t.Helper()
	s := decide.New(n.campaign)
	err := store.Events(context.Background(), n.campaign.ID, 0, func(e *scheduler.Event) error {
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		return s.Apply(e, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t testing.TB, delay time.Duration) *scripted.Script {
	t.Helper()
	s, err := scripted.Load("testdata/softmax30/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Delay = delay
	return s
}

func TestNightOfThirtyDrafts(t *testing.T) {
	t.Parallel()
	n := newNight(t, load(t, 20*time.Millisecond), func(s *scheduler.Settings) { s.Budget.Evaluations = 3000 })
	n.drafts = 30
	result, s, err := n.run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Winner == nil || !strings.HasPrefix(result.Winner.Structure, "draft-") || result.Winner.ReplayedSpeedup < 4.2 {
		t.Fatalf("winner = %+v, want the best of the three drafts, replayed", result.Winner)
	}
	names := map[string]scheduler.DraftStatus{}
	for _, d := range s.Drafts.Ended {
		names[d.Name] = d.Status
	}
	c := s.Drafts.Counts
	if c[scheduler.DraftReady]+c[scheduler.DraftDropped]+c[scheduler.DraftDuplicate]+c[scheduler.DraftRefused] != 30 || len(s.Drafts.Open) != 0 {
		t.Errorf("counts = %v with %d open, want 30 drafts accounted for", c, len(s.Drafts.Open))
	}
	if c[scheduler.DraftDuplicate] != 3 || c[scheduler.DraftDropped] != 2 || s.Drafts.Repairs < 2 {
		t.Errorf("duplicates %d, dropped %d, repaired %d; want 3, 2 and at least 2; ended: %v", c[scheduler.DraftDuplicate], c[scheduler.DraftDropped], s.Drafts.Repairs, names)
	}
	store, err := memory.OpenReader(t.Context(), n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // only read
	structures, err := store.Structures(t.Context(), n.campaign.ID)
	if err != nil {
		t.Fatal(err)
	}
	cheats := 0
	for i, st := range structures {
		if k := st.Launches[0].Kernel; k == "softmax_known" || k == "softmax_remember" {
			if cheats++; s.Structures[i].Measured > 0 {
				t.Errorf("the cheat %s was measured", st.Name)
			}
		}
	}
	if cheats != 2 {
		t.Errorf("%d cheats were tried, want both", cheats)
	}
	if s.Drafts.Spent.Calls != int64(len(n.server.Calls())) || s.Drafts.Spent.MicroUSD == 0 {
		t.Errorf("spent %+v, the server got %d calls", s.Drafts.Spent, len(n.server.Calls()))
	}
}

func TestKeyIsNowhere(t *testing.T) {
	t.Parallel()
	script := load(t, 0)
	script.Rules = append([]scripted.Rule{{Times: 1, Text: "your key is " + plantedKey}, {Times: 1, Status: 500, Body: "bad key " + plantedKey}}, script.Rules...)
	n := newNight(t, script, func(s *scheduler.Settings) { s.Budget.Evaluations, s.LLM.MaxDrafts = 3000, 6 })
	n.drafts = 6
	if _, _, err := n.run(t, nil); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(n.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), plantedKey) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
	if n.log.Len() == 0 || strings.Contains(n.log.String(), plantedKey) {
		t.Error("the log is empty or holds the key")
	}
}

func TestDeadModelDoesNotHoldTheSearchUp(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]scripted.Rule{"only 429": {Status: 429, RetryAfter: "1"}, "hanging": {Text: "x", StallAfter: new(int)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNight(t, &scripted.Script{Rules: []scripted.Rule{rule}}, func(s *scheduler.Settings) {
				s.Budget.Evaluations = 150
				s.LLM.Pool.Models[0].StallTimeout = 300 * time.Millisecond
			})
			n.script.Latency = 20 * time.Millisecond // long enough for two stalls
			n.hurry = 100                            // and for the pauses of a failing model to pass
			result, s, err := n.run(t, nil)
			if err != nil || result.Winner == nil || result.Evaluations < 150 {
				t.Fatalf("result %+v, %v; want a normal end", result, err)
			}
			if got := strings.Count(n.log.String(), "models unavailable"); got != 1 {
				t.Errorf("said %d times that the model is gone, want once", got)
			}
			if s.Drafts.Last != 0 || len(n.server.Calls()) == 0 {
				t.Errorf("%d drafts, %d calls", s.Drafts.Last, len(n.server.Calls()))
			}
		})
	}
}

func TestNoReplyIsPaidTwice(t *testing.T) {
	t.Parallel()
	script := load(t, 5*time.Millisecond)
	script.Rules[len(script.Rules)-1] = scripted.Rule{Text: "nothing more"} // a kill may waste drafts on their way
	n := newNight(t, script, func(s *scheduler.Settings) { s.Budget.Evaluations = 3000 })
	n.drafts = 30
	arrived := map[string]bool{}
	for round := 0; ; round++ {
		seen := 0
		_, s, err := n.run(t, func(e *scheduler.Event, data any) bool {
			if x, ok := data.(*scheduler.Exchange); ok && x.Reply != nil {
				if arrived[x.Request.ID] {
					t.Errorf("reply %s came twice", x.Request.ID)
				}
				arrived[x.Request.ID] = true
				seen++
			}
			return round < 6 && seen == 2 // right after a reply has come, before anything is done with it
		})
		spent, replies := s.Drafts.Spent, len(arrived)
		if spent.Calls < int64(replies) {
			t.Fatalf("round %d: %d calls booked, %d replies came", round, spent.Calls, replies)
		}
		if err == nil {
			if len(s.Drafts.Open) != 0 || s.Drafts.Last != 30 {
				t.Errorf("%d drafts, %d open; want 30 and none", s.Drafts.Last, len(s.Drafts.Open))
			}
			break
		}
		if !errors.Is(err, loop.ErrStopped) {
			t.Fatal(err)
		}
	}
}

func TestRepliesOfTheCorpusLoad(t *testing.T) {
	t.Parallel()
	tk, _ := softmax(t)
	files, err := filepath.Glob("../../llm/propose/testdata/replies/*-cpu-*.want")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	sort.Strings(files)
	checked := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, source, ok := strings.Cut(string(b), "\n---\n")
		if !ok || strings.Contains(head, "complaint:") || !strings.Contains(head, "kind: structure") {
			continue
		}
		checked++
		for _, c := range proposer.Check(tk, harness.TargetCPU, source) {
			t.Errorf("%s: a repaired source is refused: %s: %s", filepath.Base(file), c.Code, c)
		}
	}
	if checked < 60 {
		t.Errorf("%d sources checked, want at least 60", checked)
	}
}

func TestImprovementsAreUnlikeTheShippedStructures(t *testing.T) {
	t.Parallel()
	tk, structures := softmax(t)
	for _, name := range []string{"draft-09", "draft-15", "draft-21"} {
		b, err := os.ReadFile("testdata/softmax30/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		d, complaints := propose.Parse(string(b), false, proposer.Known(tk, harness.TargetCPU))
		if len(complaints) > 0 {
			t.Fatalf("%s: %v", name, complaints)
		}
		for _, st := range structures {
			if like := propose.Similarity(d.Source, st.Source); like >= 0.5 {
				t.Errorf("%s is %.2f like %s", name, like, st.Name)
			}
		}
	}
}
