package cubin

import (
	"fmt"
	"strings"

	"ridgepoint/harness/device"
)

// Refusal is why the driver would not launch a kernel.
type Refusal struct {
	Kernel string
	Reason string
}

// Error returns the kernel and the reason.
func (r *Refusal) Error() string { return fmt.Sprintf("kernel %s: %s", r.Kernel, r.Reason) }

// Check holds a kernel and its launch plan against a device's limits. params are the sizes in bytes of the arguments that
// the plan passes; nil is not checked. It returns nil or a *Refusal.
func Check(k *Kernel, limits *device.Limits, p *device.Plan, params []int) error {
	reason := dims(k, limits, p)
	if reason == "" {
		reason = shared(k, limits, p)
	}
	if reason == "" {
		reason = registers(k, limits, p)
	}
	if reason == "" && p.Cooperative && limits.SMs > 0 {
		blocks := p.Grid[0] * p.Grid[1] * p.Grid[2]
		if most := limits.SMs * Occupancy(k, limits, p).Blocks; blocks > most {
			reason = fmt.Sprintf("a cooperative launch of %d blocks, of which %d run at once: make the grid smaller", blocks, most)
		}
	}
	if reason == "" && params != nil {
		reason = arguments(k, params)
	}
	if reason == "" {
		return nil
	}
	return &Refusal{Kernel: k.Name, Reason: reason}
}

func dims(k *Kernel, limits *device.Limits, p *device.Plan) string {
	for i, axis := range [...]string{"x", "y", "z"} {
		if p.Block[i] < 1 || p.Block[i] > limits.BlockDim[i] {
			return fmt.Sprintf("block.%s is %d; the device takes 1 to %d", axis, p.Block[i], limits.BlockDim[i])
		}
		if p.Grid[i] < 1 || p.Grid[i] > limits.GridDim[i] {
			return fmt.Sprintf("grid.%s is %d; the device takes 1 to %d", axis, p.Grid[i], limits.GridDim[i])
		}
	}
	threads := p.Threads()
	if threads > limits.ThreadsPerBlock {
		return fmt.Sprintf("%d threads a block; the device takes %d", threads, limits.ThreadsPerBlock)
	}
	if k.MaxThreads > 0 && threads > k.MaxThreads {
		return fmt.Sprintf("%d threads a block, but __launch_bounds__ promises at most %d", threads, k.MaxThreads)
	}
	if p.Clustered() {
		blocks := p.Cluster[0] * p.Cluster[1] * p.Cluster[2]
		if blocks > 16 {
			return fmt.Sprintf("a cluster of %d blocks; at most 8 are portable and 16 possible", blocks)
		}
		for i := range 3 {
			if c := max(p.Cluster[i], 1); p.Grid[i]%c != 0 {
				return fmt.Sprintf("the grid %v is not a multiple of the cluster %v", p.Grid, p.Cluster)
			}
		}
	}
	return ""
}

func shared(k *Kernel, limits *device.Limits, p *device.Plan) string {
	if k.StaticSharedBytes > limits.SharedPerBlock {
		return fmt.Sprintf("%d bytes of static shared memory; the device gives %d: declare more as dynamic", k.StaticSharedBytes, limits.SharedPerBlock)
	}
	if total := k.StaticSharedBytes + p.SharedBytes; total > limits.SharedOptIn {
		return fmt.Sprintf("%d bytes of shared memory (%d static + %d dynamic); the device gives a block %d", total, k.StaticSharedBytes, p.SharedBytes, limits.SharedOptIn)
	}
	return ""
}

func registers(k *Kernel, limits *device.Limits, p *device.Plan) string {
	if limits.RegistersPerBlock == 0 {
		return ""
	}
	if need := warps(p.Threads()) * warpRegisters(k.Registers); need > limits.RegistersPerBlock {
		return fmt.Sprintf("%d registers × %d threads need %d of the block's %d registers: use fewer threads or a lower maxrregcount",
			k.Registers, p.Threads(), need, limits.RegistersPerBlock)
	}
	return ""
}

func arguments(k *Kernel, params []int) string {
	if len(k.Params) != len(params) {
		return fmt.Sprintf("the kernel takes %d parameters, the launch passes %d arguments", len(k.Params), len(params))
	}
	for i := range params {
		if k.Params[i] != params[i] {
			return fmt.Sprintf("parameter %d has %d bytes, the argument %d: check the types in args (dims are int32 unless name:int64)", i+1, k.Params[i], params[i])
		}
	}
	return ""
}

func warps(threads int) int { return (threads + 31) / 32 }

// warpRegisters is what one warp takes: registers are given out 8 a thread, 256 a warp.
func warpRegisters(perThread int) int { return (max(perThread, 1)*32 + 255) / 256 * 256 }

// Residency is how much of a multiprocessor a launch can fill, and what stops it from filling more.
type Residency struct {
	Blocks    int     // at once on one multiprocessor
	Warps     int     // at once on one multiprocessor
	Share     float64 // of the warps that fit, 0 to 1
	LimitedBy string  // threads, registers, shared memory, blocks, or grid
}

// Occupancy computes the theoretical occupancy from the limits, as the CUDA Occupancy Calculator does.
func Occupancy(k *Kernel, limits *device.Limits, p *device.Plan) Residency {
	w := max(warps(p.Threads()), 1)
	most := max(limits.ThreadsPerSM/max(limits.WarpSize, 32), 1)
	r := Residency{Blocks: most / w, LimitedBy: "threads"}
	lower := func(n int, what string) {
		if n < r.Blocks {
			r.Blocks, r.LimitedBy = n, what
		}
	}
	if limits.BlocksPerSM > 0 {
		lower(limits.BlocksPerSM, "blocks")
	}
	if limits.RegistersPerSM > 0 && k.Registers > 0 {
		lower(limits.RegistersPerSM/(w*warpRegisters(k.Registers)), "registers")
	}
	if need := k.StaticSharedBytes + p.SharedBytes; need > 0 && limits.SharedPerSM > 0 {
		lower(limits.SharedPerSM/((need+limits.SharedReserved+127)/128*128), "shared memory")
	}
	r.Warps = r.Blocks * w
	r.Share = float64(r.Warps) / float64(most)
	blocks := p.Grid[0] * p.Grid[1] * p.Grid[2]
	if limits.SMs > 0 && blocks < limits.SMs*r.Blocks && blocks <= limits.SMs {
		r.LimitedBy = "grid"
	}
	return r
}

// LimitsOf returns the limits of an arch such as sm_90 or sm_90a, without its number of multiprocessors, for machines that
// compile and have no card (CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability").
func LimitsOf(arch string) (*device.Limits, error) {
	base := arch
	if strings.HasPrefix(arch, "sm_") {
		base = strings.TrimRight(arch, "af") // sm_90a, sm_100f
	}
	l := &device.Limits{
		WarpSize: 32, ThreadsPerBlock: 1024, BlockDim: [3]int{1024, 1024, 64}, GridDim: [3]int{2147483647, 65535, 65535},
		SharedPerBlock: 48 << 10, SharedReserved: 1024, RegistersPerBlock: 65536, RegistersPerSM: 65536, Cooperative: true,
	}
	switch base {
	case "sm_70", "sm_72":
		l.SharedOptIn, l.SharedPerSM, l.SharedReserved, l.ThreadsPerSM, l.BlocksPerSM = 96<<10, 96<<10, 0, 2048, 32
	case "sm_75":
		l.SharedOptIn, l.SharedPerSM, l.SharedReserved, l.ThreadsPerSM, l.BlocksPerSM = 64<<10, 64<<10, 0, 1024, 16
	case "sm_80", "sm_87":
		l.SharedOptIn, l.SharedPerSM, l.ThreadsPerSM, l.BlocksPerSM = 163<<10, 164<<10, 2048, 32
	case "sm_86":
		l.SharedOptIn, l.SharedPerSM, l.ThreadsPerSM, l.BlocksPerSM = 99<<10, 100<<10, 1536, 16
	case "sm_89":
		l.SharedOptIn, l.SharedPerSM, l.ThreadsPerSM, l.BlocksPerSM = 99<<10, 100<<10, 1536, 24
	case "sm_90", "sm_100", "sm_103":
		l.SharedOptIn, l.SharedPerSM, l.ThreadsPerSM, l.BlocksPerSM = 227<<10, 228<<10, 2048, 32
	case "sm_120", "sm_121":
		l.SharedOptIn, l.SharedPerSM, l.ThreadsPerSM, l.BlocksPerSM = 99<<10, 100<<10, 1536, 24
	case device.Emulated:
		l.SharedOptIn, l.SharedPerSM, l.ThreadsPerSM, l.BlocksPerSM = 227<<10, 228<<10, 2048, 32
	default:
		return nil, fmt.Errorf("the limits of arch %q are not known; known: sm_70 to sm_121 and %s", arch, device.Emulated)
	}
	return l, nil
}
