package proposer

import (
	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// point reads a point's values as the structure's parameters have them; the others are at their defaults.
func point(st *harness.Structure, values map[string]string) (harness.Configuration, error) {
	c := harness.Configuration{}
	for name, v := range st.Default {
		c[name] = v
	}
	for _, name := range sortedKeys(values) {
		name, v, err := task.ParseAssignment(st, name+"="+values[name])
		if err != nil {
			return nil, err
		}
		c[name] = v
	}
	return c, nil
}
