package propose

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	directionRE = regexp.MustCompile(`(?im)^[\s*_#>-]*direction[\s*_]*[:=][\s*_` + "`" + `]*([A-Za-z][\w .-]{1,60})`)
	changeRE    = regexp.MustCompile(`(?im)^[\s*_#>-]*change[\s*_]*[:=][\s*_]*(.+)$`)
	whyRE       = regexp.MustCompile(`(?im)^[\s*_#>-]*(?:why|reason|rationale)[\s*_]*[:=][\s*_]*(.+)$`)
	ratioRE     = regexp.MustCompile(`(?im)^[\s*_#>-]*expect(?:ed)?(?:[ _](?:ratio|effect|speed-?up|gain|runtime))?[\s*_]*[:=][\s*_~≈]*(.+)$`)
	percentRE   = regexp.MustCompile(`(?i)^([\d.]+)\s*%\s*(?:\w+\s+)?(faster|less|lower|reduction|shorter|better|gain|improvement)?`)
	timesRE     = regexp.MustCompile(`(?i)^([\d.]+)\s*[x×]`)
	plainNumRE  = regexp.MustCompile(`^([\d.]+)`)
)

func directionOf(reply string) string {
	if m := directionRE.FindStringSubmatch(reply); m != nil {
		return directionName(m[1])
	}
	return ""
}

// expectation reads what a reply says of its effect, in the forms that models use: a ratio of run times, "1.3x", "20 % faster".
func expectation(reply string) Expectation {
	var e Expectation
	if m := changeRE.FindStringSubmatch(reply); m != nil {
		e.Change = clip(m[1], 300)
	}
	if m := whyRE.FindStringSubmatch(reply); m != nil {
		e.Why = clip(m[1], 600)
	}
	if m := ratioRE.FindStringSubmatch(reply); m != nil {
		e.Ratio = ratio(strings.TrimSpace(m[1]))
	}
	return e
}

func ratio(s string) float64 {
	number := func(re *regexp.Regexp) (float64, bool) {
		if m := re.FindStringSubmatch(s); m != nil {
			v, err := strconv.ParseFloat(m[1], 64)
			return v, err == nil && v > 0 && v < 1e4
		}
		return 0, false
	}
	if v, ok := number(percentRE); ok && v < 100 {
		return 1 - v/100
	}
	if v, ok := number(timesRE); ok {
		return 1 / v
	}
	if v, ok := number(plainNumRE); ok && !strings.Contains(s, "%") {
		return v
	}
	return 0
}

func clip(s string, runes int) string {
	r := []rune(strings.TrimSpace(s))
	if len(r) > runes {
		return string(r[:runes]) + "..."
	}
	return string(r)
}
