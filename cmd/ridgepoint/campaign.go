package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ridgepoint/configs"
	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/optimizer"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/memory"
	"ridgepoint/scheduler/report"
	"ridgepoint/workers/observe"
	"ridgepoint/workers/queue"
)

// dataFlag names the folder of the store.
type dataFlag struct {
	Data string `help:"Folder of the store (default: RIDGEPOINT_DATA, else ridgepoint-data)." placeholder:"DIR" type:"path"`
}

// dir returns the folder: the flag's, else the environment's, else the configuration's.
func (d dataFlag) dir(env environment, c *configs.Config) (string, error) {
	if d.Data != "" {
		return d.Data, nil
	}
	if dir := env.getenv("RIDGEPOINT_DATA"); dir != "" {
		return dir, nil
	}
	if c == nil {
		var err error
		if c, err = configs.Default(); err != nil {
			return "", err
		}
	}
	return filepath.Clean(c.Data), nil
}

// read opens the store for reading and finds a campaign.
func (d dataFlag) read(ctx context.Context, env environment) (*memory.Store, error) {
	dir, err := d.dir(env, nil)
	if err != nil {
		return nil, err
	}
	store, err := memory.OpenReader(ctx, dir)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return store, nil
}

// newCampaign makes a campaign of a configuration, with the structures that it starts from.
func newCampaign(c *configs.Campaign) (*scheduler.Campaign, []*harness.Structure, error) {
	settings, err := c.Settings()
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	if err := knownOptimizer(c.Optimizer); err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	target, err := harness.ParseTarget(c.Target)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	arg := c.Task
	if c.File != "" && !filepath.IsAbs(arg) && filepath.Ext(arg) != "" {
		arg = filepath.Join(filepath.Dir(c.File), arg)
	}
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(arg)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	if settings.LLM, err = c.SettingsFor(loaded.Task); err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	structures, err := structuresOf(c, loaded, target)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	if err := checkRecords(settings.Transfer, structures, settings.LLM.Active()); err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	source, err := task.Baseline(loaded.Task, target)
	if err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	source.Shipped = loaded.Shipped
	baseline, err := task.NewCandidate(loaded.Task, source, nil)
	if err != nil {
		return nil, nil, &exitError{exitUsage, fmt.Errorf("baseline of task %s: %w", loaded.Task.Name, err)}
	}
	var random [12]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, nil, fmt.Errorf("make a campaign id: %w", err)
	}
	out := &scheduler.Campaign{Version: scheduler.CampaignVersion, ID: scheduler.NewCampaignID(loaded.Task.Name, target, hex.EncodeToString(random[:4])), Name: c.Name,
		Task: loaded.Task, Target: target, Baseline: baseline, Seed: c.Seed, Reward: loaded.Task.Reward, Settings: settings, Created: time.Now().UTC()}
	if out.Seed == 0 {
		out.Seed = uint64(binary.LittleEndian.Uint32(random[4:]))
	}
	if c.Reward != nil {
		out.Reward = c.Reward.Noun()
	}
	return out, structures, nil
}

// structuresOf loads the task's structures for a target and the campaign's own.
func structuresOf(c *configs.Campaign, loaded *task.Loaded, target harness.Target) ([]*harness.Structure, error) {
	structures, err := loaded.Structures(target)
	if err != nil {
		return nil, err
	}
	files, err := c.StructureFiles()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		s, err := task.LoadStructure(f, loaded.Task, target)
		if err != nil {
			return nil, err
		}
		structures = append(structures, s)
	}
	if len(structures) == 0 {
		return nil, fmt.Errorf("task %s has no structures for %s: write some (DESIGN.md, section 5) and name them under `structures:` in the task or campaign file", loaded.Task.Name, target)
	}
	return structures, nil
}

func knownOptimizer(name string) error {
	for _, n := range strategy.Names() {
		if n == name {
			return nil
		}
	}
	return fmt.Errorf("optimizer %q is not known: want one of %v", name, strategy.Names())
}

// session runs one campaign in this process until it ends or is stopped.
type session struct {
	env      environment
	store    *memory.Store
	campaign *scheduler.Campaign
	// structures are those of a new campaign; nil when resuming.
	structures []*harness.Structure
	setup      bool
	json       bool
	redis      redisFlags
	serve      serveFlags
	permits    string // --limits
	weight     float64
	priority   int
}

// run evaluates on this machine, shows progress on stderr and prints the result on stdout.
func (s *session) run(ctx context.Context) error {
	view := newView(s.env.stderr, s.campaign)
	if s.structures == nil {
		stored, err := s.store.Structures(ctx, s.campaign.ID)
		if err != nil {
			return err
		}
		for _, st := range stored {
			view.names = append(view.names, st.Name)
		}
	}
	log := view.logger()
	var result *scheduler.Result
	err := s.withCarriage(ctx, log, func(ctx context.Context, c *carriage) (err error) {
		result, err = s.drive(ctx, c, view, log)
		return err
	})
	view.close()
	return s.finish(ctx, result, err)
}

// withCarriage opens the way to workers, with one in this process, for as long as work runs.
func (s *session) withCarriage(ctx context.Context, log zerolog.Logger, work func(context.Context, *carriage) error) error {
	cfg, err := s.redis.config(s.env)
	if err != nil {
		return err
	}
	bounds, err := limitsFor([]*scheduler.Campaign{s.campaign}, s.permits)
	if err != nil {
		return err
	}
	worker, closeFunc, err := ownWorker(ctx, s.env, []*scheduler.Campaign{s.campaign}, s.store.Dir(), cfg.IsEmbedded(), s.setup, log)
	if err != nil {
		return err
	}
	err = withNode(ctx, s.env, nodeConfig{Redis: cfg, Serve: s.serve, Limits: bounds, Log: log}, func(ctx context.Context, n *queue.Node) error {
		c := newCarriage(n, s.store, log)
		return c.carry(ctx, worker, func(ctx context.Context) error { return work(ctx, c) })
	})
	return errors.Join(err, closeFunc())
}

// drive runs the campaign's loop over a carriage.
func (s *session) drive(ctx context.Context, c *carriage, view *view, log zerolog.Logger) (*scheduler.Result, error) {
	d := c.dispatcher(s.campaign, s.weight, s.priority)
	defer d.Close()
	models := newModels(s, log)
	records, err := s.records(log)
	if err != nil {
		return nil, err
	}
	l, err := loop.New(loop.Config{Campaign: s.campaign, Structures: s.structures, Store: s.store, Records: records, Dispatcher: d, OptimizerFunc: s.newOptimizer, ShippedFunc: isShipped, Log: log, Weight: s.weight, Priority: s.priority,
		EventFunc: view.event, DraftingFunc: models.drafting, ProgressFunc: func(p loop.Progress) {
			view.progress(p)
			watch(c.node.Metrics(), s.campaign, p)
		}})
	if err == nil {
		err = models.open(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	defer c.join(s.campaign.ID, l.Deliver)()
	beside, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return models.run(beside, l) })
	result, err := l.Run(ctx)
	stop()
	return result, errors.Join(err, group.Wait())
}

// watch keeps a campaign's gauges.
func watch(m *observe.Metrics, c *scheduler.Campaign, p loop.Progress) {
	b := c.Settings.Budget
	used := func(name string, part, whole float64) {
		if whole > 0 {
			m.BudgetUsed.WithLabelValues(c.ID, name).Set(part / whole)
		}
	}
	used("wall", p.SpentSeconds, b.WallSeconds)
	used("evaluations", float64(p.Counts.Evaluated), float64(b.Evaluations))
	used("device", p.DeviceBusy*p.SpentSeconds, b.DeviceSeconds)
	m.Incumbent.WithLabelValues(c.ID).Set(p.Confirmed)
}

func (s *session) newOptimizer(space *optimizer.Space, seed uint64) (optimizer.Optimizer, error) {
	return strategy.New(s.campaign.Settings.Optimizer, space, strategy.Options{Seed: seed})
}

// finish prints the result and chooses the exit code.
func (s *session) finish(ctx context.Context, result *scheduler.Result, err error) error {
	id := s.campaign.ID
	switch {
	case errors.Is(err, loop.ErrStopped):
		err = &exitError{exitStopped, fmt.Errorf("stopped; nothing is lost. Go on with: ridgepoint resume %s%s", id, s.dataHint())}
	case errors.Is(err, loop.ErrTask):
		return &exitError{exitVerdict, err}
	case err != nil:
		return fmt.Errorf("%w\nonce that is repaired, go on with: ridgepoint resume %s%s", err, id, s.dataHint())
	case result.Winner == nil:
		err = &exitError{exitVerdict, fmt.Errorf("no candidate was confirmed to be faster than the baseline; `ridgepoint report %s%s` says how near they came", id, s.dataHint())}
	}
	if s.json {
		return errors.Join(err, writeJSON(s.env.stdout, result))
	}
	r, rerr := report.Build(context.WithoutCancel(ctx), s.store, id)
	if rerr == nil {
		rerr = r.Summary(s.env.stdout)
	}
	if rerr == nil {
		_, rerr = fmt.Fprintf(s.env.stdout, "more: ridgepoint report %s%s   (--html FILE for a page)\n", id, s.dataHint())
	}
	return errors.Join(err, rerr)
}

// dataHint is the flag that finds the store again, when it is not where it is looked for by default.
func (s *session) dataHint() string {
	if dir, err := (dataFlag{}).dir(s.env, nil); err == nil && dir == s.store.Dir() {
		return ""
	}
	return " --data " + s.store.Dir()
}
