package scheduler

import (
	"fmt"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
)

// EventPrior says what measurements from elsewhere a structure's parameter search starts from: a Prior. It follows the
// structure's own event, and holds the measurements, so that a resumed campaign proposes what it would have, whatever
// became of the campaigns and files that they came from.
const EventPrior EventKind = "prior"

// TransferSettings say where a structure's search may take earlier measurements of the same structure from.
type TransferSettings struct {
	Auto  bool     `json:"auto,omitempty"`  // the campaigns of the same store
	Files []string `json:"files,omitempty"` // recordings, by absolute path
}

// Prior are earlier measurements of one structure. They guide its search; they are never a score.
type Prior struct {
	Structure int           `json:"structure"`
	Sources   []PriorSource `json:"sources"`
	// Ignored says why the optimizer reads none of them; empty: it reads those marked Used.
	Ignored string `json:"ignored,omitempty"`
}

// PriorSource is what was measured in one place: campaigns on one arch with one set of sizes, or a recording.
type PriorSource struct {
	Name      string   `json:"name"`
	Arch      string   `json:"arch,omitempty"`
	Campaigns []string `json:"campaigns,omitempty"` // their ids, oldest first
	File      string   `json:"file,omitempty"`
	Used      bool     `json:"used"` // it shares a measured configuration with the structure's space
	// Params, Rows and Values are the measurements: a row has one value for each parameter, Values holds the objective, 0 where
	// the configuration failed.
	Params []string       `json:"params"`
	Rows   [][]expr.Value `json:"rows"`
	Values []float64      `json:"values"`
}

// Measured returns how many configurations have a value and how many failed.
func (s *PriorSource) Measured() (measured, failed int) {
	for _, v := range s.Values {
		if v > 0 {
			measured++
		} else {
			failed++
		}
	}
	return measured, failed
}

// Add appends a measurement; value is 0 when the configuration failed.
func (s *PriorSource) Add(c harness.Configuration, value float64) {
	row := make([]expr.Value, len(s.Params))
	for i, p := range s.Params {
		row[i] = c[p]
	}
	s.Rows, s.Values = append(s.Rows, row), append(s.Values, value)
}

// Check reports rows and values that do not belong together.
func (s *PriorSource) Check() error {
	if len(s.Rows) != len(s.Values) {
		return fmt.Errorf("source %s has %d rows and %d values", s.Name, len(s.Rows), len(s.Values))
	}
	for i, r := range s.Rows {
		if len(r) != len(s.Params) {
			return fmt.Errorf("source %s, row %d has %d values, want %d", s.Name, i+1, len(r), len(s.Params))
		}
	}
	return nil
}
