package gp

import "fmt"

// Part is a piece of the strategy that an ablation takes away.
type Part string

// The parts.
const (
	PartValuations  Part = "valuations"  // columns of how often 2 divides a value
	PartConstraints Part = "constraints" // columns of the quantities that constraints compare
	PartAdditive    Part = "additive"    // the kernel's additive term
	PartMaximin     Part = "maximin"     // a space-filling start instead of random points
	PartWindow      Part = "window"      // a start within 64 to 512 threads a block
	PartThroughput  Part = "throughput"  // the share of throughput lost as output instead of ln t
	PartForest      Part = "forest"      // the model of what fails
	PartEndGame     Part = "endgame"     // neighbours of the best in the end
)

// Parts returns all parts in the order of a table.
func Parts() []Part {
	return []Part{PartValuations, PartConstraints, PartAdditive, PartMaximin, PartWindow, PartThroughput, PartForest, PartEndGame}
}

// ParsePart returns the part of a name.
func ParsePart(name string) (Part, error) {
	for _, p := range Parts() {
		if string(p) == name {
			return p, nil
		}
	}
	return "", fmt.Errorf("part %q is unknown: use one of %v", name, Parts())
}

// has reports whether a part is in use.
func (o Options) has(p Part) bool { return o.Without != p }
