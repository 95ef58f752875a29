// Package workers holds the nouns between schedulers and workers: wire payloads with their versions, limits and
// signatures, queue names, task ids and the replay guard. It does no I/O. The subpackages do the work:
//
//	queue    carries payloads over asynq (real Redis or an embedded one); the only importer of asynq
//	compile  the compile handler over a harness
//	gpu      the device handler over a harness
//	blobs    content-addressed task bundles, sources and artifacts
//	limits   permits by lease, token buckets
//	fleet    who is there, heartbeats, drain
//	spool    outcomes on a worker's own disk until the scheduler has acknowledged them
//	observe  metrics, health pages
//
// One evaluation's way, with what is written before what:
//
//	scheduler: plan in its store ─> blobs ─> queue compile:<target>
//	compile worker: build ─> artifact blob ─> queue gpu:<arch> ─> done mark ─> acknowledge      (a bad kernel: as below)
//	device worker: report ─> spool (fsync) ─> queue results:<scheduler> ─> done mark ─> acknowledge
//	scheduler: store (first final outcome wins) ─> acknowledge ─> ack list of the worker's spool
//	worker: spool entry dropped
//
// Every step may happen twice after a crash; none may be lost. Task ids are made of (campaign, trial, attempt, stage), so
// that the second enqueue of a step meets the first.
package workers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// Kind says what a payload asks for.
type Kind uint8

// The kinds of payload. The zero Kind is invalid.
const (
	KindInvalid Kind = iota
	KindCompile      // apply rules and build, then pass on
	KindGPU          // verify and measure on a device (cpu devices too)
	KindOutcome      // what came of it, on its way to the scheduler
)

var kindNames = [...]string{"invalid", "compile", "gpu", "outcome"}

// String returns the kind's name as headers and queues spell it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) {
	if k == KindInvalid || int(k) >= len(kindNames) {
		return nil, fmt.Errorf("payload kind %d has no name", uint8(k))
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, name := range kindNames {
		if i > 0 && name == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("payload kind %q is not known; want one of %v", b, kindNames[1:])
}

// MaxBytes is the largest payload of the kind, frame included. Sources and artifacts are blobs, so an evaluation is small;
// an outcome holds raw samples of every size.
func (k Kind) MaxBytes() int {
	switch k {
	case KindCompile, KindGPU:
		return 1 << 20
	case KindOutcome:
		return 4 << 20
	default:
		return 0
	}
}

// CompileQueue names the queue of compile work for a target: "compile:cuda".
func CompileQueue(t harness.Target) string { return "compile:" + t.String() }

// DeviceQueue names the queue of device work: "gpu:sm_90", and for cpu archs, whose features are part of what runs where,
// "gpu:<arch>-<first 8 hex digits of a SHA-256 over the sorted features>".
func DeviceQueue(t harness.Target, arch string, features []string) string {
	if t != harness.TargetCPU || len(features) == 0 {
		return "gpu:" + arch
	}
	sum := sha256.Sum256([]byte(strings.Join(features, ",")))
	return "gpu:" + arch + "-" + hex.EncodeToString(sum[:4])
}

// ResultsQueue names the queue on which a scheduler's outcomes come back.
func ResultsQueue(schedulerID string) string { return "results:" + schedulerID }

// The priorities of a campaign map to three queues of each kind: work of a higher one is taken first.
const (
	suffixHigh = ":high"
	suffixLow  = ":low"
)

// PriorityQueue returns the queue that work of a priority goes to: the base queue for 0, ":high" above, ":low" below.
func PriorityQueue(base string, priority int) string {
	switch {
	case priority > 0:
		return base + suffixHigh
	case priority < 0:
		return base + suffixLow
	default:
		return base
	}
}

// Priorities returns the queues of a base with asynq's ranks: higher is taken first.
func Priorities(base string) map[string]int {
	return map[string]int{base + suffixHigh: 3, base: 2, base + suffixLow: 1}
}

// TaskID names one step of one attempt: the same step enqueued twice has the same id.
func TaskID(key scheduler.TrialKey, k Kind) string {
	return url.QueryEscape(key.Campaign) + ":" + strconv.FormatInt(key.Trial, 10) + ":" + strconv.Itoa(key.Attempt) + ":" + k.String()
}

// ParseTaskID reads what TaskID writes.
func ParseTaskID(id string) (scheduler.TrialKey, Kind, error) {
	bad := func(what string) (scheduler.TrialKey, Kind, error) {
		return scheduler.TrialKey{}, KindInvalid, fmt.Errorf("task id %.80q: %s; want campaign:trial:attempt:kind", id, what)
	}
	parts := strings.Split(id, ":")
	if len(parts) != 4 {
		return bad("not four parts")
	}
	campaign, err := url.QueryUnescape(parts[0])
	if err != nil || campaign == "" {
		return bad("bad campaign")
	}
	trial, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return bad("bad trial")
	}
	attempt, err := strconv.Atoi(parts[2])
	if err != nil {
		return bad("bad attempt")
	}
	var k Kind
	if err := k.UnmarshalText([]byte(parts[3])); err != nil {
		return bad("bad kind")
	}
	key := scheduler.TrialKey{Campaign: campaign, Trial: trial, Attempt: attempt}
	if TaskID(key, k) != id {
		return bad("not in its one spelling")
	}
	return key, k, nil
}
