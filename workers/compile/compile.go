// Package compile is the compile worker's handler: it asks a harness to apply the rules and build, and brings the artifact so
// that it can travel to a device on another host. It must not know how work arrives.
package compile

import (
	"context"
	"fmt"
	"time"

	"ridgepoint/harness"
)

// Artifacts reads the bytes of builds that the harness on this host has made.
type Artifacts interface {
	// Artifact returns the bytes whose SHA-256 is b.Artifact.
	Artifact(b *harness.Build) ([]byte, error)
}

// Handler compiles candidates.
type Handler struct {
	Harness harness.Harness
	// Artifacts is nil when devices share this host's cache; then builds do not travel.
	Artifacts Artifacts
}

// Built is what came of a compile: a Build with its bytes, or a Report that says why there is none.
type Built struct {
	Build  *harness.Build
	Data   []byte // nil when builds do not travel
	Report *harness.Report
	Took   time.Duration
}

// Compile builds one candidate. An error is broken infrastructure.
func (h *Handler) Compile(ctx context.Context, r *harness.Request) (*Built, error) {
	started := time.Now()
	build, report, err := h.Harness.Compile(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	out := &Built{Build: build, Took: time.Since(started)}
	if build == nil {
		if report == nil {
			return nil, fmt.Errorf("compile: the harness gave neither a build nor a report for candidate %.12s", r.Candidate.ID())
		}
		if report.Fault == harness.FaultInfra {
			return nil, fmt.Errorf("compile: %s", report.Reason)
		}
		out.Report = report
		return out, nil
	}
	if h.Artifacts != nil && build.Artifact != "" {
		if out.Data, err = h.Artifacts.Artifact(build); err != nil {
			return nil, fmt.Errorf("compile: read artifact %.12s: %w", build.Artifact, err)
		}
	}
	return out, nil
}
