package cudaengine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"ridgepoint/harness/device"
)

// Probe lets the device compute something and looks at the result: whether it is healthy after a crash or a hang.
func (e *Engine) Probe() error {
	const n = 1 << 14
	return e.do(setupLimit, func(s *device.Session) error {
		p, err := s.Alloc(4 * n)
		if err != nil {
			return err
		}
		raw := make([]byte, 4*n)
		err = errors.Join(s.Memset(e.stream, p, 0xff, 4*n),
			e.helpers.launch(s, e.stream, "rp_fill", e.blocksFor(n), new(device.Args).Ptr(p).Uint64(n).Uint64(e.signKey)), s.Download(e.stream, raw, p), s.Free(p))
		if err != nil {
			return err
		}
		for i := range uint64(n) {
			want := float32(uint32(mix(e.signKey^i)>>40))*(2.0/16777216) - 1
			if got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])); got != want {
				return fmt.Errorf("the device computes wrongly: element %d is %v, want %v", i, got, want)
			}
		}
		return nil
	})
}
