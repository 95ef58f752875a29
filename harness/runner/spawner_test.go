package runner

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSpawnerLeavesOthersAlone wants threads that were spawners' to live on: whatever they started, for others too, would die with
// them. The process's first thread never ends, so that there is more than one.
func TestSpawnerLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	var spawners []*spawner
	ended := make(chan error, 4)
	for range cap(ended) {
		s := newSpawner()
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := s.start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // its end is what is looked for
		go func() { ended <- cmd.Wait() }()
		spawners = append(spawners, s)
	}
	for _, s := range spawners {
		s.close()
	}
	select {
	case err := <-ended:
		t.Errorf("a child ended with its spawner: %v", err)
	case <-time.After(300 * time.Millisecond): // a thread that ends does so at once
	}
}
