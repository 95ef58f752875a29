// Package fleet keeps who is there: every process beats once a second into Redis with what it serves, what it does and how
// it fares; the answer brings Redis's clock, the epoch of its data, whether the host is to drain, blobs that somebody misses
// and acknowledged outcomes. One message a second and process, whatever the load. It must not know how work is carried.
package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Live is how long after its last beat a member still counts as there.
const Live = 5 * time.Second

// keep is how long a member that is gone is still shown.
const keep = 24 * time.Hour

// State says what a member or a device is up to.
type State string

// The states.
const (
	StateWorking     State = "working"
	StateDraining    State = "draining"    // finishes what it has in hand and takes no more
	StateDrained     State = "drained"     // has nothing in hand
	StateQuarantined State = "quarantined" // a device that failed its health probe
	StateGone        State = "gone"        // no beat for longer than Live; set by List
)

// Member is one process of the fleet as it describes itself.
type Member struct {
	ID        string     `json:"id"` // host/pid/nonce
	Host      string     `json:"host"`
	PID       int        `json:"pid"`
	Version   string     `json:"version"`
	Kinds     []string   `json:"kinds"` // scheduler, compile, gpu
	Targets   []string   `json:"targets,omitempty"`
	Queues    []string   `json:"queues,omitempty"` // base queues that it takes from
	Slots     int        `json:"compile_slots,omitempty"`
	Devices   []Device   `json:"devices,omitempty"`
	Campaigns []Campaign `json:"campaigns,omitempty"`
	Tasks     []string   `json:"tasks,omitempty"` // ids in hand
	State     State      `json:"state"`
	Counts    Counts     `json:"counts"`
	PerMinute float64    `json:"per_minute"` // steps finished over the last minute
	Spool     int        `json:"spool"`      // outcomes not yet acknowledged
	StartedMS int64      `json:"started_ms"` // Redis's clock
	SeenMS    int64      `json:"seen_ms"`    // last beat; set by List
	AgeMS     int64      `json:"age_ms"`     // since then; set by List
}

// Device is one device of a member.
type Device struct {
	ID        string           `json:"id"` // unique on its host
	Name      string           `json:"name"`
	Arch      string           `json:"arch"`
	Queues    []string         `json:"queues"` // base queues that it takes from
	State     State            `json:"state"`
	Reason    string           `json:"reason,omitempty"`
	Task      string           `json:"task,omitempty"` // id in hand
	SinceMS   int64            `json:"since_ms,omitempty"`
	Done      int64            `json:"done"`
	PerMinute float64          `json:"per_minute"`
	Faults    map[string]int64 `json:"faults,omitempty"`
	HeldShare float64          `json:"held_share"` // of the time since start in which it was held
	BusyShare float64          `json:"busy_share"` // event-measured
}

// Campaign is a campaign that a scheduler runs, for the others' share of the fleet.
type Campaign struct {
	ID       string  `json:"id"`
	Queue    string  `json:"queue"` // base queue of its device work
	Weight   float64 `json:"weight"`
	Priority int     `json:"priority"`
	InFlight int     `json:"in_flight"`
}

// Counts are totals since a member started.
type Counts struct {
	Compiled int64            `json:"compiled"`
	Measured int64            `json:"measured"`
	Faults   map[string]int64 `json:"faults,omitempty"`
	Infra    int64            `json:"infra"`
	Refused  int64            `json:"refused"`
	Again    int64            `json:"again"` // steps that had been done before and were dropped
}

// Slots returns how many devices of live, working members serve a base queue.
func Slots(members []Member, queue string) int {
	n := 0
	for _, m := range members {
		if m.State != StateWorking {
			continue
		}
		for _, d := range m.Devices {
			if slices.Contains(d.Queues, queue) && d.State == StateWorking {
				n++
			}
		}
	}
	return n
}

// Others reports whether a live, working device other than those in avoid serves the queue.
func Others(members []Member, queue string, avoid []string) bool {
	for _, m := range members {
		if m.State != StateWorking {
			continue
		}
		for _, d := range m.Devices {
			if slices.Contains(d.Queues, queue) && d.State == StateWorking && !slices.Contains(avoid, m.Host+"/"+d.ID) {
				return true
			}
		}
	}
	return false
}

// The search for parts in which weights can be kept: with one device and the weights 1 and 3, one and three trials in line give
// the shares that one trial each would not.
const (
	mostParts   = 16   // in line for fewer devices, at most, so that proposals stay informed
	closeEnough = 0.05 // of a share, relatively
)

// Capacity returns how many trials a campaign is due to have in line for a queue's slots, at least 1. Among campaigns of one
// priority they stand as the weights do, and so does what each gets done, as the queue takes them in turn. A lone campaign is due
// all slots. Lower priorities get what the queue's order leaves them, and are counted as if alone, so that they wait in line and
// start at once when the higher ones end.
func Capacity(members []Member, queue, campaign string, weight float64, priority int) int {
	slots := max(1, Slots(members, queue))
	weights := []float64{weight}
	for _, m := range members {
		for _, c := range m.Campaigns {
			if c.Queue == queue && c.ID != campaign && sign(c.Priority) == sign(priority) && c.Weight > 0 {
				weights = append(weights, c.Weight)
			}
		}
	}
	if len(weights) == 1 || weight <= 0 {
		return slots
	}
	due, least := 1, math.Inf(1)
	for parts := slots; parts <= max(slots, mostParts); parts++ {
		all, off := divide(weights, parts)
		if off < least {
			due, least = all[0], off
		}
		if off <= closeEnough {
			break
		}
	}
	return due
}

// divide rounds the weights' shares of parts to whole ones, at least 1, and says how far off the farthest share then is, relatively.
func divide(weights []float64, parts int) (all []int, off float64) {
	total, sum := 0.0, 0
	for _, w := range weights {
		total += w
	}
	for _, w := range weights {
		n := max(1, int(math.Round(w/total*float64(parts))))
		all, sum = append(all, n), sum+n
	}
	for i, w := range weights {
		off = max(off, math.Abs(float64(all[i])/float64(sum)/(w/total)-1))
	}
	return all, off
}

// sign is all that the queues know of a priority.
func sign(priority int) int { return cmp.Compare(priority, 0) }

func decode(text string, seenMS, nowMS int64) (Member, error) {
	var m Member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, fmt.Errorf("fleet member: %w", err)
	}
	m.SeenMS, m.AgeMS = seenMS, nowMS-seenMS
	if m.AgeMS > Live.Milliseconds() {
		m.State = StateGone
		m.Tasks = nil
		for i := range m.Devices {
			m.Devices[i].State = StateGone
			m.Devices[i].Task = ""
		}
	}
	return m, nil
}

func byHost(a, b Member) int {
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}
