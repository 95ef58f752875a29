//go:build linux

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
	"ridgepoint/harness/verify/verifytest"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) || Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func newEngine(t *testing.T, dir string) *Engine {
	t.Helper()
	e, err := New(Config{RunDir: dir, Reduced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// object compiles C with the system's compiler.
func object(t *testing.T, source string, options ...string) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc: install it (`ridgepoint doctor` prints the command)")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "k.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(cc, append(options, "-O2", "-shared", "-fPIC", "-o", filepath.Join(dir, "k.so"), file, "-lm")...).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return filepath.Join(dir, "k.so")
}

// open loads C source as the kernel of the adding task and binds it at a size.
func open(t *testing.T, e *Engine, source string, n int64, verifying bool, options ...string) (verify.Bench, *verify.Layout, *program) {
	t.Helper()
	tk := verifytest.Task(t, verifytest.Text)
	c := verifytest.Candidate(t, tk)
	p, err := e.Open(t.Context(), verify.Module{Path: object(t, source, options...), Candidate: c, Verifying: verifying})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() }) // closed again by some tests
	l, err := verify.NewLayout(tk, c, harness.Size{{Name: "n", Value: n}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Bind(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return b, l, p.(*program)
}

const adding = "void add(const float *a, const float *b, float *c, int n) { for (int i = 0; i < n; i++) c[i] = a[i] + b[i]; }"

func set(t *testing.T, l *verify.Layout) *verify.Set {
	t.Helper()
	s, err := verifytest.Pool().Get(t.Context(), l.Task, l.Size, verify.ScaleSpec, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The real device meets the contract that the one in memory does: a right kernel passes, launch by launch, in order.
func TestLaunches(t *testing.T) {
	t.Parallel()
	e := newEngine(t, t.TempDir())
	b, l, _ := open(t, e, adding, 3001, false)
	s := set(t, l)
	for n := range 3 {
		lap, found, err := verify.Shoot(t.Context(), b, l, s, verify.Aim{Shot: verify.Shot{Limit: 5 * time.Second, Protect: n == 1}, Launch: n + 1, Whole: true, Poison: uint64(n), Flush: n == 0})
		if err != nil {
			t.Fatal(err)
		}
		if lap.Kernels <= 0 || lap.Wall < lap.Kernels || lap.Busy <= 0 || len(found) != 1 || found[0].Elements != 3001 || found[0].MaxAbs > 1e-6 {
			t.Errorf("lap %+v, found %+v", lap, found)
		}
	}
	one, err := b.Launch(t.Context(), verify.Shot{Limit: 5 * time.Second, Repeats: 2000})
	if err != nil || one.Kernels < 50*time.Microsecond || one.Busy > 2*one.Kernels+time.Millisecond {
		t.Errorf("2000 launches: %+v, %v", one, err)
	}
}

// One process of a host measures at a time, and the lock goes with its holder.
func TestHoldExcludes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := newEngine(t, dir), newEngine(t, dir)
	release, err := first.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := second.Hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second holder got %v", err)
	}
	if got, want := second.Holder(), fmt.Sprintf("process %d (", os.Getpid()); !strings.HasPrefix(got, want) {
		t.Errorf("the holder is %q, want %s...", got, want)
	}
	release()
	if got := second.Holder(); got != "" {
		t.Errorf("the holder of a free lock is %q", got)
	}
	again, err := second.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
	for _, kind := range []bool{true, false} {
		if first.standby[kind] == nil {
			t.Errorf("no child stands by after an evaluation (verifying %v)", kind)
		}
	}
}

// What one child does ends with it: the next one on the same engine is well.
func TestNextIsUnaffected(t *testing.T) {
	t.Parallel()
	e := newEngine(t, t.TempDir())
	for name, c := range map[string]struct{ source, kind string }{
		"segfault": {"void add(const float *a, const float *b, float *c, int n) { *(volatile int *)0 = 1; }", verify.KindCrash},
		"exit":     {"#include <stdlib.h>\nvoid add(const float *a, const float *b, float *c, int n) { exit(0); }", verify.KindExit},
		"hang":     {"void add(const float *a, const float *b, float *c, int n) { for (;;) ; }", verify.KindTimeout},
		"thread dies": {"#include <pthread.h>\nstatic void *die(void *p) { *(volatile int *)0 = 1; return p; }\nvoid add(const float *a, const float *b, float *c, int n) " +
			"{ pthread_t t; pthread_create(&t, 0, die, 0); pthread_join(t, 0); }", verify.KindCrash},
		"past the guard": {"void add(const float *a, const float *b, float *c, int n) { for (long i = 0; i < 1 << 28; i++) c[i] = 1; }", verify.KindCrash},
	} {
		b, l, p := open(t, e, c.source, 100, true)
		_, _, err := verify.Shoot(t.Context(), b, l, set(t, l), verify.Aim{Shot: verify.Shot{Limit: 300 * time.Millisecond}, Whole: true})
		var stop *verify.Stop
		if !errors.As(err, &stop) || stop.Evidence.Kind != c.kind {
			t.Errorf("%s: %v, want kind %s", name, err, c.kind)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		if unix.Kill(-p.process.cmd.Process.Pid, 0) == nil {
			t.Errorf("%s: its process group lives on", name)
		}
	}
	b, l, _ := open(t, e, adding, 100, true)
	if _, _, err := verify.Shoot(t.Context(), b, l, set(t, l), verify.Aim{Shot: verify.Shot{Limit: 5 * time.Second}, Whole: true}); err != nil {
		t.Errorf("the next candidate: %v", err)
	}
}

// Two programs take turns on the same buffers; the one that waits is stopped.
func TestProgramsTakeTurns(t *testing.T) {
	t.Parallel()
	e := newEngine(t, t.TempDir())
	b1, l1, p1 := open(t, e, adding, 500, false)
	b2, l2, p2 := open(t, e, adding, 500, false)
	for range 3 {
		for _, x := range []struct {
			b verify.Bench
			l *verify.Layout
			p *program
			q *program
		}{{b1, l1, p1, p2}, {b2, l2, p2, p1}} {
			if _, _, err := verify.Shoot(t.Context(), x.b, x.l, set(t, x.l), verify.Aim{Shot: verify.Shot{Limit: 5 * time.Second}, Whole: true}); err != nil {
				t.Fatal(err)
			}
			var info unix.Siginfo // blocks until the child has stopped; -test.timeout ends a test that waits in vain
			if err := unix.Waitid(unix.P_PID, x.q.process.cmd.Process.Pid, &info, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each OpenMP thread has one core of its own, inside the sandbox too.
func TestThreadsAreBound(t *testing.T) {
	t.Parallel()
	e := newEngine(t, t.TempDir())
	if len(e.cores) < 2 {
		t.Skip("one core: nothing to bind")
	}
	const source = `#define _GNU_SOURCE
#include <sched.h>
void add(const float *a, const float *b, float *c, int n) {
#pragma omp parallel num_threads(2)
	{
		cpu_set_t s;
		sched_getaffinity(0, sizeof s, &s);
#pragma omp critical
		for (int i = 0; i < n && i < 64; i++) if (CPU_ISSET(i, &s)) c[i] += 1;
	}
}`
	b, l, p := open(t, e, source, 64, false, "-fopenmp")
	if err := b.Write(t.Context(), set(t, l)); err != nil {
		t.Fatal(err)
	}
	place := b.(*bench).outputs[0]
	floats := unsafe.Slice((*float32)(unsafe.Pointer(&b.(*bench).mem[place.Offset])), 64)
	clear(floats)
	if _, err := b.Launch(t.Context(), verify.Shot{Limit: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	bound := 0.0
	for _, core := range p.engine.cores[:2] {
		bound += float64(floats[core])
	}
	if bound != 2 || floats[p.engine.cores[0]] != 1 {
		t.Errorf("threads per core are %v, want one on each of the first two of %v", floats, p.engine.cores)
	}
}

// Two threads that want one core wait for it, and it is seen.
func TestWaitsAreSeen(t *testing.T) {
	t.Parallel()
	q := newQueues(os.Getpid())
	if _, ok := q.waited(); !ok {
		t.Skip("this kernel does not account for waits: it lacks CONFIG_SCHED_INFO")
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	first := 0
	for !set.IsSet(first) {
		first++
	}
	set.Zero()
	set.Set(first)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			runtime.LockOSThread() // not unlocked: the thread, bound to one core, ends with it
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				t.Error(err)
			}
			for start := time.Now(); time.Since(start) < 60*time.Millisecond; {
			}
			if _, wait, ok := newQueues(os.Getpid()).read(unix.Gettid()); !ok || wait < 5*time.Millisecond {
				t.Errorf("a thread that shared its core for 60 ms waited %v, told %v", wait, ok)
			}
		})
	}
	group.Wait()
}

// Scratch that is used before it is written holds a pattern while verifying.
func TestFreshMemoryIsFilled(t *testing.T) {
	t.Parallel()
	e := newEngine(t, t.TempDir())
	b, l, _ := open(t, e, "#include <stdlib.h>\nvoid add(const float *a, const float *b, float *c, int n) { float *s = malloc(4 * n); for (int i = 0; i < n; i++) c[i] = s[i] + a[i] + b[i]; }", 2000, true)
	_, _, err := verify.Shoot(t.Context(), b, l, set(t, l), verify.Aim{Shot: verify.Shot{Limit: 5 * time.Second}, Whole: true})
	var stop *verify.Stop
	if !errors.As(err, &stop) || stop.Fault != harness.FaultIncorrect {
		t.Errorf("unwritten scratch gives %v, want it judged incorrect", err)
	}
}

// Arguments of every kind arrive: a pointer, an int32, an int64, both floats.
func TestArguments(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("args: [a, b, c, n]", "args: [a, half, c, 'n:int64', n, third, b]", "reference: a + b", "scalars: {half: 0.5, third: {value: 0.25, dtype: float64}}\nreference: a + b").Replace(verifytest.Text)
	tk := verifytest.Task(t, text)
	s, err := task.ParseStructure("add.c", "void add(void) {}", tk, harness.TargetCPU)
	if err != nil {
		t.Fatal(err)
	}
	c, err := task.NewCandidate(tk, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, t.TempDir())
	p, err := e.Open(t.Context(), verify.Module{Candidate: c, Path: object(t, `
void add(const float *a, float half, float *c, long n, int m, double third, const float *b) {
    for (long i = 0; i < n; i++) c[i] = a[i] + b[i] + (half != 0.5f) + (third != 0.25) + (m != n);
}`)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := verify.NewLayout(tk, c, harness.Size{{Name: "n", Value: 777}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Bind(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := verify.Shoot(t.Context(), b, l, set(t, l), verify.Aim{Shot: verify.Shot{Limit: 5 * time.Second}, Whole: true}); err != nil {
		t.Error(err)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	e := func(n int64, align int) task.Extent {
		return task.Extent{Elements: n, Span: n, DType: harness.Float32, AlignmentBytes: align}
	}
	regions, guards, length := place([]task.Extent{e(1000, 256), e(1, 256), e(5000, 4096), e(77, 64)}, 3)
	for i, r := range regions {
		align := max(r.AlignmentBytes, 64)
		if r.Offset%int64(align) != 0 || r.Offset-r.Low < zoneBytes || r.High-(r.Offset+r.Length) < zoneBytes || r.Low%pageBytes != 0 || r.High%pageBytes != 0 {
			t.Errorf("region %d is at %d (%d to %d), alignment %d", i, r.Offset, r.Low, r.High, align)
		}
		if guards[i] != r.Low-pageBytes || i > 0 && regions[i-1].High > guards[i] {
			t.Errorf("region %d: guard at %d", i, guards[i])
		}
		if r.scratch != (i == 3) {
			t.Errorf("region %d: scratch %v", i, r.scratch)
		}
	}
	if length != guards[4]+pageBytes {
		t.Errorf("length %d, last guard at %d", length, guards[4])
	}
}

func TestParseSteal(t *testing.T) {
	t.Parallel()
	stat := "cpu  1 2 3 4 5 6 7 80 9 0\ncpu0 1 2 3 4 5 6 7 30 9 0\ncpu1 1 2 3 4 5 6 7 50 9 0\nintr 5\n"
	if got := parseSteal([]byte(stat), []int{1}); got != 50 {
		t.Errorf("steal of core 1 is %d, want 50", got)
	}
	if got := parseSteal([]byte(stat), []int{0, 1}); got != 80 {
		t.Errorf("steal of both is %d, want 80", got)
	}
}

func TestParseBusy(t *testing.T) {
	t.Parallel()
	stat := "cpu  9 9 9 9 9 9 9 9 9 0\ncpu0 1 2 3 400 500 6 7 30 9 0\ncpu1 10 20 30 400 500 60 70 50 9 0\n"
	if got := parseTicks([]byte(stat), []int{1}, busyFields...); got != 190 {
		t.Errorf("core 1 was busy for %d ticks, want 190: user, nice, system and interrupts, neither idle nor stolen", got)
	}
	e := &Engine{cores: []int{0, 1}}
	if share := e.Foreign()(); share < 0 || share > 1 {
		t.Errorf("others took a share of %v", share)
	}
}

// The end of a child's output names the signal, whoever's runtime printed it.
func TestTail(t *testing.T) {
	t.Parallel()
	over := make(chan bool, 1)
	out := &tail{limit: 100_000, overflow: func() { over <- true }}
	for range 10 {
		if n, err := out.Write(make([]byte, 9_000)); n != 9_000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := out.Write([]byte("[signal SIGFPE: floating-point exception")); err != nil {
		t.Fatal(err)
	}
	if out.full() || len(out.String()) > tailBytes || signalText.FindString(out.String()) != "SIGFPE" {
		t.Errorf("full %v, %d bytes kept, signal %q", out.full(), len(out.String()), signalText.FindString(out.String()))
	}
	if _, err := out.Write(make([]byte, 20_000)); err != nil || !<-over || !out.full() {
		t.Errorf("a flood is not seen: %v", err)
	}
}
