// Package measure times candidates: time plans, dropped and retaken samples, noise, racing, and the interleaved rounds of a
// confirmation. Every timed launch is also verified (verify.Shoot), so that what is measured is what was checked. It is
// written once over verify.Engine and talks to no device itself.
package measure
