package profile

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"ridgepoint/harness"
	"ridgepoint/harness/device"
	"ridgepoint/harness/toolchain/cubin"
)

// TestGoldenNamesEachKernel reads ncu's own output for five kernels on an H200, each written to show one thing.
func TestGoldenNamesEachKernel(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/ncu_h200.csv")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"memory_bound": "memory_bound", "compute_bound": "instruction_bound", "bank_conflicted": "bank_conflicts", "uncoalesced": "uncoalesced_access", "spilling": "register_spills",
	}
	if len(all) != len(want) {
		t.Fatalf("%d kernels, want %d", len(all), len(want))
	}
	for _, d := range all {
		codes := d.Codes()
		if len(codes) == 0 || codes[0] != want[d.Kernel] {
			t.Errorf("%s: %v, want %s first\n%s", d.Kernel, codes, want[d.Kernel], d.Text())
		}
		for _, code := range want { // no false alarm of another kind
			if code != want[d.Kernel] && code != "memory_bound" && code != "instruction_bound" && slices.Contains(codes, code) {
				t.Errorf("%s: also %s\n%s", d.Kernel, code, d.Text())
			}
		}
		if d.Duration < time.Microsecond || d.Registers < 8 || d.TopStall == "" || d.Occupancy <= 0 || d.Occupancy > 1 {
			t.Errorf("%s: incomplete: %+v", d.Kernel, d)
		}
	}
}

func TestParseRefusesWhatIsNoTable(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "an error": "==ERROR== ERR_NVGPUCTRPERM\n", "a header alone": "\"ID\",\"Kernel Name\"\n\"\",\"\"\n", "other columns": "\"A\"\n\"\"\n\"1\"\n", "a broken quote": "\"A\n\"\"\n\"1\"\n",
	} {
		if d, err := Parse(text); err == nil {
			t.Errorf("%s: got %v", name, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"us\"\n\"0\",\"k\",\"1,234.5\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text)
		if err == nil && len(all) == 0 {
			t.Error("no digest and no error")
		}
		if _, err := json.Marshal(all); err != nil {
			t.Errorf("a digest that cannot be stored: %v", err)
		}
	})
}

func TestForbiddenCountersAreOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fake := dir + "/ncu"
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho '==PROF== Connected'\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Profile(t.Context(), Run{NCU: fake, Command: []string{"true"}, Kernels: []string{"k"}, Count: 1, Timeout: 10 * time.Second})
	if !errors.Is(err, ErrNoProfiler) || err.Error() != ErrNoProfiler.Error()+": ERR_NVGPUCTRPERM - The user does not have permission" {
		t.Errorf("got %v", err)
	}
}

// TestFallback wants the digest without counters to name what the compiler's report, the occupancy and the roofline show.
func TestFallback(t *testing.T) {
	t.Parallel()
	limits, err := cubin.LimitsOf("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	limits.SMs = 132
	base := Known{Kernel: harness.KernelResource{Name: "k", Registers: 32}, Plan: device.Plan{Grid: [3]int{16384, 1, 1}, Block: [3]int{256, 1, 1}}, Limits: *limits,
		Took: 36 * time.Microsecond, Bytes: 128 << 20, FLOPs: 1e6, BytesPerSecond: 4.2e12, FLOPsPerSecond: 60e12, Why: "ncu is not installed"}
	for _, c := range []struct {
		name   string
		change func(*Known)
		want   string
	}{
		{"memory", func(*Known) {}, "memory_bound"},
		{"arithmetic", func(k *Known) { k.Bytes, k.FLOPs = 1e6, 2e9 }, "instruction_bound"},
		{"spills", func(k *Known) { k.Kernel.SpillStoreBytes = 64 }, "register_spills"},
		{"occupancy", func(k *Known) { k.Bytes, k.Kernel.Registers = 1e6, 200 }, "low_occupancy"},
		{"tail", func(k *Known) { k.Bytes, k.Plan.Grid[0] = 1e6, 132*8+40 }, "tail_effect"},
		{"launch", func(k *Known) { k.Bytes, k.Took = 1e5, 3*time.Microsecond }, "launch_bound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := base
			c.change(&k)
			d := Fallback(k)
			if codes := d.Codes(); len(codes) == 0 || codes[0] != c.want || d.Source != "fallback: ncu is not installed" {
				t.Errorf("%v from %q, want %s first", codes, d.Source, c.want)
			}
		})
	}
}
