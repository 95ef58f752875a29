package device

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ridgepoint/harness/device/emulator"
)

// TestArchOfHIPDevices wants the arch that HIP's properties carry, without the features behind it, wherever they have it.
func TestArchOfHIPDevices(t *testing.T) {
	e, err := emulator.Install(t.Context(), filepath.Join(os.TempDir(), "ridgepoint-test"))
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	hip, err := OpenHIP(e.Library)
	if err != nil {
		t.Fatal(err)
	}
	if got := hip.gfx(0); got != "gfx90a" {
		t.Errorf("arch %q, want gfx90a", got)
	}
	cuda, err := OpenCUDA(e.Library)
	if err != nil {
		t.Fatal(err)
	}
	if got := cuda.gfx(0); got != "" {
		t.Errorf("CUDA's driver names the arch %q", got)
	}
}
