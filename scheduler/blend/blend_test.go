package blend_test

import (
	"math"
	"testing"

	"ridgepoint/scheduler/blend"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "auto", "auto": "auto", "off": "off", "fixed: 0.3": "fixed: 0.3", "{fixed: 0.3}": "fixed: 0.3", "fixed:1": "fixed: 1"} {
		if c, err := blend.Parse(text); err != nil || c.String() != want {
			t.Errorf("Parse(%q) = %v, %v; want %s", text, c, err, want)
		}
	}
	for _, text := range []string{"on", "fixed", "fixed: 1.5", "fixed: x", "auto: 1", "fixed: -1"} {
		if _, err := blend.Parse(text); err == nil {
			t.Errorf("Parse(%q) is accepted", text)
		}
	}
}

func inputs(mode string) blend.Inputs {
	c, err := blend.Parse(mode)
	if err != nil {
		panic(err)
	}
	return blend.Inputs{Config: c, TryCostSeconds: 4, TuneSeconds: 50, DraftSeconds: 50, Arms: []blend.Arm{
		{Kind: blend.KindTune, Structure: 1, Gain: 0.001, CostSeconds: 1, Asked: 5},
		{Kind: blend.KindTune, Structure: 2, Gain: 0.03, CostSeconds: 2, Asked: 8},
		{Kind: blend.KindTry, Draft: 7}}}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		mode   string
		change func(*blend.Inputs)
		want   blend.Kind
		number int // structure, or draft
	}{
		{"drafts that never paid lose to good tuning", "auto", func(in *blend.Inputs) {
			for range 40 {
				in.Past = append(in.Past, blend.Past{CostSeconds: 4})
			}
		}, blend.KindTune, 2},
		{"drafts that pay win", "auto", func(in *blend.Inputs) {
			in.SinceGainSeconds = 30
			for range 10 {
				in.Past = append(in.Past, blend.Past{Gain: 0.3, CostSeconds: 4})
			}
		}, blend.KindTry, 7},
		{"stagnation turns to drafts", "auto", func(in *blend.Inputs) { in.SinceGainSeconds = 1000 }, blend.KindTry, 7},
		{"a recent gain turns to tuning", "auto", func(in *blend.Inputs) { in.SinceGainSeconds = 0; in.Arms[1].Gain = 0.2 }, blend.KindTune, 2},
		{"drafts have a least share", "auto", func(in *blend.Inputs) { in.DraftSeconds, in.Arms[1].Gain = 0, 10 }, blend.KindTry, 7},
		{"and a largest one", "auto", func(in *blend.Inputs) {
			in.TuneSeconds, in.DraftSeconds, in.SinceGainSeconds = 10, 90, 1e6
			in.Past = []blend.Past{{Gain: 0.9, CostSeconds: 1}}
		}, blend.KindTune, 2},
		{"off tries nothing", "off", nil, blend.KindTune, 2},
		{"off tries when nothing is left to tune", "off", func(in *blend.Inputs) { in.Arms = in.Arms[2:] }, blend.KindTry, 7},
		{"fixed, share used up", "fixed: 0.3", nil, blend.KindTune, 2},
		{"fixed, share open", "fixed: 0.6", nil, blend.KindTry, 7},
		{"a pinned structure is first", "auto", func(in *blend.Inputs) { in.Arms[0].Pinned = true }, blend.KindTune, 1},
		{"an injected draft is first", "off", func(in *blend.Inputs) { in.Arms[2].Pinned = true }, blend.KindTry, 7},
		{"the least asked gets its turn", "off", func(in *blend.Inputs) { in.Arms[0].Asked, in.Arms[1].Asked = 2, 10 }, blend.KindTune, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := inputs(tc.mode)
			if tc.change != nil {
				tc.change(&in)
			}
			got := blend.Queue(in)
			if c := got[0]; c.Kind != tc.want || c.Structure+c.Draft != tc.number {
				t.Errorf("first is %s of %d, want %s of %d; why %v", c.Kind, c.Structure+c.Draft, tc.want, tc.number, c.Why)
			}
			for _, c := range got {
				if math.Abs(c.Rate*c.CostSeconds-c.Gain) > 1e-9 && c.Why["explore"] == 0 || c.Why["per_second"] == 0 && c.Gain != 0 {
					t.Errorf("the numbers of %s do not fit together: %+v", c.Kind, c)
				}
			}
		})
	}
}

func TestNextAsk(t *testing.T) {
	t.Parallel()
	if a, _ := blend.NextAsk(blend.AskInputs{}); a != blend.AskNew {
		t.Errorf("with nothing measured: %s", a)
	}
	in := blend.AskInputs{Structures: 3, Tunable: true}
	in.Records[blend.AskRefine] = blend.Record{Asked: 5, Gain: 1}
	in.Records[blend.AskNew] = blend.Record{Asked: 5}
	in.Records[blend.AskCross] = blend.Record{Asked: 5}
	if a, _ := blend.NextAsk(in); a != blend.AskRefine {
		t.Errorf("refining pays: %s", a)
	}
	in.Records[blend.AskRefine] = blend.Record{Asked: 5}
	in.Stagnation = 1
	if a, _ := blend.NextAsk(in); a != blend.AskNew && a != blend.AskCross {
		t.Errorf("when nothing moves: %s, want a step that explores", a)
	}
	asked := map[blend.Ask]int{}
	for range 40 { // without any gain every kind gets its turn, suggestions the fewest
		a, _ := blend.NextAsk(in)
		asked[a]++
		in.Records[a].Asked++
		in.Stagnation = 0.3
	}
	for _, a := range blend.Asks {
		if asked[a] == 0 || asked[blend.AskSuggest] > asked[a] {
			t.Errorf("asks = %v", asked)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		uses, reply float64
		want        int
	}{{0, 3, 1}, {0.1, 3, 2}, {1, 3, 4}, {10, 30, 8}, {math.NaN(), 1, 1}} {
		if got := blend.Depth(tc.uses, tc.reply); got != tc.want {
			t.Errorf("Depth(%v, %v) = %d, want %d", tc.uses, tc.reply, got, tc.want)
		}
	}
}
