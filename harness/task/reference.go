package task

import (
	"errors"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/reference/torch"
)

// ReferenceNames are the names that a task's reference may use: tensors that it reads, scalars and dims.
func ReferenceNames(t *harness.Task) []string {
	var out []string
	for _, x := range t.Tensors {
		if x.Role != harness.RoleOut {
			out = append(out, x.Name)
		}
	}
	for _, s := range t.Scalars {
		out = append(out, s.Name)
	}
	return append(out, t.Dims...)
}

// checkReference parses the reference, so that a misspelt operator or input fails when the task is loaded.
func (d *taskDecoder) checkReference(n *node) {
	if strings.TrimSpace(n.text) == "" {
		d.fail(n, "write an expression over the inputs, e.g. torch.softmax(input, dim=-1)", "reference: is empty")
		return
	}
	_, err := torch.Parse(n.text, ReferenceNames(d.task))
	var te *torch.Error
	if err == nil || !errors.As(err, &te) {
		return
	}
	place := *n
	switch {
	case n.block > 0 && te.Line > 0:
		place.line = n.block + te.Line - 1
		place.column = te.Column + d.indentation(n.block)
	case te.Line == 1:
		place.column += te.Column - 1
		if n.quoted {
			place.column++
		}
	}
	d.fail(&place, "write it over the inputs with the operators of harness/reference/torch/ops.go", "reference: %s", te.Reason)
}

// indentation returns the blanks before the first line of a block of text.
func (d *taskDecoder) indentation(line int) int {
	for _, text := range d.lines[min(line-1, len(d.lines)):] {
		if trimmed := strings.TrimLeft(text, " "); trimmed != "" {
			return len(text) - len(trimmed)
		}
	}
	return 0
}

// WithReference returns a copy of a task with another reference text, digest included. A wrong text is an error.
func WithReference(t *harness.Task, text string) (*harness.Task, error) {
	if _, err := torch.Parse(text, ReferenceNames(t)); err != nil {
		return nil, err
	}
	c := *t
	c.Reference = harness.Reference{Expr: text}
	c.Digest = digest(&c)
	return &c, nil
}
