package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"ridgepoint/configs/expr"
)

// Configuration is one assignment of a structure's parameters, by name.
type Configuration = map[string]expr.Value

// BuildOptions are the person's build settings for one target together with what parameters chose within them.
type BuildOptions struct {
	Arch         string   `json:"arch"`
	Features     []string `json:"features,omitempty"`
	MaxRegisters int      `json:"maxrregcount,omitempty"`
	FastMath     bool     `json:"fast_math"`
	Std          string   `json:"std,omitempty"`
	Flags        []string `json:"flags,omitempty"`
	IncludeDirs  []string `json:"include_dirs,omitempty"`
	IncludeHash  string   `json:"include_hash,omitempty"` // SHA-256 over the contents of IncludeDirs
}

// Candidate is a structure with a configuration and build options for one target and arch.
type Candidate struct {
	Structure     *Structure    `json:"structure"`
	Configuration Configuration `json:"configuration"`
	Target        Target        `json:"target"`
	Options       BuildOptions  `json:"options"`
}

// candidateIDVersion goes into every id: change it when the meaning of the hashed fields changes.
const candidateIDVersion = 1

// ID returns the candidate's content id: a SHA-256 in hex over exactly the structure's digest, its launch plan (which a task's
// default launch may supply), the configuration, the target and the build options. IncludeDirs count by content, not by path.
func (c *Candidate) ID() string {
	options := c.Options
	options.IncludeDirs = nil
	b, err := json.Marshal(struct {
		Version       int           `json:"version"`
		Structure     string        `json:"structure"`
		Launches      []Launch      `json:"launches"`
		Configuration Configuration `json:"configuration"`
		Target        Target        `json:"target"`
		Options       BuildOptions  `json:"options"`
	}{candidateIDVersion, c.Structure.Digest, c.Structure.Launches, c.Configuration, c.Target, options})
	if err != nil {
		panic(fmt.Sprintf("harness: candidate cannot be hashed: %v", err)) // values were checked when the structure was loaded
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Build is a compiled artifact with its resource use and diagnostics. It is content-addressed: Key is the cache key over
// source, macros, options, concrete arch, toolchain version and include contents; Artifact is the SHA-256 of the bytes.
type Build struct {
	Key         string           `json:"key"`
	Artifact    string           `json:"artifact"`
	SizeBytes   int64            `json:"size_bytes"`
	Toolchain   string           `json:"toolchain"` // "gcc 12.2.0", "nvrtc 13.0"
	Command     []string         `json:"command"`   // as run, paths scrubbed
	Kernels     []KernelResource `json:"kernels,omitempty"`
	Diagnostics []Diagnostic     `json:"diagnostics,omitempty"`
	Cached      bool             `json:"cached"`
	TookSeconds float64          `json:"took_seconds"`
}

// KernelResource is what the compiler reports of one kernel (GPU targets).
type KernelResource struct {
	Name              string `json:"name"`
	Registers         int    `json:"registers"`
	StaticSharedBytes int    `json:"static_shared_bytes"`
	SpillStoreBytes   int    `json:"spill_store_bytes"`
	SpillLoadBytes    int    `json:"spill_load_bytes"`
	LocalBytes        int    `json:"local_bytes"`
}

// Diagnostic is one message of a compiler. Line and Column are 1-based in the structure's source; 0 when unknown.
type Diagnostic struct {
	Severity string `json:"severity"` // error or warning
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Message  string `json:"message"`
	Source   string `json:"source,omitempty"` // the offending line
}
