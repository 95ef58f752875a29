package baselines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ridgepoint/harness"
)

// externalLimit bounds an external baseline: torch alone takes ten seconds to load.
const externalLimit = 15 * time.Minute

// Run runs an external baseline's command line, by the shell, and reads what it prints: a line "DIM=VALUE,DIM=VALUE MICROSECONDS"
// for each size, as configs/tasks/torch_baseline.py writes them. Every one of sizes must be among them.
func Run(ctx context.Context, command string, sizes []harness.Size) (Measured, error) {
	ctx, cancel := context.WithTimeout(ctx, externalLimit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return Measured{}, fmt.Errorf("run the external baseline %q: %w: %.400s", command, err, lastLine(errs.String()))
	}
	times, err := parse(out.String(), sizes)
	if err != nil {
		return Measured{}, fmt.Errorf("read the external baseline %q: %w", command, err)
	}
	return Measured{Times: times, At: time.Now().UTC()}, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// parse reads the printed lines; those that do not begin with one of the sizes are passed over.
func parse(text string, sizes []harness.Size) ([]Time, error) {
	found := map[string]float64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 2 || !strings.Contains(fields[0], "=") {
			continue
		}
		us, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || !(us > 0) || math.IsInf(us, 0) {
			return nil, fmt.Errorf("size %.80q has the time %.40q: want microseconds above 0", fields[0], fields[1])
		}
		found[fields[0]] = us
	}
	var out []Time
	var missing []string
	for _, s := range sizes {
		us, ok := found[s.String()]
		if !ok {
			missing = append(missing, s.String())
			continue
		}
		out = append(out, Time{s, us})
	}
	if len(missing) > 0 {
		return nil, errors.New("it prints no line for " + strings.Join(missing, ", ") + "; a line is SIZE MICROSECONDS, such as \"" + missing[0] + " 12.5\"")
	}
	return out, nil
}
