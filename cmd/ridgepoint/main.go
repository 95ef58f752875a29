// Command ridgepoint searches for the fastest GPU kernel while people sleep. This file is the only place that reads
// os.Args and the environment, and the only one that exits.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"ridgepoint/harness/gpu"
	"ridgepoint/harness/runner"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/toolchain/nvrtc"
)

func main() {
	if sandbox.Main(os.Args[1:]) || runner.Main(os.Args[1:]) || nvrtc.Main(os.Args[1:]) || gpu.Main(os.Args[1:]) {
		return
	}
	os.Exit(untilSignal(func(ctx context.Context) int {
		return run(ctx, environment{args: os.Args[1:], getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	}))
}

// untilSignal runs work, whose context the first interrupt ends; it then stops cleanly. A second one has its default effect: it ends
// the process.
func untilSignal(work func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return work(ctx)
}
