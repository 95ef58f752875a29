// Package runner runs candidates of the cpu target: it implements verify.Engine by child processes that load one shared object
// each. Buffers, inputs, poison, red zones, expected values and the comparison belong to the parent; a child maps the
// buffers, loads the object and calls its kernels when told to, and nothing else.
//
//	parent                                   child (this binary again, confined by package sandbox)
//	  Open  ── load ───────────────────────>   lock (system-call filter), dlopen, resolve
//	  Bind  ── bind: memory, arguments ────>   map the arena, guard pages
//	  Launch ── go ────────────────────────>   clock, kernels, clock
//	        <── time, switches, late probes ─
//
// Whatever a candidate does to its process, it does to that process: a crash, an exit, a closed descriptor or a hang ends the
// child (its whole process group and pid namespace), and the parent reports it as that candidate's fault.
//
// Main must be called first in main, after sandbox.Main, and in TestMain of every test that uses an Engine.
package runner
