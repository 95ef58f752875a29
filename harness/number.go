package harness

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Number is a float64 whose JSON form also holds NaN and the infinities, as the strings "nan", "inf" and "-inf".
type Number float64

// MarshalJSON writes a JSON number, or one of the three strings.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	switch {
	case math.IsNaN(f):
		return []byte(`"nan"`), nil
	case math.IsInf(f, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-inf"`), nil
	default:
		return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"nan"`:
		*n = Number(math.NaN())
	case `"inf"`:
		*n = Number(math.Inf(1))
	case `"-inf"`:
		*n = Number(math.Inf(-1))
	default:
		var f float64
		if err := json.Unmarshal(b, &f); err != nil {
			return fmt.Errorf(`number %.40s: want a number, "nan", "inf" or "-inf"`, b)
		}
		*n = Number(f)
	}
	return nil
}
