package gp_test

import (
	"context"
	"testing"

	"ridgepoint/optimizer/replay"
	"ridgepoint/optimizer/strategy"
)

func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"gemm_RTX3090", "conv_A100", "conv8_RTX3090"} {
		b.Run(name, func(b *testing.B) {
			r, err := replay.Load("/work/shared/spaces/" + name + ".jsonl.gz")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s, _ := strategy.New("gp", r.Space, strategy.Options{Seed: 1})
				if _, err := replay.Run(context.Background(), r, s, replay.Conditions{Budget: 220}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
