package gp

import "math"

// improvementPower is the power of the improvement whose expectation proposals go by: the generalised expected improvement of
// Schonlau, Welch and Jones (1998), which holds a small chance of a large gain dearer than a sure small one. On recorded spaces the
// plain one (power 1) stays with a plateau of nearly equal configurations while the optimum is elsewhere. In a space far larger than
// any budget, unseen ground has no end, and the plain one it is.
const improvementPower = 3

// farBelow is the deviations below the mean from which an improvement is taken from its series.
const farBelow = -8

// logImprovement returns ln E[max(0, incumbent - y)^power] of a normal y with mean mu and deviation sd; power is at least 1.
func logImprovement(incumbent, mu, sd float64, power int) float64 {
	if sd <= 0 {
		return math.Inf(-1)
	}
	z, g := (incumbent-mu)/sd, float64(power)
	if z > farBelow {
		// I_g = z I_(g-1) + (g-1) I_(g-2) with I_0 = Φ(z) and I_1 = z Φ(z) + φ(z).
		below, moment := normalCDF(z), z*normalCDF(z)+normalPDF(z)
		for k := 2; k <= power; k++ {
			below, moment = moment, z*moment+float64(k-1)*below
		}
		return g*math.Log(sd) + math.Log(moment)
	}
	// I_g = φ(z) g!/|z|^(g+1) (1 - (g+1)(g+2)/2z² + (g+1)(g+2)(g+3)(g+4)/8z⁴ - ...), Mills' ratio for g = 0.
	factorial, _ := math.Lgamma(g + 1)
	zz := z * z
	series := (g + 1) * (g + 2) / (2 * zz) * (-1 + (g+3)*(g+4)/(4*zz))
	return g*math.Log(sd) - zz/2 - 0.5*math.Log(2*math.Pi) + factorial - (g+1)*math.Log(-z) + math.Log1p(series)
}

func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

func normalPDF(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
