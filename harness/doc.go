// Package harness holds the nouns of judging a kernel: Task, Size, Tensor, Structure, Candidate, Build, Report, Fault and
// Record, with the rules between them. It does no I/O; the subpackages do the work:
//
//	task       loads task files and structure files
//	reference  evaluates a task's reference in float64
//	toolchain  compiles candidates (cc, NVRTC, nvcc, hiprtc, hipcc)
//	device     finds devices and talks to their drivers
//	runner     the child process that owns one device
//	verify     inputs, poison, red zones, comparison
//	measure    time plans, samples, noise, racing
//	profile    Nsight Compute and its fallback digest
//	rules      static rules of a task
//	feedback   structured_v1 and its diagnoses
package harness
