//go:build linux

package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
)

// childArgument is the hidden first argument that makes a process a runner child. The second lists the cores it may use.
const childArgument = "__cpu_runner"

// Main runs a runner child when args (without the program's name) ask for it, and then does not return; else it returns
// false. It must be called before anything else, after sandbox.Main.
func Main(args []string) bool {
	if len(args) == 0 || args[0] != childArgument {
		return false
	}
	c := &child{packet: make([]byte, maxPacket), answer: make([]byte, answerLength)}
	if err := c.serve(args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "runner: %v\n", err)
		os.Exit(childBroken)
	}
	os.Exit(0)
	return true
}

// childBroken is the exit status of a child whose own protocol broke: not the candidate's doing unless its code has run.
const childBroken = 124

// child is the state of a runner child: one shared object, one mapping of the arena, one bound size.
type child struct {
	packet, answer []byte
	kernels        []uintptr
	arena          []byte
	bound          bindOrder
	calls          []func()
}

// serve answers the parent until it closes the connection.
func (c *child) serve(args []string) error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	for _, fd := range []int{controlFD, arenaFD, lockFD} {
		unix.CloseOnExec(fd)
	}
	if len(args) > 0 && args[0] != "" {
		if err := pin(args[0]); err != nil {
			return err
		}
	}
	if err := quieten(); err != nil {
		return err
	}
	for {
		n, err := unix.Read(controlFD, c.packet)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read from the parent: %w", err)
		}
		if n == 0 {
			return nil
		}
		if err := c.handle(c.packet[:n]); err != nil {
			return err
		}
	}
}

// pin restricts this process, all of its threads to come, to cores "0,1,5".
func pin(list string) error {
	var set unix.CPUSet
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("core %q: want numbers and commas", word)
		}
		set.Set(n)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return unix.SchedSetaffinity(0, &set) // no /proc in this sandbox: this thread, whose children inherit it, runs the kernels
	}
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			if err := unix.SchedSetaffinity(tid, &set); err != nil {
				return fmt.Errorf("pin thread %d to cores %s: %w", tid, list, err)
			}
		}
	}
	return nil
}

func (c *child) handle(packet []byte) error {
	switch packet[0] {
	case opLoad:
		var o loadOrder
		if err := json.Unmarshal(packet[1:], &o); err != nil {
			return fmt.Errorf("read load order: %w", err)
		}
		return c.load(o)
	case opBind:
		var o bindOrder
		if err := json.Unmarshal(packet[1:], &o); err != nil {
			return fmt.Errorf("read bind order: %w", err)
		}
		return c.bind(o)
	case opGo:
		if len(packet) != goLength {
			return fmt.Errorf("go order of %d bytes, want %d", len(packet), goLength)
		}
		return c.launch(packet)
	default:
		return fmt.Errorf("operation %q is not known", packet[0])
	}
}

func send(b []byte) error {
	for {
		_, err := unix.Write(controlFD, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("answer the parent: %w", err)
		}
		return nil
	}
}

// defaultFaults gives the signals of hardware faults back their default: the Go runtime's handlers cannot end a process that
// is the first of its namespace when a foreign thread faults, and the fault is then raised for ever.
func defaultFaults() error {
	var action [4]uint64 // struct kernel_sigaction of the 64-bit architectures, SIG_DFL
	for _, s := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS} {
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); errno != 0 {
			return fmt.Errorf("reset %s: %w", unix.SignalName(s), errno)
		}
	}
	return nil
}

// load locks the process and loads the shared object. What dlopen or a missing kernel says is the candidate's fault.
func (c *child) load(o loadOrder) error {
	if err := defaultFaults(); err != nil {
		return err
	}
	if o.Lock {
		listener, err := sandbox.Lock()
		if err != nil {
			return err
		}
		if err := send(append([]byte{answerListen}, strconv.Itoa(listener)...)); err != nil {
			return err
		}
		if n, err := unix.Read(controlFD, c.packet); err != nil || n != 1 || c.packet[0] != opWatch {
			return fmt.Errorf("wait for the parent to watch: %d bytes, %v", n, err)
		}
		if err := sandbox.Seal(listener); err != nil {
			return fmt.Errorf("close the listener: %w", err)
		}
	}
	handle, err := purego.Dlopen(o.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return send(append([]byte{answerFail}, "the shared object cannot be loaded: "+err.Error()...))
	}
	for _, name := range o.Kernels {
		fn, err := purego.Dlsym(handle, name)
		if err != nil || fn == 0 {
			return send(append([]byte{answerFail}, fmt.Sprintf("no function %q in the source: write it as `void %s(...)`, not static", name, name)...))
		}
		c.kernels = append(c.kernels, fn)
	}
	return send([]byte{answerOK})
}

// bind maps the arena and prepares the calls.
func (c *child) bind(o bindOrder) error {
	if c.arena != nil && int64(len(c.arena)) != o.Length {
		if err := unix.Munmap(c.arena); err != nil {
			return fmt.Errorf("unmap the buffers: %w", err)
		}
		c.arena = nil
	}
	if c.arena == nil {
		m, err := unix.Mmap(arenaFD, 0, int(o.Length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return fmt.Errorf("map %d bytes of buffers: %w", o.Length, err)
		}
		c.arena = m
	} else if err := unix.Mprotect(c.arena, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("open the buffers: %w", err)
	}
	for _, g := range o.Guards {
		if err := unix.Mprotect(c.arena[g:g+pageBytes], unix.PROT_NONE); err != nil {
			return fmt.Errorf("guard a page: %w", err)
		}
	}
	c.bound, c.calls = o, nil
	for _, l := range o.Launches {
		fn, err := c.prepare(l)
		if err != nil {
			return send(append([]byte{answerFail}, err.Error()...))
		}
		c.calls = append(c.calls, fn)
	}
	return send([]byte{answerOK})
}

// maxArguments is how many arguments purego passes.
const maxArguments = 32

// prepare makes the closure that calls a kernel. Integer and pointer arguments go the short way; floats need their registers
// sorted out by purego.RegisterFunc.
func (c *child) prepare(l call) (func(), error) {
	if len(l.Args) > maxArguments {
		return nil, fmt.Errorf("a kernel takes at most %d arguments here, this one %d", maxArguments, len(l.Args))
	}
	fn := c.kernels[l.Kernel]
	words := make([]uintptr, len(l.Args))
	values := make([]reflect.Value, len(l.Args))
	types := make([]reflect.Type, len(l.Args))
	floats := false
	for i, a := range l.Args {
		var v any
		switch {
		case a.Pointer:
			words[i] = uintptr(unsafe.Pointer(&c.arena[a.Offset]))
			v = words[i]
		case a.DType == harness.Float32:
			v, floats = float32(a.Float), true
		case a.DType == harness.Float64:
			v, floats = a.Float, true
		case a.DType == harness.Int64:
			words[i] = uintptr(a.Int)
			v = a.Int
		default: // int32 and narrower, which C passes as int
			words[i] = uintptr(uint32(int32(a.Int)))
			v = int32(a.Int)
		}
		values[i], types[i] = reflect.ValueOf(v), reflect.TypeOf(v)
	}
	if !floats {
		return func() { purego.SyscallN(fn, words...) }, nil
	}
	target := reflect.New(reflect.FuncOf(types, nil, false))
	purego.RegisterFunc(target.Interface(), fn)
	kernel := target.Elem()
	return func() { kernel.Call(values) }, nil
}

// launch runs the bound calls and answers with the time between the two clock reads.
func (c *child) launch(packet []byte) error {
	repeats := int(uint32(packet[2]) | uint32(packet[3])<<8 | uint32(packet[4])<<16 | uint32(packet[5])<<24)
	var seed uint64
	for i := range 8 {
		seed |= uint64(packet[6+i]) << (8 * i)
	}
	if packet[1] == 1 {
		if err := c.protect(unix.PROT_READ); err != nil {
			return err
		}
	}
	var before, after unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &before) // cannot fail for SELF
	start := time.Now()
	for range repeats {
		for _, e := range c.bound.Clears {
			clear(c.arena[e.Offset : e.Offset+e.Length])
		}
		for _, call := range c.calls {
			call()
		}
	}
	a := goAnswer{nanoseconds: int64(time.Since(start))}
	probePlaces(c.bound.Outputs, seed, func(i, _ int, offset int64) { a.probes[i] = *(*uint64)(unsafe.Pointer(&c.arena[offset])) })
	_ = unix.Getrusage(unix.RUSAGE_SELF, &after) // cannot fail for SELF
	a.switches = after.Nivcsw - before.Nivcsw
	if packet[1] == 1 {
		if err := c.protect(unix.PROT_READ | unix.PROT_WRITE); err != nil {
			return err
		}
	}
	a.encode(c.answer)
	return send(c.answer)
}

func (c *child) protect(prot int) error {
	for _, e := range c.bound.ReadOnly {
		if err := unix.Mprotect(c.arena[e.Offset:e.Offset+e.Length], prot); err != nil {
			return fmt.Errorf("protect inputs: %w", err)
		}
	}
	return nil
}
