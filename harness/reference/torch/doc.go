// Package torch runs references: Starlark over a torch-like module in float64. The text reads as PyTorch users know it, with
// @, **, comparisons of tensors and subscripts such as x[:, 0:3], none of which Starlark has: they are rewritten before it
// sees them. Every array holds float64 in row-major order; integers are exact to 2^53. There is no I/O, and steps and memory
// are bounded.
//
// An operator is one function and one row of the table in ops.go.
package torch
