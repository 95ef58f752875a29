package device

import "fmt"

// attribute is one number that a driver tells about a device.
type attribute int

const (
	attrMaxThreadsPerBlock attribute = iota
	attrMaxBlockX
	attrMaxBlockY
	attrMaxBlockZ
	attrMaxGridX
	attrMaxGridY
	attrMaxGridZ
	attrSharedPerBlock
	attrSharedOptIn
	attrSharedPerSM
	attrSharedReserved
	attrWarpSize
	attrRegistersPerBlock
	attrRegistersPerSM
	attrSMs
	attrThreadsPerSM
	attrBlocksPerSM
	attrClockKHz
	attrMemoryClockKHz
	attrBusBits
	attrL2Bytes
	attrPersistingL2Bytes
	attrMajor
	attrMinor
	attrCooperative
	numAttributes
)

// hipAttributes are hipDeviceAttribute_t's numbers in HIP 5.2 (hip_runtime_api.h); 0 marks one that HIP lacks. The number 0
// itself is hipDeviceAttributeEccEnabled, which is not read here.
var hipAttributes = [numAttributes]int{
	attrMaxThreadsPerBlock: 56, attrMaxBlockX: 26, attrMaxBlockY: 27, attrMaxBlockZ: 28, attrMaxGridX: 29, attrMaxGridY: 30,
	attrMaxGridZ: 31, attrSharedPerBlock: 74, attrSharedPerSM: 10002, attrWarpSize: 87, attrRegistersPerBlock: 71,
	attrRegistersPerSM: 72, attrSMs: 63, attrThreadsPerSM: 57, attrClockKHz: 5, attrMemoryClockKHz: 60, attrBusBits: 59,
	attrL2Bytes: 19, attrMajor: 23, attrMinor: 61, attrCooperative: 10,
}

// Info describes one device. Sizes are in bytes, clocks in MHz; a zero means that the driver did not say.
type Info struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	UUID       string `json:"uuid"` // "GPU-xxxxxxxx-...", as nvidia-smi prints it
	PCI        string `json:"pci"`
	Arch       string `json:"arch"` // sm_90, gfx90a
	Limits     Limits `json:"limits"`
	MemoryByte int64  `json:"memory_bytes"`
	L2Bytes    int64  `json:"l2_bytes"`
	// PersistingL2Bytes is how much of the L2 cache may hold lines that outlive others; 0: the device has no such lines.
	PersistingL2Bytes int64 `json:"persisting_l2_bytes,omitempty"`
	ClockMHz          int   `json:"clock_mhz"`
	MemoryMHz         int   `json:"memory_mhz"`
	BusBits           int   `json:"bus_bits"`
}

// Limits are what a launch must keep within on a device.
type Limits struct {
	SMs               int    `json:"sms"`
	WarpSize          int    `json:"warp_size"`
	ThreadsPerBlock   int    `json:"threads_per_block"`
	BlockDim          [3]int `json:"block_dim"`
	GridDim           [3]int `json:"grid_dim"`
	SharedPerBlock    int    `json:"shared_per_block"` // without opting in
	SharedOptIn       int    `json:"shared_opt_in"`    // largest dynamic + static after opting in
	SharedPerSM       int    `json:"shared_per_sm"`
	SharedReserved    int    `json:"shared_reserved"` // taken from each block by the driver
	RegistersPerBlock int    `json:"registers_per_block"`
	RegistersPerSM    int    `json:"registers_per_sm"`
	ThreadsPerSM      int    `json:"threads_per_sm"`
	BlocksPerSM       int    `json:"blocks_per_sm"`
	Cooperative       bool   `json:"cooperative"`
}

// PeakBandwidth is the memory bandwidth in bytes a second by the device's own clock and bus, two transfers a clock; 0 when
// the driver does not say. Ceilings are better measured.
func (i *Info) PeakBandwidth() float64 {
	return 2 * float64(i.MemoryMHz) * 1e6 * float64(i.BusBits) / 8
}

func cudaArch(major, minor int) string { return fmt.Sprintf("sm_%d%d", major, minor) }

// Emulated is the arch of the emulated device: kernels run right but no timing of theirs means anything.
const Emulated = "emulated"
