package main

import (
	"fmt"
	"strconv"
	"strings"

	"ridgepoint/scheduler"
	permits "ridgepoint/workers/limits"
	"ridgepoint/workers/queue"
)

// fleetLimits are what a process sets for the whole fleet, by class.
type fleetLimits struct {
	permits map[string]int          // 0 takes a limit away
	rates   map[string]permits.Rate // the zero Rate takes a rate away
}

// limitsFor are the limits of campaigns that run together, the strictest of each, with those of the flag laid over them.
func limitsFor(campaigns []*scheduler.Campaign, flag string) (fleetLimits, error) {
	out := fleetLimits{permits: map[string]int{}, rates: map[string]permits.Rate{}}
	for _, c := range campaigns {
		for class, l := range c.Settings.Limits {
			if have, ok := out.permits[class]; l.Permits > 0 && (!ok || l.Permits < have) {
				out.permits[class] = l.Permits
			}
			if have, ok := out.rates[class]; l.Rate > 0 && (!ok || l.Rate < have.PerSecond) {
				out.rates[class] = permits.Rate{PerSecond: l.Rate, Burst: l.Burst}
			}
		}
	}
	return out, out.parse(flag)
}

// parse lays the flag --limits over: "gpu=2,compile=4@10/20" is two permits for gpu, four for compile, ten compiles a second and
// twenty at once after a pause. What a part leaves out stays as it was; 0 takes a limit away.
func (f fleetLimits) parse(text string) error {
	if text == "" {
		return nil
	}
	wrong := func(part string) error {
		return &exitError{exitUsage, fmt.Errorf("--limits %q: %q: want CLASS=PERMITS, CLASS=PERMITS@RATE/BURST or CLASS=@RATE/BURST with the class gpu or compile, such as gpu=2,compile=4@10/20; 0 takes a limit away", text, part)}
	}
	for part := range strings.SplitSeq(text, ",") {
		class, value, ok := strings.Cut(part, "=")
		most, rate, rated := strings.Cut(value, "@")
		if !ok || class != queue.ClassGPU && class != queue.ClassCompile || most == "" && !rated {
			return wrong(part)
		}
		if most != "" {
			n, err := strconv.Atoi(most)
			if err != nil || n < 0 {
				return wrong(part)
			}
			f.permits[class] = n
		}
		if rated {
			r, ok := rateOf(rate)
			if !ok {
				return wrong(part)
			}
			f.rates[class] = r
		}
	}
	return nil
}

// rateOf reads RATE or RATE/BURST, in a second; 0 is no limit.
func rateOf(text string) (permits.Rate, bool) {
	rate, burst, both := strings.Cut(text, "/")
	r := permits.Rate{Burst: 1}
	var err error
	if r.PerSecond, err = strconv.ParseFloat(rate, 64); err != nil {
		return r, false
	}
	if both {
		if r.Burst, err = strconv.ParseFloat(burst, 64); err != nil {
			return r, false
		}
	}
	if r.PerSecond == 0 {
		return permits.Rate{}, true
	}
	return r, r.Validate() == nil
}
