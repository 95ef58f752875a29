package profile

import (
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/toolchain/cubin"
)

// Known is what there is without counters: the compiler's report, the launch, the device's limits and the measured time.
type Known struct {
	Kernel         harness.KernelResource
	Plan           device.Plan
	Limits         device.Limits
	Took           time.Duration // of the launch
	FLOPs, Bytes   float64       // of the task at this size; 0: unknown
	BytesPerSecond float64       // the device's measured ceilings; 0: unknown
	FLOPsPerSecond float64
	Why            string // counters could not be read
}

// Fallback makes a digest from what is known without counters, and says so in Source.
func Fallback(k Known) Digest {
	r := cubin.Occupancy(&cubin.Kernel{Registers: k.Kernel.Registers, StaticSharedBytes: k.Kernel.StaticSharedBytes}, &k.Limits, &k.Plan)
	d := Digest{
		Kernel: k.Kernel.Name, Source: "fallback: " + k.Why, Duration: k.Took, Registers: k.Kernel.Registers, SharedBytes: k.Kernel.StaticSharedBytes + k.Plan.SharedBytes,
		Occupancy: r.Share, TheoreticalShare: r.Share, OccupancyLimit: r.LimitedBy, ComputeShare: unknown, MemoryShare: unknown, DRAMShare: unknown, LoadEfficiency: unknown,
		StoreEfficiency: unknown, SectorsLoad: unknown, SectorsStore: unknown, BankConflicts: unknown, IssueShare: unknown, SpillBytes: k.Kernel.SpillLoadBytes + k.Kernel.SpillStoreBytes,
	}
	if resident := r.Blocks * k.Limits.SMs; resident > 0 {
		d.Waves = float64(k.Plan.Grid[0]*k.Plan.Grid[1]*k.Plan.Grid[2]) / float64(resident)
	}
	if seconds := k.Took.Seconds(); seconds > 0 {
		if k.BytesPerSecond > 0 && k.Bytes > 0 {
			d.DRAMShare = k.Bytes / seconds / k.BytesPerSecond
			d.MemoryShare = d.DRAMShare
		}
		if k.FLOPsPerSecond > 0 && k.FLOPs > 0 {
			d.ComputeShare = k.FLOPs / seconds / k.FLOPsPerSecond
		}
	}
	d.diagnose()
	return d
}
