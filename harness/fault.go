package harness

import "fmt"

// Fault says what stopped a candidate, or None. A fault is a result, not an error; only Infra is an error.
type Fault uint8

// The faults, in the order of the stages that find them. The zero Fault is invalid.
const (
	FaultInvalid   Fault = iota
	FaultNone            // measured
	FaultRules           // a rule of the task or the static check was broken
	FaultCompile         // the compiler refused, or ran past its limit
	FaultLaunch          // the driver refused the launch
	FaultCrash           // the runner died
	FaultTimeout         // the runner hung and was killed
	FaultIncorrect       // verification failed
	FaultNoisy           // spread over the limit, or throttled, after two retries; the value is kept and flagged
	FaultInfra           // Redis, disk, blob, toolchain or device missing or unhealthy
)

var faultNames = [...]string{"invalid", "none", "rules", "compile", "launch", "crash", "timeout", "incorrect", "noisy", "infra"}

// String returns the fault's name as records and reports spell it.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// Measured reports whether a candidate with this fault has a value: None, or Noisy.
func (f Fault) Measured() bool { return f == FaultNone || f == FaultNoisy }

// Feasible reports what the optimizer is told: false means "infeasible". Infra tells it nothing and is not asked here.
func (f Fault) Feasible() bool { return f.Measured() }

// MarshalText writes the fault's name.
func (f Fault) MarshalText() ([]byte, error) {
	if f == FaultInvalid || int(f) >= len(faultNames) {
		return nil, fmt.Errorf("fault %d has no name", uint8(f))
	}
	return []byte(f.String()), nil
}

// UnmarshalText reads a fault's name.
func (f *Fault) UnmarshalText(b []byte) error {
	for i, name := range faultNames {
		if i > 0 && name == string(b) {
			*f = Fault(i)
			return nil
		}
	}
	return fmt.Errorf("fault %q is not known; want one of %v", b, faultNames[1:])
}
