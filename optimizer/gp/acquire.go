package gp

import "math"

// logEI returns ln of the expected improvement below incumbent of a normal with mean mu and deviation sd.
func logEI(incumbent, mu, sd float64) float64 {
	if sd <= 0 {
		return math.Inf(-1)
	}
	z := (incumbent - mu) / sd
	if z > -6 {
		return math.Log(sd * (z*normalCDF(z) + normalPDF(z)))
	}
	// Mills' ratio: z Φ(z) + φ(z) ≈ φ(z)/z² (1 - 3/z² + 15/z⁴) for z far below 0.
	zz := z * z
	return math.Log(sd) - zz/2 - 0.5*math.Log(2*math.Pi) - math.Log(zz) + math.Log1p(-3/zz+15/(zz*zz))
}

func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

func normalPDF(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
