// Command ridgepoint searches for the fastest GPU kernel while people sleep. This file is the only place that reads
// os.Args and the environment, and the only one that exits.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
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
	var own variables
	os.Exit(untilSignal(func(ctx context.Context) int {
		return run(ctx, environment{args: os.Args[1:], getenv: own.get, hideFunc: own.hide, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	}))
}

// variables are the environment, of which some are kept from the processes that this one starts.
type variables struct {
	mu     sync.Mutex
	hidden map[string]string
}

func (v *variables) get(name string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if value, ok := v.hidden[name]; ok {
		return value
	}
	return os.Getenv(name)
}

// hide takes a variable out of the environment that children inherit.
func (v *variables) hide(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	value, ok := os.LookupEnv(name)
	if !ok || os.Unsetenv(name) != nil { // its only error is a name that no variable can have
		return
	}
	if v.hidden == nil {
		v.hidden = map[string]string{}
	}
	v.hidden[name] = value
}

// untilSignal runs work, whose context the first interrupt ends; it then stops cleanly. A second one has its default effect: it ends
// the process.
func untilSignal(work func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return work(ctx)
}
