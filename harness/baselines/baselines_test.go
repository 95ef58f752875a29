package baselines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness"
)

func size(n int64) harness.Size { return harness.Size{{Name: "n", Value: n}} }

func report(device, driver string, sizes ...harness.SizeTime) *harness.Report {
	return &harness.Report{Target: harness.TargetCUDA, Arch: "sm_90", Fault: harness.FaultNone, Sizes: sizes, Finished: time.Now().UTC(),
		Environment: harness.Environment{Device: device, DeviceID: "GPU-1", Driver: driver}}
}

// TestRegistry keeps times by task, device and driver, and only those that were not disturbed.
func TestRegistry(t *testing.T) {
	t.Parallel()
	r := Open(filepath.Join(t.TempDir(), "baselines"))
	tk := &harness.Task{Name: "sum", Digest: "d1"}
	if err := r.Take(tk, report("H200", "580", harness.SizeTime{Size: size(1), MedianUS: 5, BaselineUS: 10}, harness.SizeTime{Size: size(2), MedianUS: 5, BaselineUS: 99, BaselineNoisy: true})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		task           *harness.Task
		device, driver string
		first          float64
	}{
		{"the same", tk, "H200", "580", 10}, {"another driver", tk, "H200", "590", 0}, {"another device", tk, "A100", "580", 0}, {"another task", &harness.Task{Name: "sum", Digest: "d2"}, "H200", "580", 0},
	} {
		got := report(c.device, c.driver, harness.SizeTime{Size: size(1), MedianUS: 4}, harness.SizeTime{Size: size(2), MedianUS: 4}, harness.SizeTime{Size: size(1), MedianUS: 4, BaselineUS: 8})
		if err := r.Fill(c.task, got); err != nil {
			t.Fatal(err)
		}
		if got.Sizes[0].BaselineUS != c.first || got.Sizes[1].BaselineUS != 0 || got.Sizes[2].BaselineUS != 8 {
			t.Errorf("%s: %+v, want %v, the disturbed one unknown and the measured one kept", c.name, got.Sizes, c.first)
		}
	}
	key := KeyOf(tk, report("H200", "580"))
	if err := r.PutExternal(key, "torch", Measured{Times: []Time{{size(1), 7}}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Take(tk, report("H200", "580", harness.SizeTime{Size: size(1), MedianUS: 5, BaselineUS: 11})); err != nil {
		t.Fatal(err)
	}
	e, err := r.Get(key)
	if err != nil || e.Textbook.Of(size(1)) != 11 || e.External["torch"].Of(size(1)) != 7 {
		t.Errorf("%+v, %v: want the newer 11 and the external 7", e, err)
	}
	if all, err := r.All("sum"); err != nil || len(all) != 1 {
		t.Errorf("%d entries, %v", len(all), err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, key.file()), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := r.Get(key); err != nil || len(e.Textbook.Times) != 0 {
		t.Errorf("a torn entry gives %+v, %v", e, err)
	}
}

func TestExternal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, command, want string }{
		{"right", "echo loading; echo n=2 20.5; echo n=1 4", ""},
		{"one missing", "echo n=1 4", "no line for n=2"},
		{"no time", "echo n=1 fast; echo n=2 4", "want microseconds"},
		{"not positive", "echo n=1 0; echo n=2 4", "want microseconds"},
		{"fails", "echo no card >&2; exit 3", "no card"},
	} {
		m, err := Run(t.Context(), c.command, []harness.Size{size(1), size(2)})
		if c.want == "" {
			if err != nil || m.Of(size(1)) != 4 || m.Of(size(2)) != 20.5 {
				t.Errorf("%s: %+v, %v", c.name, m, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
