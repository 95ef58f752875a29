package night

import "gonum.org/v1/gonum/stat/distuv"

// studentHalf is the 97.5 % quantile of Student's distribution.
func studentHalf(df int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}.Quantile(0.975)
}
