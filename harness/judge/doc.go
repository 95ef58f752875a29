// Package judge is the harness as one thing: it implements harness.Harness over rules, toolchains, verification and
// measurement, and picks what serves a candidate's target. Evaluate is the part that runs beside a device: verify, then
// measure, then the report. Judge must not decide what is evaluated, nor score what came out.
package judge
