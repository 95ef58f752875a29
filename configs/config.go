// Package configs is the one configuration: defaults, campaign files and their validation, with the shipped campaigns
// embedded. Defaults come from default.yaml, which documents every key. It reads files that it is told of, never the
// environment.
package configs

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"ridgepoint/harness"
	"ridgepoint/optimizer/strategy"
	"ridgepoint/scheduler"
	"ridgepoint/scheduler/reward"
)

//go:embed default.yaml campaigns/*.yaml
var files embed.FS

// DefaultCampaign is the campaign that `run` without arguments runs.
const DefaultCampaign = "softmax-cpu"

// ErrConfig says that a configuration file is wrong. The message holds file, line, what was expected and what to do.
var ErrConfig = errors.New("wrong configuration")

// Config is the whole configuration.
type Config struct {
	Data     string   `yaml:"data"`
	Campaign Campaign `yaml:"campaign"`
}

// Campaign is a campaign file.
type Campaign struct {
	Name           string   `yaml:"name"`
	Task           string   `yaml:"task"`
	Target         string   `yaml:"target"`
	Structures     []string `yaml:"structures"`
	Seed           uint64   `yaml:"seed"`
	Budget         Budget   `yaml:"budget"`
	TargetSpeedup  float64  `yaml:"target_speedup"`
	Optimizer      string   `yaml:"optimizer"`
	Transfer       Transfer `yaml:"transfer"`
	Probes         int      `yaml:"probes"`
	InFlight       int      `yaml:"in_flight"`
	Racing         bool     `yaml:"racing"`
	RemeasureShare float64  `yaml:"remeasure_share"`
	ProfileEvery   int64    `yaml:"profile_every"`
	Overdue        Duration `yaml:"overdue"`
	Confirm        Confirm  `yaml:"confirm"`
	Reward         *Reward  `yaml:"reward"`
	LLM            LLM      `yaml:"llm"`
	Limits         Limits   `yaml:"limits"`

	File string `yaml:"-"` // where it was read; empty: shipped
}

// Budget is the campaign file's budget section.
type Budget struct {
	Wall          Duration `yaml:"wall"`
	Evaluations   int64    `yaml:"evaluations"`
	DeviceSeconds float64  `yaml:"device_seconds"`
	ReplayReserve float64  `yaml:"replay_reserve"`
}

// Confirm is the campaign file's confirm section.
type Confirm struct {
	Gain      float64 `yaml:"gain"`
	Power     float64 `yaml:"power"`
	Alpha     float64 `yaml:"alpha"`
	AARounds  int     `yaml:"aa_rounds"`
	MinRounds int     `yaml:"min_rounds"`
	MaxRounds int     `yaml:"max_rounds"`
	Share     float64 `yaml:"share"`
}

// Reward is a reward as a campaign or reward file writes it.
type Reward struct {
	Kind       string  `yaml:"kind"`
	StdWeight  float64 `yaml:"std_weight"`
	FailWeight float64 `yaml:"fail_weight"`
	Per        string  `yaml:"per"`
	Expr       string  `yaml:"expr"`
}

// Noun returns the reward as the harness's noun, with the defaults of DESIGN.md, section 7, for what was left out.
func (r *Reward) Noun() harness.Reward {
	out := harness.Reward{Kind: r.Kind, StdWeight: r.StdWeight, FailWeight: r.FailWeight, Per: r.Per, Expr: r.Expr}
	if out.Kind == reward.MeanStdFail && out.Per == "" {
		out.Per = "ratio_to_baseline"
	}
	return out
}

// UnmarshalYAML fills weights that are not written with 0.1 and 0.05.
func (r *Reward) UnmarshalYAML(b []byte) error {
	type plain Reward // without this method
	p := plain{StdWeight: 0.1, FailWeight: 0.05}
	if err := yaml.UnmarshalWithOptions(b, &p, yaml.Strict()); err != nil {
		return err
	}
	*r = Reward(p)
	return nil
}

// Duration is a time.Duration written as 90s, 2m or 12h; 0 is allowed bare.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(b []byte) error {
	text := strings.Trim(strings.TrimSpace(string(b)), `"'`)
	if text == "0" {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf("duration %q: want a number with its unit, such as 90s, 2m or 12h", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes a duration.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default returns the configuration of default.yaml.
func Default() (*Config, error) {
	b, err := files.ReadFile("default.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the defaults: %w", err)
	}
	c := &Config{}
	if err := decode("default.yaml", b, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Campaigns returns the names of the shipped campaigns, sorted.
func Campaigns() []string {
	entries, err := fs.Glob(files, "campaigns/*.yaml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, e := range entries {
		entries[i] = strings.TrimSuffix(path.Base(e), ".yaml")
	}
	sort.Strings(entries)
	return entries
}

// Load returns the defaults with a campaign laid over them: a shipped one by name, or a file.
func Load(campaign string) (*Config, error) {
	c, err := Default()
	if err != nil {
		return nil, err
	}
	b, err := files.ReadFile("campaigns/" + campaign + ".yaml")
	if err == nil {
		return c, decode("configs/campaigns/"+campaign+".yaml", b, &c.Campaign)
	}
	b, err = readFile(campaign)
	if err != nil {
		return nil, fmt.Errorf("%w: campaign %q cannot be read, and shipped are %s: %w", ErrConfig, campaign, strings.Join(Campaigns(), ", "), err)
	}
	if err := decode(campaign, b, &c.Campaign); err != nil {
		return nil, err
	}
	if err := c.Campaign.validate(campaign, b); err != nil {
		return nil, err
	}
	c.Campaign.File = campaign
	if c.Campaign.Name == "" {
		c.Campaign.Name = strings.TrimSuffix(filepath.Base(campaign), filepath.Ext(campaign))
	}
	return c, nil
}

// LoadReward reads a reward file, or a reward written in one line as YAML, such as `{kind: literal}`.
func LoadReward(arg string) (harness.Reward, error) {
	b, name := []byte(arg), "--reward"
	if !strings.HasPrefix(strings.TrimSpace(arg), "{") {
		var err error
		name = arg
		if b, err = readFile(arg); err != nil {
			return harness.Reward{}, fmt.Errorf("%w: reward %q: want a file, or one line such as {kind: literal}: %w", ErrConfig, arg, err)
		}
	}
	var r Reward
	if err := decode(name, b, &r); err != nil {
		return harness.Reward{}, err
	}
	noun := r.Noun()
	if _, err := reward.New(noun); err != nil {
		return harness.Reward{}, fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	}
	return noun, nil
}

// decode reads YAML into v, which keeps what the text leaves out. Unknown keys are errors with their place.
func decode(name string, b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	if err := yaml.UnmarshalWithOptions(b, v, yaml.Strict()); err != nil {
		return complaint(name, b, err, v)
	}
	return nil
}

// place is where a key stands in a file: file:line:column, or the file where it does not.
func place(name string, b []byte, key string) string {
	path, err := yaml.PathString("$." + key)
	if err != nil {
		return name
	}
	node, err := path.ReadNode(bytes.NewReader(b))
	if err != nil || node.GetToken() == nil {
		return name
	}
	at := node.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", name, at.Line, at.Column)
}

// validate checks the words of a campaign file, so that a wrong one is named with its place.
func (c *Campaign) validate(name string, b []byte) error {
	if _, err := harness.ParseTarget(c.Target); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, place(name, b, "target"), err)
	}
	if names := strategy.Names(); !slices.Contains(names, c.Optimizer) {
		return fmt.Errorf("%w: %s: optimizer %q is not known; want one of %s", ErrConfig, place(name, b, "optimizer"), c.Optimizer, strings.Join(names, ", "))
	}
	if c.Reward != nil {
		if _, err := reward.New(c.Reward.Noun()); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrConfig, place(name, b, "reward"), err)
		}
	}
	return nil
}

// Settings returns the campaign's settings as the scheduler stores them.
func (c *Campaign) Settings() (scheduler.Settings, error) {
	s := scheduler.Settings{
		Budget: scheduler.Budget{WallSeconds: time.Duration(c.Budget.Wall).Seconds(), Evaluations: c.Budget.Evaluations, DeviceSeconds: c.Budget.DeviceSeconds},
		Target: c.TargetSpeedup, Optimizer: c.Optimizer, Probes: c.Probes, InFlight: c.InFlight, Racing: c.Racing, RemeasureShare: c.RemeasureShare,
		Confirm: scheduler.ConfirmSettings{Gain: c.Confirm.Gain, Power: c.Confirm.Power, Alpha: c.Confirm.Alpha, AARounds: c.Confirm.AARounds,
			MinRounds: c.Confirm.MinRounds, MaxRounds: c.Confirm.MaxRounds, Share: c.Confirm.Share},
		OverdueSeconds: time.Duration(c.Overdue).Seconds(), ReplayReserve: c.Budget.ReplayReserve, Limits: c.Limits.noun(),
	}
	if c.Target != harness.TargetCPU.String() { // nothing profiles C
		s.ProfileEvery = c.ProfileEvery
	}
	var err error
	if s.Transfer, err = c.TransferSettings(); err != nil {
		return s, err
	}
	if err := s.Validate(); err != nil {
		where := c.File
		if where == "" {
			where = "campaign " + c.Name
		}
		return s, fmt.Errorf("%w: %s: %w", ErrConfig, where, err)
	}
	return s, nil
}

// StructureFiles returns the campaign's own structure files, its globs expanded, sorted.
func (c *Campaign) StructureFiles() ([]string, error) {
	var out []string
	for _, pattern := range c.Structures {
		if !filepath.IsAbs(pattern) && c.File != "" {
			pattern = filepath.Join(filepath.Dir(c.File), pattern)
		}
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("%w: structures: %q names no file", ErrConfig, pattern)
		}
		out = append(out, found...)
	}
	sort.Strings(out)
	return out, nil
}
