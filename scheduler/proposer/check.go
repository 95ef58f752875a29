package proposer

import (
	"errors"
	"fmt"

	"ridgepoint/harness"
	"ridgepoint/harness/rules"
	"ridgepoint/harness/task"
	"ridgepoint/llm/propose"
	"ridgepoint/scheduler/loop"
)

// Known is what a reply of a campaign is held against, without parents.
func Known(t *harness.Task, target harness.Target) propose.Known {
	k := propose.Known{Target: target.String()}
	for _, x := range t.Tensors {
		k.Names = append(k.Names, x.Name)
	}
	for _, x := range t.Scalars {
		k.Names = append(k.Names, x.Name)
	}
	k.Names = append(k.Names, t.Dims...)
	if l := t.DefaultLaunch; l != nil {
		k.DefaultKernel, k.DefaultArgs = l.Kernel, l.Args
	}
	k.CheckFunc = func(source string) []propose.Complaint { return Check(t, target, source) }
	return k
}

// Check says what is wrong with a draft's source before anything is compiled: whether it loads, whether its default may be launched at
// every size, and the task's rules.
func Check(t *harness.Task, target harness.Target, source string) []propose.Complaint {
	st, err := task.ParseStructure("draft", source, t, target)
	if err != nil {
		return []propose.Complaint{complaint("structure", err)}
	}
	if list := rules.Check(t, st); len(list) > 0 {
		if v, refused := rules.Refused(list); refused {
			return []propose.Complaint{{Code: "rules", Line: v.Line, Text: fmt.Sprintf("rule %s: %s: %s", v.Rule, v.Reason, v.Remedy)}}
		}
	}
	if _, err := task.NewCandidate(t, st, nil); err != nil {
		return []propose.Complaint{complaint("default", err)}
	}
	if len(st.Params) > 0 {
		if _, err := loop.SpaceOf(t, st); err != nil {
			return []propose.Complaint{complaint("parameters", err)}
		}
	}
	return nil
}

func complaint(code string, err error) propose.Complaint {
	var fault *task.Error
	if errors.As(err, &fault) {
		text := fault.Reason
		if fault.Remedy != "" {
			text += ": " + fault.Remedy
		}
		return propose.Complaint{Code: code, Line: fault.Line, Text: text}
	}
	return propose.Complaint{Code: code, Text: err.Error()}
}
