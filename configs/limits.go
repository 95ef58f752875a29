package configs

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"ridgepoint/scheduler"
)

// Limits is the campaign file's limits section: what the whole fleet may do while the campaign runs.
type Limits struct {
	Compile Limit `yaml:"compile"`
	GPU     Limit `yaml:"gpu"`
}

// Limit bounds one class of work. It is written as a number of permits, or with permits, rate and burst.
type Limit struct {
	Permits int     `yaml:"permits"`
	Rate    float64 `yaml:"rate"`
	Burst   float64 `yaml:"burst"`
}

// UnmarshalYAML reads `4` or `{permits: 4, rate: 10, burst: 20}`.
func (l *Limit) UnmarshalYAML(b []byte) error {
	if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		*l = Limit{Permits: n, Burst: 1}
		return nil
	}
	type plain Limit // without this method
	p := plain{Burst: 1}
	if !strings.Contains(string(b), ":") {
		return errors.New("want a number of permits, or {permits: 4, rate: 10, burst: 20}")
	}
	if err := yaml.UnmarshalWithOptions(b, &p, yaml.Strict()); err != nil {
		return err
	}
	*l = Limit(p)
	return nil
}

// noun returns what is limited, by the workers' names of the classes; nil where nothing is.
func (l Limits) noun() map[string]scheduler.Limit {
	var out map[string]scheduler.Limit
	for class, one := range map[string]Limit{"compile": l.Compile, "gpu": l.GPU} {
		if one.Permits == 0 && one.Rate == 0 {
			continue
		}
		if out == nil {
			out = map[string]scheduler.Limit{}
		}
		out[class] = scheduler.Limit{Permits: one.Permits, Rate: one.Rate, Burst: one.Burst}
	}
	return out
}
