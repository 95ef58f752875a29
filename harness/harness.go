package harness

import "context"

// Harness is the four verbs by which a kernel is judged. A bad kernel is a result: the returned Report carries its Fault. An
// error means broken infrastructure and may be retried.
type Harness interface {
	// Compile applies the rules and builds the candidate. When rules or compiler refuse, the Report says so and the Build is nil.
	Compile(ctx context.Context, r *Request) (*Build, *Report, error)
	// Benchmark verifies and then measures a built candidate under the request's plan.
	Benchmark(ctx context.Context, r *Request, b *Build) (*Report, error)
}
