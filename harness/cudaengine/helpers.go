package cudaengine

import (
	"encoding/binary"
	"fmt"

	"ridgepoint/harness/device"
)

// helpers are the engine's own kernels, loaded.
type helpers struct {
	fn map[string]device.Function
}

func loadHelpers(s *device.Session, image []byte) (*helpers, error) {
	mod, err := s.Load(image)
	if err != nil {
		return nil, fmt.Errorf("load the helper kernels: %w", err)
	}
	h := &helpers{fn: map[string]device.Function{}}
	for _, name := range HelperKernels {
		if h.fn[name], err = s.Function(mod, name); err != nil {
			return nil, err
		}
	}
	return h, s.AllowShared(h.fn["rp_scribble"], s.Info().Limits.SharedOptIn)
}

// helperThreads is the block size of every helper kernel.
const helperThreads = 256

func (h *helpers) launch(s *device.Session, st device.Stream, name string, blocks int, args *device.Args) error {
	plan := device.Plan{Grid: [3]int{max(blocks, 1), 1, 1}, Block: [3]int{helperThreads, 1, 1}, SharedBytes: scratchBytes}
	return s.Launch(st, h.fn[name], &plan, args)
}

// scribble leaves random words in shared memory, registers and local memory. sink is a word that the kernel may write to.
func (h *helpers) scribble(s *device.Session, st device.Stream, seed uint64, sink device.Ptr) error {
	shared := s.Info().Limits.SharedOptIn
	plan := device.Plan{Grid: [3]int{max(s.Info().Limits.SMs, 1), 1, 1}, Block: [3]int{helperThreads, 1, 1}, SharedBytes: shared}
	return s.Launch(st, h.fn["rp_scribble"], &plan, new(device.Args).Uint64(seed).Uint32(uint32(shared/8)).Uint32(2).Ptr(sink))
}

// The sizes of helpers.cu's structs.
const (
	scratchBytes = 4*32*8 + 8 + 32*8 + 2*8 + 2*4
	moveBytes    = 40
	tileBytes    = 24
	zoneBytes    = 24
	lookBytes    = 16
	proofBytes   = 24
	deltaBytes   = 256
	breachBytes  = 64
	resultBytes  = 128
	outputBytes  = 80
)

// noOutput is helpers.cu's RP_NONE.
const noOutput = 0xffffffff

// words writes little-endian words, as helpers.cu's structs lay them out.
type words []byte

func (w words) u64(v uint64) words { return binary.LittleEndian.AppendUint64(w, v) }
func (w words) u32(v uint32) words { return binary.LittleEndian.AppendUint32(w, v) }

// tiles shares buffers among blocks: shares of one length, so that about blocks of them cover the first counted buffers, none
// shorter than 4 KB but a buffer's last one. The shares of the counted buffers do not depend on the others.
func tiles(lengths []int64, counted, blocks int) (table words, count int) {
	var total int64
	for _, n := range lengths[:counted] {
		total += n
	}
	const least = 4 << 10
	step := max(least, (total/int64(max(blocks, 1))+15)/16*16)
	for item, n := range lengths {
		for from := int64(0); from < n; from += step {
			table = table.u64(uint64(item)).u64(uint64(from)).u64(uint64(min(n, from+step)))
			count++
		}
	}
	return table, count
}

// mix is helpers.cu's rp_mix.
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}
