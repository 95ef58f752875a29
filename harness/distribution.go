package harness

// The names of input distributions. A verification draws its input sets from them; Tensor.Init names the plain one.
const (
	DistNormal       = "normal"          // standard normal
	DistUniform      = "uniform"         // uniform on [-1, 1)
	DistTimes100     = "times_100"       // normal × 100
	DistPlus1000     = "plus_1000"       // normal + 1000
	DistSpikes       = "spikes"          // normal with one in 64 elements × 10^4, at least one
	DistConstantRows = "constant_rows"   // every row (last dim) one value, rows differing
	DistTiny         = "zeros_denormals" // zeros, denormals and the smallest normals
	DistSorted       = "sorted"          // normal, ascending over the whole tensor
)

// InitPositive is a Tensor.Init: every distribution's values are taken by magnitude and moved off zero, for masses, radii
// and whatever else must be greater than zero.
const InitPositive = "positive"

// Distributions returns the names of all distributions, plainest first.
func Distributions() []string {
	return []string{DistNormal, DistUniform, DistTimes100, DistPlus1000, DistSpikes, DistConstantRows, DistTiny, DistSorted}
}

// Inits returns the words that Tensor.Init may hold.
func Inits() []string { return []string{DistNormal, DistUniform, InitPositive} }
