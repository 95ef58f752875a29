package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"

	"ridgepoint/harness"
)

// environment is everything that a command may read of its surroundings.
type environment struct {
	args   []string
	getenv func(string) string
	// hideFunc keeps a variable from the processes that are started from now on; getenv still has it. nil: nothing is hidden.
	hideFunc func(name string)
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	// harnessFunc opens what judges kernels, and returns how to close it; nil: the real one. Tests script it.
	harnessFunc func(ctx context.Context, c harnessConfig) (harness.Harness, func() error, error)
}

// hide keeps variables that hold secrets from compilers, runners, profilers and whatever else is started.
func (env environment) hide(names ...string) {
	for _, name := range names {
		if env.hideFunc != nil {
			env.hideFunc(name)
		}
	}
}

// The exit codes, as the README lists them.
const (
	exitOK       = 0 // done
	exitVerdict  = 1 // the kernel, task or check did not pass
	exitUsage    = 2 // bad input: arguments, task, structure or config file
	exitInfra    = 3 // something is missing or broken on this machine
	exitStopped  = 4 // interrupted; the message says how to resume
	exitInternal = 70
)

// cli is the command line; each subcommand has its own file.
type cli struct {
	Run       runCmd       `cmd:"" help:"Search for a faster kernel: a campaign on this machine, its winner confirmed and replayed."`
	Resume    resumeCmd    `cmd:"" help:"Go on with a campaign that was stopped or killed."`
	Ls        lsCmd        `cmd:"" help:"List the campaigns of a store."`
	Report    reportCmd    `cmd:"" help:"Show what a campaign found, and why the winner won; --html writes a page."`
	Replay    replayCmd    `cmd:"" help:"Build and measure a campaign's winner again: fresh process, empty cache, new seeds."`
	Export    exportCmd    `cmd:"" help:"Write a campaign's winner with a driver that checks and times it without Ridgepoint."`
	Rescore   rescoreCmd   `cmd:"" help:"Rank a campaign's candidates under another reward, from the stored runtimes."`
	Diff      diffCmd      `cmd:"" help:"Compare two records: what they were made of, and where one is slower."`
	Doctor    doctorCmd    `cmd:"" help:"Say what this machine can do, and the command that installs what is missing."`
	Eval      evalCmd      `cmd:"" help:"Judge one kernel: compile, verify, measure against the baseline, and say what is wrong with it."`
	Check     checkCmd     `cmd:"" help:"Ask whether a task would let a wrong kernel pass, or a right one fail."`
	Baseline  baselineCmd  `cmd:"" help:"Measure a task's baseline on this machine, external ones beside it, and keep them."`
	Calibrate calibrateCmd `cmd:"" help:"Run a kernel that is known to be right and propose tolerances."`
	Compare   compareCmd   `cmd:"" help:"Put campaigns, or groups of repeats, side by side: best so far, cost, failures, with intervals."`
	Prompt    promptCmd    `cmd:"" help:"Print what the author model would be asked now; --exchanges writes a recording."`
	Why       whyCmd       `cmd:"" help:"Say why a trial was run: the choice with its numbers, its lineage, its outcome."`
	Ctl       ctlCmd       `cmd:"" help:"Steer a running campaign: pause, go, stop, inject FILE, pin or drop STRUCTURE, revive DIRECTION, budget."`
	Dev       devCmd       `cmd:"" help:"Tools for trying Ridgepoint out."`
	Bench     benchCmd     `cmd:"" help:"Measure parts of Ridgepoint."`
	Brute     bruteCmd     `cmd:"" help:"Measure every configuration of a structure and record the space."`
	Selftest  selftestCmd  `cmd:"" help:"Run a whole campaign on kernels with a planted optimum and check that it is found."`
	Version   versionCmd   `cmd:"" help:"Print the version of this binary and how it was built."`
	Scheduler schedulerCmd `cmd:"" help:"Run campaigns over a fleet, without workers of its own."`
	Batch     batchCmd     `cmd:"" help:"Run many campaigns as one night, with a total budget, a deadline and an order."`
	Worker    workerCmd    `cmd:"" help:"Serve a fleet from this machine: compile candidates, measure on its devices."`
	Fleet     fleetCmd     `cmd:"" help:"Show who is in the fleet and what each does."`
	Drain     drainCmd     `cmd:"" help:"Take a host out of the fleet without losing work."`
	Profile   profileCmd   `cmd:"" help:"Say where a kernel's time goes."`
}

// exitError is an error with the exit code that it ends the process with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// run parses the arguments, runs one command and returns its exit code. It never exits.
func run(ctx context.Context, env environment) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("ridgepoint"), kong.Description("Finds the fastest GPU kernel while you sleep."),
		kong.Writers(env.stdout, env.stderr), kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(env), kong.KindMapper(reflect.Uint64, kong.MapperFunc(unsigned)))
	if err != nil {
		fmt.Fprintf(env.stderr, "ridgepoint: %v\n", err)
		return exitInternal
	}
	if len(env.args) == 0 {
		_, _ = parser.Parse([]string{"--help"}) // it prints, and asks for an exit
		return exitUsage
	}
	parsed, err := parser.Parse(env.args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "ridgepoint: %v\n", err)
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		var ee *exitError
		if errors.As(err, &ee) {
			fmt.Fprintf(env.stderr, "ridgepoint: %v\n", ee.err)
			return ee.code
		}
		fmt.Fprintf(env.stderr, "ridgepoint: %v\n", err)
		return exitInfra
	}
	return exitOK
}

// unsigned reads a whole number that is not negative, and says so of one that is.
func unsigned(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return errors.New("want a whole number after it")
	}
	v, err := strconv.ParseUint(fmt.Sprint(token.Value), 10, 64)
	if err != nil {
		return fmt.Errorf("want a whole number that is not negative, got %q", fmt.Sprint(token.Value))
	}
	target.SetUint(v)
	return nil
}
