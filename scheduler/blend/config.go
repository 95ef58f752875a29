package blend

import (
	"fmt"
	"strconv"
	"strings"
)

// Mode is how drafts and tuning share the device.
type Mode uint8

// The modes. The zero Mode is invalid.
const (
	ModeInvalid Mode = iota
	Auto             // whatever promises more per device-second
	Fixed            // a fixed share of the device time for new structures
	Off              // no new structure, unless there is nothing to tune
)

// Config is the mode with its share. It is written `auto`, `off` or `fixed: 0.3`.
type Config struct {
	Mode  Mode
	Share float64 // of device-seconds for new structures, in Fixed
}

// Parse reads a Config; the empty string is auto.
func Parse(s string) (Config, error) {
	word, share, found := strings.Cut(strings.Trim(strings.TrimSpace(s), "{}"), ":")
	switch word = strings.TrimSpace(word); {
	case word == "" || (word == "auto" && !found):
		return Config{Mode: Auto}, nil
	case word == "off" && !found:
		return Config{Mode: Off}, nil
	case word == "fixed" && found:
		v, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err == nil && v >= 0 && v <= 1 {
			return Config{Mode: Fixed, Share: v}, nil
		}
	}
	return Config{}, fmt.Errorf("blend %q: want auto, off, or `fixed: SHARE` with a share of 0 to 1, e.g. fixed: 0.3", s)
}

// String writes what Parse reads.
func (c Config) String() string {
	switch c.Mode {
	case Auto:
		return "auto"
	case Off:
		return "off"
	case Fixed:
		return "fixed: " + strconv.FormatFloat(c.Share, 'g', -1, 64)
	default:
		return fmt.Sprintf("Mode(%d)", uint8(c.Mode))
	}
}
