package cudaengine

import (
	"fmt"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/verify"
)

// poisonBlock is verify's block of random finite values of one dtype, on the device. verify lays it out again and again from
// a place that the seed chooses.
type poisonBlock struct {
	at     device.Ptr
	period int64
}

func (e *Engine) poisonOf(s *device.Session, d harness.DType) (poisonBlock, error) {
	if b, ok := e.poison[d]; ok {
		return b, nil
	}
	block := verify.PoisonBlock(d)
	if len(block)%64 != 0 {
		return poisonBlock{}, fmt.Errorf("the poison block of %v has %d bytes: want a multiple of 64", d, len(block))
	}
	at, err := s.Alloc(int64(len(block)))
	if err != nil {
		return poisonBlock{}, err
	}
	if err := s.Upload(e.stream, at, block); err != nil {
		return poisonBlock{}, err
	}
	b := poisonBlock{at: at, period: int64(len(block))}
	e.poison[d] = b
	return b, nil
}
