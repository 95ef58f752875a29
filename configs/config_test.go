package configs_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs"
	"ridgepoint/scheduler"
)

func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(tp reflect.Type, at string)
	walk = func(tp reflect.Type, at string) {
		for i := range tp.NumField() {
			key := strings.Split(tp.Field(i).Tag.Get("yaml"), ",")[0]
			if key == "-" {
				continue
			}
			if !strings.Contains(string(text), key+":") {
				t.Errorf("%s%s is not in default.yaml", at, key)
			}
			if ft := tp.Field(i).Type; ft.Kind() == reflect.Struct {
				walk(ft, at+key+".")
			}
		}
	}
	walk(reflect.TypeFor[configs.Config](), "")
}

func TestShippedCampaignsAreValid(t *testing.T) {
	t.Parallel()
	names := configs.Campaigns()
	if len(names) == 0 {
		t.Fatal("no campaign is shipped")
	}
	for _, name := range names {
		c, err := configs.Load(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.Campaign.Settings(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.Campaign.Name != name {
			t.Errorf("campaign %s calls itself %q", name, c.Campaign.Name)
		}
	}
	c, err := configs.Load(configs.DefaultCampaign)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := c.Campaign.Settings(); s.Budget.WallSeconds != 120 || s.Confirm.Gain != 0.01 || !s.Racing {
		t.Errorf("the default campaign came out as %+v", s)
	}
}

func TestCampaignFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
	}{
		"changes one key":  {"budget: {wall: 90s}\nseed: 3\n", ""},
		"unknown key":      {"budgets: {wall: 90s}\n", "budgets"},
		"unknown sub key":  {"budget: {walls: 90s}\n", "walls"},
		"no unit":          {"budget: {wall: 90}\n", "90s"},
		"wrong type":       {"probes: many\n", "probes"},
		"no limit":         {"budget: {wall: 0}\n", "never ends"},
		"out of range":     {"confirm: {power: 2}\n", "confirm.power"},
		"too few rounds":   {"confirm: {aa_rounds: 1}\n", "aa_rounds"},
		"duplicate":        {"seed: 1\nseed: 2\n", "seed"},
		"not yaml":         {"a: [\n", "1"},
		"reward, own kind": {"reward: {kind: literal}\n", ""},
		"reward, wrong":    {"reward: {kinds: literal}\n", "kinds"},
		"transfer, auto":   {"transfer: auto\n", ""},
		"transfer, off":    {"transfer: off\n", ""},
		"transfer, quoted": {"transfer: \"off\"\n", ""},
		"transfer, file":   {"transfer: nothing.jsonl\n", "nothing.jsonl"},
		"transfer, list":   {"transfer: [auto, nothing.jsonl]\n", "nothing.jsonl"},
		"transfer, mixed":  {"transfer: [off, a.jsonl]\n", "beside others"},
		"transfer, map":    {"transfer: {a: b}\n", "want auto, off"},
		"limits":           {"limits: {gpu: 2, compile: {permits: 4, rate: 10, burst: 20}}\n", ""},
		"limits, class":    {"limits: {gpus: 2}\n", "gpus"},
		"limits, key":      {"limits: {gpu: {permit: 2}}\n", "permit"},
		"limits, word":     {"limits: {gpu: many}\n", "rate: 10"},
		"limits, negative": {"limits: {gpu: -1}\n", "limits.gpu: permits"},
		"limits, rate":     {"limits: {compile: {rate: -2}}\n", "limits.compile: rate"},
		"limits, burst":    {"limits: {compile: {rate: 2, burst: 0.5}}\n", "limits.compile: burst"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "night.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			cfg, err := configs.Load(file)
			if err == nil {
				_, err = cfg.Campaign.Settings()
			}
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if cfg.Campaign.Task != "softmax_2d" || cfg.Campaign.Confirm.Power != 0.9 || cfg.Campaign.Name != "night" {
					t.Errorf("defaults were lost: %+v", cfg.Campaign)
				}
				return
			}
			if !errors.Is(err, configs.ErrConfig) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrConfig with %q", err, c.want)
			}
		})
	}
	if c, err := configs.Load("softmax-cuda"); err != nil || time.Duration(c.Campaign.Budget.Wall) != 12*time.Hour {
		t.Errorf("softmax-cuda: %+v, %v", c, err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "night.yaml")
	if err := os.WriteFile(file, []byte("limits: {gpu: 2, compile: {rate: 0.5}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cfg.Campaign.Settings()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]scheduler.Limit{"gpu": {Permits: 2, Burst: 1}, "compile": {Rate: 0.5, Burst: 1}}
	if !reflect.DeepEqual(s.Limits, want) {
		t.Errorf("limits %+v; want %+v", s.Limits, want)
	}
	c, err := configs.Default()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Campaign.Settings(); err != nil || s.Limits != nil {
		t.Errorf("limits by default %+v %v; want none", s.Limits, err)
	}
}

func TestLoadReward(t *testing.T) {
	t.Parallel()
	r, err := configs.LoadReward("{kind: mean_std_fail, std_weight: 0}")
	if err != nil {
		t.Fatal(err)
	}
	if r.StdWeight != 0 || r.FailWeight != 0.05 || r.Per != "ratio_to_baseline" {
		t.Errorf("got %+v", r)
	}
	for _, bad := range []string{"{kind: fast}", "{kind: expr}", "/no/such/file", "{kind: literal, weight: 1}"} {
		if _, err := configs.LoadReward(bad); !errors.Is(err, configs.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", bad, err)
		}
	}
}

func TestTransferIsReadAsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b.jsonl.gz", "a.jsonl.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]scheduler.TransferSettings{
		"":                                 {Auto: true},
		"transfer: off\n":                  {},
		"transfer: '*.gz'\n":               {Files: []string{filepath.Join(dir, "a.jsonl.gz"), filepath.Join(dir, "b.jsonl.gz")}},
		"transfer: ['*.gz', b.jsonl.gz]\n": {Files: []string{filepath.Join(dir, "a.jsonl.gz"), filepath.Join(dir, "b.jsonl.gz")}}, // named twice
		"transfer: [auto, b.jsonl.gz]\n":   {Auto: true, Files: []string{filepath.Join(dir, "b.jsonl.gz")}},
	} {
		file := filepath.Join(dir, "night.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := configs.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.Campaign.Settings()
		if err != nil || !reflect.DeepEqual(s.Transfer, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, s.Transfer, err, want)
		}
	}
}
