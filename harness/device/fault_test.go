package device_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ridgepoint/harness/device"
)

// TestMain lets the tests below run the driver in a child of its own, since a sticky fault or a hang spoils a process.
func TestMain(m *testing.M) {
	if path := os.Getenv("RIDGEPOINT_DEVICE_CHILD"); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

// child adds two vectors three times and says what happened.
func child(library string) int {
	drv, err := device.OpenCUDA(library)
	if err != nil {
		return report(err)
	}
	ctx, err := drv.Open(0)
	if err != nil {
		return report(err)
	}
	image, err := os.ReadFile(os.Getenv("RIDGEPOINT_DEVICE_IMAGE"))
	if err != nil {
		return report(err)
	}
	return report(ctx.Do(func(s *device.Session) error { return addThrice(s, image) }))
}

func addThrice(s *device.Session, image []byte) error {
	const n = 64
	mod, err := s.Load(image)
	if err != nil {
		return err
	}
	name := "vadd"
	if os.Getenv("RIDGEPOINT_DEVICE_WILD") != "" {
		name = "wild"
	}
	f, err := s.Function(mod, name)
	if err != nil {
		return err
	}
	p, err := s.Alloc(4 * n)
	if err != nil {
		return err
	}
	q, err := s.Alloc(4 * n)
	if err != nil {
		return err
	}
	if err := s.Upload(0, p, floats(n, func(int) float32 { return 1 })); err != nil {
		return err
	}
	args := new(device.Args).Ptr(p).Ptr(p).Ptr(q).Int32(n)
	plan := &device.Plan{Grid: [3]int{1, 1, 1}, Block: [3]int{n, 1, 1}}
	var first error
	for range 3 {
		if err := errors.Join(s.Launch(0, f, plan, args), s.Wait(0)); err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		_, after := s.Alloc(4)
		if after != nil {
			return errors.Join(first, errors.New("later calls fail too"))
		}
		return first
	}
	out := make([]byte, 4*n)
	if err := s.Download(0, out, q); err != nil {
		return err
	}
	if float(out, 0) != 2 {
		return errors.New("wrong result")
	}
	return nil
}

func report(err error) int {
	if err != nil {
		os.Stdout.WriteString(strings.ReplaceAll(err.Error(), "\n", "; ") + "\n")
		return 1
	}
	os.Stdout.WriteString("right\n")
	return 0
}

// TestKnobs sets each knob and wants the failure in the expected place; with none the same code is right.
func TestKnobs(t *testing.T) {
	e, image := emulated(t)
	file := t.TempDir() + "/image"
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, knobs, env, want string }{
		{"none", "", "", "right"},
		{"fail", "fail=cuMemAlloc_v2:2:2", "", "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"},
		{"fail a launch", "fail=cuLaunchKernel:3:1", "", "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)"},
		{"sticky", "sticky=2", "", "CUDA_ERROR_LAUNCH_FAILED (719); cuStreamSynchronize"},
		{"wrong", "wrong=3", "", "wrong result"},
		{"wild write", "", "RIDGEPOINT_DEVICE_WILD=1", "later calls fail too"},
		{"illegal address", "", "RIDGEPOINT_DEVICE_WILD=1", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"},
		{"no device", "devices=0", "", "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, _ := childCommand(e.Library, file, c.knobs, c.env).CombinedOutput() // a failing child is what is wanted
			if !strings.Contains(string(out), c.want) {
				t.Errorf("got %q, want it to contain %q", out, c.want)
			}
		})
	}
	t.Run("hang", func(t *testing.T) {
		t.Parallel()
		cmd := childCommand(e.Library, file, "hang=2", "")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			t.Errorf("the child ended (%v), want it to hang", err)
		case <-time.After(500 * time.Millisecond):
			_ = cmd.Process.Kill() // it hangs, as it should
			<-ended
		}
	})
}

func childCommand(library, image, knobs, env string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "RIDGEPOINT_DEVICE_CHILD="+library, "RIDGEPOINT_DEVICE_IMAGE="+image, "RIDGEPOINT_FAKE_CUDA="+knobs, env)
	return cmd
}
