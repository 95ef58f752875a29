// Package gpu judges candidates of the cuda target: it implements judge.Target. A runner child of this same binary owns one
// device, its context, its buffers and its lock, and runs judge.Evaluate over harness/cudaengine; the parent starts it, keeps
// a warm standby beside it, and replaces it when it is lost.
//
//	parent                                     child (one a device, and one warm standby)
//	  open ──────────────────────────────────>   driver opened, device found
//	       <────────────────────────────── found
//	  helpers (compiled for its arch) ────────>  context, engine; probe
//	       <────────────────────────────── ready
//	  peaks, once it is the active one ──────>   flock; ceilings of the device
//	       <────────────────────────────── peaks
//	  bout ──────────────────────────────────>   flock; verify; measure
//	       <──────────────────── report | error   (lost: the child ends, the standby takes over)
//
// Main must be called first thing in main and in TestMain of tests that judge candidates of this target. For arch "emulated"
// candidate code runs on the host, so that child is confined like one of the cpu target.
package gpu
