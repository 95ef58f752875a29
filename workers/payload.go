package workers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ridgepoint/harness"
	"ridgepoint/scheduler"
)

// Evaluation is the body of compile and gpu payloads: a scheduler.Job with its large parts replaced by the digests of their
// blobs. Build, Artifact and Compiled are set once the candidate is compiled.
type Evaluation struct {
	Key        scheduler.TrialKey `json:"key"`
	Scheduler  string             `json:"scheduler"`
	Purpose    scheduler.Purpose  `json:"purpose"`
	Task       string             `json:"task"` // blob digest of the task's JSON
	TaskDigest string             `json:"task_digest"`
	Candidate  Candidate          `json:"candidate"`
	Rivals     []Rival            `json:"rivals,omitempty"`
	Plan       harness.Plan       `json:"plan"`
	Strikes    int                `json:"strikes,omitempty"`
	Weight     float64            `json:"weight"`
	Priority   int                `json:"priority"`
	Avoid      []string           `json:"avoid,omitempty"`
	DeadlineMS int64              `json:"deadline_ms"` // Redis's clock
	Build      *harness.Build     `json:"build,omitempty"`
	// CompileSeconds and QueueSeconds are what the compile hop took, for the report's split.
	CompileSeconds float64 `json:"compile_seconds,omitempty"`
	QueueSeconds   float64 `json:"queue_seconds,omitempty"`
}

// Candidate is a harness.Candidate whose structure is a blob.
type Candidate struct {
	Structure     string                `json:"structure"` // blob digest of the structure's JSON
	Shipped       bool                  `json:"shipped,omitempty"`
	Configuration harness.Configuration `json:"configuration"`
	Target        harness.Target        `json:"target"`
	Options       harness.BuildOptions  `json:"options"`
}

// Rival is a harness.Rival whose structure is a blob.
type Rival struct {
	Role      string    `json:"role"`
	Candidate Candidate `json:"candidate"`
}

// Result is the body of an outcome payload.
type Result struct {
	Outcome scheduler.Outcome `json:"outcome"`
	// Spool is the id of the worker's spool, to which the scheduler acknowledges; empty: nobody waits.
	Spool string `json:"spool,omitempty"`
	// Fence is the fencing number of the lease that the measurement held, 0 without one.
	Fence int64 `json:"fence,omitempty"`
}

// Blob is a content-addressed piece of an evaluation.
type Blob struct {
	Digest string // SHA-256 of Data, hex
	Data   []byte
}

// NewBlob addresses data by its content.
func NewBlob(data []byte) Blob {
	sum := sha256.Sum256(data)
	return Blob{Digest: hex.EncodeToString(sum[:]), Data: data}
}

// Pack turns a job into its wire form and the blobs it refers to. Deadline is the job's on Redis's clock.
func Pack(j *scheduler.Job, deadline time.Time) (*Evaluation, []Blob, error) {
	if j.Request.Task == nil || j.Request.Candidate == nil || j.Request.Candidate.Structure == nil {
		return nil, nil, fmt.Errorf("pack %+v: a job needs a task and a candidate with its structure", j.Key)
	}
	task, err := json.Marshal(j.Request.Task)
	if err != nil {
		return nil, nil, fmt.Errorf("pack %+v: task: %w", j.Key, err)
	}
	p := packer{seen: map[string]bool{}}
	e := &Evaluation{Key: j.Key, Scheduler: j.Scheduler, Purpose: j.Purpose, Task: p.add(task), TaskDigest: j.Request.Task.Digest,
		Candidate: p.candidate(j.Request.Candidate), Plan: j.Request.Plan, Weight: j.Weight, Priority: j.Priority, Avoid: j.Avoid, Strikes: j.Strikes, DeadlineMS: deadline.UnixMilli()}
	for _, r := range j.Request.Rivals {
		e.Rivals = append(e.Rivals, Rival{Role: r.Role, Candidate: p.candidate(r.Candidate)})
	}
	if p.err != nil {
		return nil, nil, fmt.Errorf("pack %+v: %w", j.Key, p.err)
	}
	return e, p.blobs, nil
}

type packer struct {
	blobs []Blob
	seen  map[string]bool
	err   error
}

func (p *packer) add(data []byte) string {
	b := NewBlob(data)
	if !p.seen[b.Digest] {
		p.seen[b.Digest] = true
		p.blobs = append(p.blobs, b)
	}
	return b.Digest
}

func (p *packer) candidate(c *harness.Candidate) Candidate {
	if c == nil || c.Structure == nil {
		p.err = errors.Join(p.err, errors.New("a rival has no structure"))
		return Candidate{}
	}
	text, err := json.Marshal(c.Structure)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("structure %s: %w", c.Structure.Name, err))
		return Candidate{}
	}
	return Candidate{Structure: p.add(text), Shipped: c.Structure.Shipped, Configuration: c.Configuration, Target: c.Target, Options: c.Options}
}

// Digests returns the blobs that the evaluation needs before it can be unpacked, in order of use.
func (e *Evaluation) Digests() []string {
	out := []string{e.Task, e.Candidate.Structure}
	for _, r := range e.Rivals {
		out = append(out, r.Candidate.Structure)
	}
	return out
}

// Unpack rebuilds the job. Tasks and structures come from the two functions, which map a blob digest to the decoded noun and
// may share them between jobs: nouns are never changed after loading. Shipped says of which digests the binary holds the source.
func (e *Evaluation) Unpack(task func(digest string) (*harness.Task, error), structure func(digest string) (*harness.Structure, error),
	shipped func(digest string) bool) (*scheduler.Job, error) {
	t, err := task(e.Task)
	if err != nil {
		return nil, err
	}
	if t.Digest != e.TaskDigest {
		return nil, refuse(ReasonMalformed, "task blob has digest %.16q, the payload says %.16q", t.Digest, e.TaskDigest)
	}
	unpack := func(c Candidate) (*harness.Candidate, error) {
		s, err := structure(c.Structure)
		if err != nil {
			return nil, err
		}
		own := *s
		own.Shipped = c.Shipped && shipped != nil && shipped(s.Digest)
		return &harness.Candidate{Structure: &own, Configuration: c.Configuration, Target: c.Target, Options: c.Options}, nil
	}
	j := &scheduler.Job{Key: e.Key, Scheduler: e.Scheduler, Purpose: e.Purpose, Weight: e.Weight, Priority: e.Priority, Avoid: e.Avoid, Strikes: e.Strikes,
		Deadline: time.UnixMilli(e.DeadlineMS), Request: harness.Request{Task: t, Plan: e.Plan}}
	if j.Request.Candidate, err = unpack(e.Candidate); err != nil {
		return nil, err
	}
	for _, r := range e.Rivals {
		c, err := unpack(r.Candidate)
		if err != nil {
			return nil, err
		}
		j.Request.Rivals = append(j.Request.Rivals, harness.Rival{Role: r.Role, Candidate: c})
	}
	return j, nil
}

// Validate reports what no scheduler would have planned.
func (e *Evaluation) Validate() error {
	if err := validKey(e.Key); err != nil {
		return err
	}
	for _, c := range append([]Candidate{e.Candidate}, rivalCandidates(e.Rivals)...) {
		if _, err := c.Target.MarshalText(); err != nil || c.Target == harness.TargetInvalid {
			return fmt.Errorf("target %q is not one; want cpu, cuda or hip", c.Target)
		}
		for name, v := range c.Configuration {
			if !v.IsValid() {
				return fmt.Errorf("parameter %.40q has no value", name)
			}
		}
	}
	return nil
}

func rivalCandidates(rivals []Rival) []Candidate {
	out := make([]Candidate, len(rivals))
	for i, r := range rivals {
		out[i] = r.Candidate
	}
	return out
}

// Validate reports what no worker would have sent.
func (r *Result) Validate() error {
	if err := validKey(r.Outcome.Key); err != nil {
		return err
	}
	_, err := r.Outcome.Report.Fault.MarshalText()
	return err
}

func validKey(k scheduler.TrialKey) error {
	if k.Campaign == "" || k.Trial < 0 || k.Attempt < 1 {
		return fmt.Errorf("trial key %+v: want a campaign, a trial from 0 and an attempt from 1", k)
	}
	return nil
}
