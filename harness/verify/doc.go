// Package verify decides whether a candidate computes what its task says. It draws sizes and inputs, poisons outputs, checks
// red zones, input contents and finiteness, compares outputs with the float64 reference and names the evidence when they
// differ. It is written once over Engine, which a device implements; it starts no process and talks to no driver.
//
// Order of one launch (Shoot), the same in verification and in timing:
//
//	Write inputs -> Poison outputs and scratch -> Flush -> [clock] kernels [clock] -> Breach: red zones, inputs -> Compare
//
// A wrong kernel is a *Stop, which carries the fault and the evidence; any other error means broken infrastructure.
package verify
