package torch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// odd holds arguments that no case of a working program has: scalars and empty tensors where a matrix is meant, numbers out
// of range, lists and words where a number is meant.
var odd = []string{
	"x", "img", "v", "torch.zeros(0, 3)", "torch.zeros(())", "s", "0", "-1", "7", "-9", "1 << 40", "float('nan')", "float('inf')",
	"True", "None", "[]", "[0]", "[2, -1]", "[-3, 1 << 33]", "(1, 2, 3)", "'text'", "slice", "v > 1",
}

// No operator panics, whatever it is given: every operator with every odd argument in every place, the places before it
// filled with something plausible.
func TestOddArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, not goroutines: left out with -short")
	}
	t.Parallel()
	for _, o := range table {
		params := strings.Fields(o.params)
		for place := range max(len(params), 1) + 1 {
			for _, first := range []string{"x", "img", "2", "torch.zeros(0, 3)", "[x, x]"} {
				for _, a := range odd {
					args := slices.Repeat([]string{"1"}, place)
					if place > 0 {
						args[0] = first
					}
					survives(t, fmt.Sprintf("torch.%s(%s)", o.name, strings.Join(append(args, a), ", ")))
					if place == 0 {
						break
					}
				}
			}
		}
	}
}

// Nor do the signs, indexing and attributes.
func TestOddOperands(t *testing.T) {
	t.Parallel()
	for _, a := range odd {
		for _, b := range odd {
			for _, sign := range []string{"+", "-", "*", "/", "//", "%", "**", "@", "<", "==", "&", "|", "^", "<<", ">>", "and", "in"} {
				survives(t, fmt.Sprintf("(%s) %s (%s)", a, sign, b))
			}
			for _, form := range []string{"(%s)[%s]", "(%s)[%s:]", "(%s)[:%s]", "(%s)[::%s]", "(%s)[..., %s]", "(%s)[None, %s]", "(%s)[:, %s]"} {
				survives(t, fmt.Sprintf(form, a, b))
			}
		}
		for _, form := range []string{"-(%s)", "~(%s)", "not (%s)", "(%s).T", "(%s).shape", "(%s).shape[0]", "(%s).t()", "(%s).item()", "len(%s)", "float(%s)", "int(%s)", "[e for e in %s]"} {
			survives(t, fmt.Sprintf(form, a))
		}
	}
}

// survives runs a text and fails the test when it panics; any result and any error will do.
func survives(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: panics: %v", text, r)
		}
	}()
	_, _ = run(t, text)
}
