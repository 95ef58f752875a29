package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/feedback"
	"ridgepoint/harness/judge"
	"ridgepoint/harness/rules"
	"ridgepoint/harness/task"
	"ridgepoint/harness/toolchain/cc"
)

// evalCmd judges one kernel: rules, compile, verify, measure beside the task's baseline, feedback.
type evalCmd struct {
	Task string `arg:"" help:"The task: a shipped name (softmax_2d), a task file, or a folder with a task.yaml."`
	File string `arg:"" help:"The structure file; a file without a header is launched by the task's default_launch."`

	Setup  bool     `help:"Install what is missing (a C compiler) through the system's package manager, showing what is run."`
	JSON   bool     `name:"json" help:"Print the whole report as JSON."`
	Detail bool     `help:"Print what the feedback folds away, too."`
	Param  []string `placeholder:"NAME=VALUE" sep:"none" help:"Set a parameter of the structure; may be given many times. The rest keep their defaults."`
	Stage  string   `enum:"search,first,confirm,replay" default:"search" help:"How thoroughly to verify: ${enum}."`
	Seed   uint64   `default:"1" help:"Inputs, poison and hidden sizes follow from it."`
	CC     string   `name:"cc" placeholder:"PATH" help:"The C compiler; default: $$CC, else the first of gcc, clang and cc."`
	Rounds int      `default:"0" help:"Interleave this many rounds with the baseline, as a confirmation does."`

	Processes *int `help:"On a card: measure in this many fresh processes and pool their samples (default: 3, without --rounds). A process keeps an offset of up to 0.2 us."`

	AllowReduced bool `help:"Run a C source that is not shipped even where this machine cannot make the full sandbox."`
}

// Run prints the feedback and a table of sizes. A kernel that does not pass ends with exit code 1.
func (e evalCmd) Run(ctx context.Context, env environment) error {
	q, err := e.request()
	if err != nil {
		return err
	}
	if err := e.prepare(ctx, env, q.Candidate.Target); err != nil {
		return err
	}
	j, err := newJudge(env, e.compiler(env), e.AllowReduced)
	if err != nil {
		return err
	}
	r, err := e.judge(ctx, j, q)
	if err = errors.Join(err, j.Close()); err != nil {
		return evalError(err)
	}
	if err := e.print(env.stdout, q, r); err != nil {
		return err
	}
	if !r.Fault.Measured() {
		return &exitError{exitVerdict, fmt.Errorf("%s: %s: %s", e.File, r.Fault, r.Reason)}
	}
	return nil
}

// evalError gives an error its exit code: a wrong task file and a baseline at fault are input, the rest is this machine.
func evalError(err error) error {
	var wrong *task.Error
	var rival *judge.RivalError
	if errors.As(err, &wrong) {
		return &exitError{exitUsage, wrong} // file and place first
	}
	if errors.As(err, &rival) {
		return &exitError{exitUsage, err}
	}
	if errors.Is(err, context.Canceled) {
		return &exitError{exitStopped, errors.New("interrupted; run the command again")}
	}
	return &exitError{exitInfra, err}
}

// request loads the task and the structure and makes the candidate with the baseline beside it.
func (e evalCmd) request() (*harness.Request, error) {
	q, err := e.load()
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return q, nil
}

func (e evalCmd) load() (*harness.Request, error) {
	loaded, err := task.Loader{Shipped: tasks.FS}.Load(e.Task)
	if err != nil {
		return nil, err
	}
	t := loaded.Task
	s, err := task.LoadStructure(e.File, t, harness.TargetInvalid)
	if err != nil {
		return nil, err
	}
	for _, v := range rules.Check(t, s) {
		if v.Rule == rules.Kernel && v.Refuse { // launch and code do not fit together: the file is wrong, not the kernel
			return nil, &task.Error{File: e.File, Line: v.Line, Column: v.Column, Reason: v.Reason, Remedy: v.Remedy}
		}
	}
	s.Shipped = isShipped(s.Digest)
	config := harness.Configuration{}
	for _, assignment := range e.Param {
		name, v, err := task.ParseAssignment(s, assignment)
		if err != nil {
			return nil, err
		}
		config[name] = v
	}
	c, err := task.NewCandidate(t, s, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.File, err)
	}
	b, err := task.Baseline(t, s.Target)
	if err != nil {
		return nil, err
	}
	b.Shipped = loaded.Shipped
	base, err := task.NewCandidate(t, b, nil)
	if err != nil {
		return nil, fmt.Errorf("baseline of %s: %w", t.Name, err)
	}
	processes, err := e.processes(c)
	if err != nil {
		return nil, err
	}
	return &harness.Request{Task: t, Candidate: c, Rivals: []harness.Rival{{Role: "baseline", Candidate: base}},
		Plan: harness.Plan{Stage: harness.Stage(e.Stage), Seed: e.Seed, Rounds: e.Rounds, Processes: processes, FreshCache: e.Stage == string(harness.StageReplay)}}, nil
}

// evalProcesses is in how many processes a card is measured where nobody says; mostProcesses take an hour or so.
const (
	evalProcesses = 3
	mostProcesses = 1000
)

// processes is in how many processes the candidate is measured; 0: in one, as rounds and the cpu are.
func (e evalCmd) processes(c *harness.Candidate) (int, error) {
	cpu := c.Target == harness.TargetCPU
	switch {
	case e.Rounds < 0:
		return 0, fmt.Errorf("--rounds %d: want 0 or more", e.Rounds)
	case e.Processes == nil && (e.Rounds > 0 || cpu || c.Options.Arch == device.Emulated):
		return 0, nil
	case e.Processes == nil:
		return evalProcesses, nil
	case *e.Processes < 1 || *e.Processes > mostProcesses:
		return 0, fmt.Errorf("--processes %d: want 1 to %d", *e.Processes, mostProcesses)
	case e.Rounds > 0:
		return 0, errors.New("--processes and --rounds: rounds compare within one process; leave one of the two out")
	case cpu:
		return 0, errors.New("--processes is for kernels of a card; leave it out")
	default:
		return *e.Processes, nil
	}
}

// isShipped reports whether a source of this digest is embedded in the binary.
func isShipped(digest string) bool {
	found := false
	_ = fs.WalkDir(tasks.FS, ".", func(path string, d fs.DirEntry, err error) error { // an embedded tree has no errors
		if err == nil && !d.IsDir() && !found {
			b, err := fs.ReadFile(tasks.FS, path)
			found = err == nil && digestOf(b) == digest
		}
		return nil
	})
	return found
}

func (e evalCmd) compiler(env environment) string {
	if e.CC != "" {
		return e.CC
	}
	return env.getenv("CC")
}

// prepare sees to a compiler for C candidates, installing one where the person asked for it.
func (e evalCmd) prepare(ctx context.Context, env environment, target harness.Target) error {
	if target != harness.TargetCPU {
		return nil
	}
	_, err := cc.Find(ctx, e.compiler(env), cc.Config{})
	if err == nil {
		return nil
	}
	switch {
	case !errors.Is(err, cc.ErrNoCompiler):
		return &exitError{exitInfra, err}
	case e.CC != "":
		return &exitError{exitUsage, fmt.Errorf("--cc: %w", err)}
	case e.compiler(env) != "":
		return &exitError{exitInfra, fmt.Errorf("the environment variable CC: %w", err)}
	}
	if !e.Setup {
		return &exitError{exitInfra, fmt.Errorf("%w: run `%s`, or this command with --setup", err, remedy(needCC))}
	}
	if err := installNeed(ctx, env, needCC); err != nil {
		return err
	}
	if _, err := cc.Find(ctx, "", cc.Config{}); err != nil {
		return &exitError{exitInfra, fmt.Errorf("after the installation: %w", err)}
	}
	return nil
}

// newJudge makes the judge that commands share: caches in the person's cache folder, locks and children in the temporary one.
func newJudge(env environment, compiler string, reduced bool, targets ...judge.Target) (*judge.Judge, error) {
	pool, err := inputMemory(env)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	targets = append([]judge.Target{gpuTarget(env, reduced), hipTarget(env, reduced, 0)}, targets...) // a card that is named takes its place
	j, err := judge.New(judge.Config{PoolBytes: pool, CacheDir: cacheFolder(env), RunDir: runFolder(env), Compiler: compiler, ReducedSandbox: reduced, Version: buildVersion(), Targets: targets,
		Log: zerolog.New(env.stderr).Level(zerolog.WarnLevel)})
	if err != nil {
		return nil, &exitError{exitInfra, err}
	}
	return j, nil
}

// inputMemory is $RIDGEPOINT_INPUT_MEMORY in bytes, how much of inputs and expected values a process keeps from candidate to
// candidate; 0 where it is not set: the harness takes a sixteenth of the memory, within bounds.
func inputMemory(env environment) (int64, error) {
	text := env.getenv("RIDGEPOINT_INPUT_MEMORY")
	if text == "" {
		return 0, nil
	}
	for unit, shift := range map[string]int{"MiB": 20, "GiB": 30} {
		number, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 20); err == nil && n > 0 {
			return int64(n) << shift, nil
		}
	}
	return 0, fmt.Errorf("RIDGEPOINT_INPUT_MEMORY is %q: want a whole number of MiB or GiB, such as 512MiB or 2GiB", text)
}

// cacheFolder is $RIDGEPOINT_CACHE, else ridgepoint in the user's cache folder.
func cacheFolder(env environment) string {
	if dir := env.getenv("RIDGEPOINT_CACHE"); dir != "" {
		return dir
	}
	if dir := env.getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "ridgepoint")
	}
	if home := env.getenv("HOME"); home != "" {
		return filepath.Join(home, ".cache", "ridgepoint")
	}
	return filepath.Join(runFolder(env), "cache")
}

// runFolder is one folder per user of this host, in $TMPDIR: who times on the cpu must meet the others at its lock.
func runFolder(env environment) string {
	dir := env.getenv("TMPDIR")
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "ridgepoint-"+strconv.Itoa(os.Getuid()))
}

func (e evalCmd) judge(ctx context.Context, j *judge.Judge, q *harness.Request) (*harness.Report, error) {
	b, r, err := j.Compile(ctx, q)
	if err != nil || b == nil {
		return r, err
	}
	return j.Benchmark(ctx, q, b)
}

func (e evalCmd) print(w io.Writer, q *harness.Request, r *harness.Report) error {
	if e.JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	var text strings.Builder
	text.WriteString(feedback.Text(q.Task, r, 1))
	if len(r.Sizes) > 0 {
		writeSizes(&text, r)
	}
	if e.Detail {
		writeDetail(&text, r)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
