package torch

import (
	"context"
	"testing"
)

// BenchmarkReferences times the references of the shipped tasks at sizes of a real night, in elements of output a second.
func BenchmarkReferences(b *testing.B) {
	matrix := func(rows, cols int) *Array {
		a := &Array{Shape: []int{rows, cols}, Data: make([]float64, rows*cols)}
		for i := range a.Data {
			a.Data[i] = float64(i%1000)/100 - 5
		}
		return a
	}
	x := matrix(2048, 2048)
	small := matrix(512, 512)
	image := x.view([]int{1, 1, 2048, 2048})
	kernel := matrix(3, 3).view([]int{1, 1, 3, 3})
	for _, c := range []struct {
		name, text string
		values     Values
	}{
		{"add", "x + y", Values{"x": x, "y": x}},
		{"softmax", "torch.softmax(x, dim=-1)", Values{"x": x}},
		{"sum", "x.sum(-1)", Values{"x": x}},
		{"transpose", "x.t()", Values{"x": x}},
		{"matmul512", "x @ y", Values{"x": small, "y": small}},
		{"conv2d", "torch.conv2d(x, y, padding=1)", Values{"x": image, "y": kernel}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := Parse(c.text, []string{"x", "y"})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := p.Run(context.Background(), c.values, []string{"out"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
