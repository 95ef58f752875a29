package propose

import "fmt"

// Step is the one thing that a prompt asks for.
type Step string

// The steps.
const (
	StepNew     Step = "new_direction" // a structure unlike those that exist
	StepRefine  Step = "refine"        // a better version of one structure
	StepCross   Step = "cross"         // the best of two structures in one
	StepRepair  Step = "repair"        // a draft mended
	StepSuggest Step = "suggest"       // a configuration of an existing structure
	// StepRegenerate is a known winner written again from what is remembered of it, after a campaign.
	StepRegenerate Step = "regenerate"
)

// Validate refuses unknown steps.
func (s Step) Validate() error {
	switch s {
	case StepNew, StepRefine, StepCross, StepRepair, StepSuggest, StepRegenerate:
		return nil
	default:
		return fmt.Errorf("step %q is not known; want new_direction, refine, cross, repair or suggest", string(s))
	}
}
