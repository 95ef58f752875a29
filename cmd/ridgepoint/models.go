package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ridgepoint/configs"
	"ridgepoint/harness"
	"ridgepoint/llm"
	"ridgepoint/llm/cassette"
	"ridgepoint/llm/library"
	"ridgepoint/llm/pool"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/decide"
	"ridgepoint/scheduler/loop"
	"ridgepoint/scheduler/proposer"
)

// overrideLLM lays `run --llm` over a campaign's section.
func overrideLLM(k *configs.Campaign, word string) error {
	file, replay := strings.CutPrefix(word, "replay:")
	switch {
	case replay && file != "":
		path, err := filepath.Abs(file)
		if err != nil {
			return fmt.Errorf("--llm: %w", err)
		}
		k.LLM.Models, k.LLM.Library, k.LLM.Replay = nil, nil, path
	case word == "off":
		k.LLM.Models, k.LLM.Library, k.LLM.Replay = nil, nil, ""
	default:
		return fmt.Errorf("--llm %q: want replay:FILE or off; models stand in the campaign file, section llm", word)
	}
	return nil
}

// models are what works beside a campaign's loop: its proposer, and the mailbox of ctl.
type models struct {
	session  *session
	log      zerolog.Logger
	proposer *proposer.Proposer
}

func newModels(s *session, log zerolog.Logger) *models { return &models{session: s, log: log} }

// hideKeys keeps the keys of campaigns' models from whatever is started from now on.
func (env environment) hideKeys(campaigns []*scheduler.Campaign) {
	for _, c := range campaigns {
		if !c.Settings.LLM.Active() {
			continue
		}
		for _, m := range c.Settings.LLM.Pool.Models {
			env.hide(m.KeyVariables()...)
			for _, name := range m.Env {
				if !slices.ContainsFunc(driverVariables, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
					env.hide(name)
				}
			}
		}
	}
}

// driverVariables begin the names of variables that compilers, drivers and profilers read: a program that is a model may be given them,
// beside its key.
var driverVariables = []string{"LD_", "CUDA", "NVIDIA_", "HIP_", "ROC"}

// drafting says whether structures may still come.
func (m *models) drafting() bool { return m.proposer != nil && m.proposer.Drafting() }

// recording is a player in the models' place.
type recording struct{ *cassette.Player }

func (recording) Has(role string) bool       { return role == llm.Author }
func (recording) SetBudget(llm.Budget) error { return nil } // a recording costs nothing

// open makes the proposer that the campaign's settings name. It reads keys, so that a missing one is said before the night begins.
func (m *models) open(ctx context.Context, l *loop.Loop) error {
	c := m.session.campaign
	settings := c.Settings.LLM
	if !settings.Active() {
		return nil
	}
	cfg := proposer.Config{Campaign: c, Store: m.session.store, Log: m.log}
	switch {
	case settings.Replay != "":
		player, err := cassette.Open(settings.Replay)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		used := map[string]bool{}
		err = eachEvent(ctx, m.session, func(e *scheduler.Exchange) { used[e.Request.ID] = true })
		if err != nil {
			return err
		}
		player.Skip(used)
		cfg.Models = recording{player}
	case len(settings.Pool.Models) > 0:
		ledger := pool.Ledger{Days: map[string]llm.Spent{}}
		budget := settings.Pool.Budget
		err := eachEvent(ctx, m.session, func(e *scheduler.Exchange) {
			ledger.Campaign = ledger.Campaign.Add(e.Spent)
			ledger.Days[e.Day] = ledger.Days[e.Day].Add(e.Spent)
		})
		if err != nil {
			return err
		}
		p, err := pool.New(pool.Config{Models: settings.Pool.Models, Budget: budget}, c.Seed, ledger, pool.Hooks{EnvFunc: m.session.env.getenv, ReadFileFunc: os.ReadFile, NowFunc: time.Now, SandboxFunc: confineModel(m.log),
			ArrivedFunc: func(id string, r *llm.Reply) error { return m.proposer.Arrived(context.WithoutCancel(ctx), l, id, r) }})
		if err != nil {
			return &exitError{exitUsage, err}
		}
		cfg.Models = p
	default:
		files, err := libraryFiles(settings.Library)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		cfg.Library = library.New(files)
	}
	m.proposer = proposer.New(cfg)
	return nil
}

func eachEvent(ctx context.Context, s *session, see func(*scheduler.Exchange)) error {
	return s.store.Events(ctx, s.campaign.ID, 0, func(e *scheduler.Event) error {
		if e.Kind != scheduler.EventExchange {
			return nil
		}
		data, err := decide.Decode(e)
		if err != nil {
			return err
		}
		see(data.(*scheduler.Exchange))
		return nil
	})
}

func libraryFiles(globs []string) ([]library.File, error) {
	var files []library.File
	for _, glob := range globs {
		names, err := filepath.Glob(glob)
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("llm.library: %s matches no file", glob)
		}
		sort.Strings(names)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("llm.library: %w", err)
			}
			files = append(files, library.File{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), Text: string(text)})
		}
	}
	return files, nil
}

// run works beside the loop until ctx ends: proposes, and takes in what people say by ctl.
func (m *models) run(ctx context.Context, l *loop.Loop) error {
	done := make(chan error, 1) // the mailbox's end, read below
	go func() { done <- m.listen(ctx, l) }()
	var err error
	if m.proposer != nil {
		err = m.proposer.Run(ctx, l)
		if err != nil { // a proposer that fails does not end the search
			m.log.Error().Err(err).Msg("no more drafts: the proposer failed")
		}
	}
	return <-done
}

// listen posts the words of ctl as they come.
func (m *models) listen(ctx context.Context, l *loop.Loop) error {
	box := mailbox{dir: m.session.store.Dir(), campaign: m.session.campaign.ID}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := m.deliver(ctx, l, box); err != nil && ctx.Err() == nil {
			m.log.Warn().Err(err).Msg("a word of ctl was not taken in")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (m *models) deliver(ctx context.Context, l *loop.Loop, box mailbox) error {
	words, err := box.words()
	if err != nil {
		return err
	}
	for _, w := range words {
		if err := m.take(ctx, l, w.control); err != nil {
			return err
		}
		if err := os.Remove(w.path); err != nil {
			return fmt.Errorf("empty the mailbox: %w", err)
		}
	}
	return nil
}

// take posts one word; an injected file becomes a draft of its own.
func (m *models) take(ctx context.Context, l *loop.Loop, c *scheduler.Control) error {
	known, number := false, int64(0)
	err := l.Do(ctx, func(s *decide.State, _ []*harness.Structure) { known, number = s.Words[c.ID], s.Drafts.Last+1 })
	if err != nil || known {
		return err
	}
	m.log.Info().Str("action", string(c.Action)).Str("name", c.Name).Msg("a person steers")
	if c.Action == scheduler.ControlInject {
		if m.proposer != nil {
			number = m.proposer.Number()
		}
		d := &scheduler.Draft{Number: number, Name: c.Name, Ask: scheduler.Ask{Step: "inject"}, Origin: "injected", Status: scheduler.DraftReady, Source: c.Source}
		if err := l.Post(ctx, scheduler.EventDraft, d); err != nil {
			return err
		}
	}
	return l.Post(ctx, scheduler.EventControl, c)
}
