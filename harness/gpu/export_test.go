package gpu

import (
	"context"
	"os/exec"
	"sync/atomic"

	"ridgepoint/harness/device"
)

// KeepStandby makes the emulated device keep a standby, as a card does. It returns how many children are started on it from now on,
// and whether a standby is there or on its way.
func (t *Target) KeepStandby(ctx context.Context) (starts *atomic.Int64, waits func() bool, err error) {
	s, err := t.station(ctx, device.Emulated)
	if err != nil {
		return nil, nil, err
	}
	starts = new(atomic.Int64)
	start := s.commandFunc
	s.keepStandby, s.commandFunc = true, func() (*exec.Cmd, error) {
		starts.Add(1)
		return start()
	}
	return starts, func() bool { return s.standby != nil }, nil
}
