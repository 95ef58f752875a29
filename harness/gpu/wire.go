package gpu

import (
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/device"
	"ridgepoint/harness/measure"
	"ridgepoint/harness/verify"
)

// order is what the parent tells a child. Exactly one field is set.
type order struct {
	Open    *openOrder `json:"open,omitempty"`
	Helpers []byte     `json:"helpers,omitempty"`
	Peaks   bool       `json:"peaks,omitempty"` // measure the device's ceilings
	Bout    *boutOrder `json:"bout,omitempty"`
}

type openOrder struct {
	Library   string `json:"library"` // the driver's; "": the system's
	HIP       bool   `json:"hip,omitempty"`
	Monitor   string `json:"monitor"` // NVML's; "": the system's, "none": none
	Device    int    `json:"device"`
	LockDir   string `json:"lock_dir"`
	CacheDir  string `json:"cache_dir"` // of expected values; "": not kept
	PoolBytes int64  `json:"pool_bytes"`
	Version   string `json:"version"`
	Sandbox   string `json:"sandbox"`
}

type boutOrder struct {
	Request     *harness.Request     `json:"request"`
	Module      verify.Module        `json:"module"`
	Rivals      []measure.Contestant `json:"rivals,omitempty"`
	LaunchLimit time.Duration        `json:"launch_limit"`
}

// answer is what a child says.
type answer struct {
	Found  *device.Info      `json:"found,omitempty"`
	Ready  *readyAnswer      `json:"ready,omitempty"`
	Peaks  *cudaengine.Peaks `json:"peaks,omitempty"`
	Report *harness.Report   `json:"report,omitempty"`
	Rival  *rivalAnswer      `json:"rival,omitempty"`
	Error  string            `json:"error,omitempty"` // broken infrastructure
	Lost   bool              `json:"lost,omitempty"`  // the context is spoilt: replace this child
}

type readyAnswer struct {
	Driver string `json:"driver"`
}

// rivalAnswer is a judge.RivalError on the wire.
type rivalAnswer struct {
	Role     string           `json:"role"`
	Fault    harness.Fault    `json:"fault"`
	Reason   string           `json:"reason"`
	Evidence harness.Evidence `json:"evidence"`
}
