//go:build linux

package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Probe finds out, once per process, what this machine gives, by trying it.
var Probe = sync.OnceValue(probe)

func probe() Capabilities {
	c := Capabilities{Landlock: landlockABI()}
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	c.Notify = errno == 0
	action = unix.SECCOMP_RET_KILL_PROCESS
	_, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	c.Seccomp = errno == 0
	if !staged.Load() {
		c.Missing = append(c.Missing, "sandbox.Main at the start of this program (a defect: please report it)")
		return c
	}
	c.Namespaces, c.Mounts = tryNamespaces()
	if !c.Namespaces {
		c.Missing = append(c.Missing, "user namespaces (as root: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000, or run the container with --security-opt seccomp=unconfined)")
	} else if !c.Mounts {
		c.Missing = append(c.Missing, "mounting in a user namespace (kernel 5.12 or later; in a container: --security-opt apparmor=unconfined --security-opt systempaths=unconfined)")
	}
	if !c.Seccomp || !c.Notify {
		c.Missing = append(c.Missing, "seccomp with notifications (kernel 5.7 or later)")
	}
	if c.Landlock == 0 {
		c.Missing = append(c.Missing, "landlock (kernel 5.13 or later with lsm=landlock)")
	}
	return c
}

// tryNamespaces starts /bin/true in the namespaces, and then through the whole first stage.
func tryNamespaces() (namespaces, mounts bool) {
	program := ""
	for _, p := range []string{"/usr/bin/true", "/bin/true"} {
		if _, err := os.Stat(p); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		return false, false
	}
	bare := exec.Command(program)
	bare.Env = []string{}
	bare.SysProcAttr = &syscall.SysProcAttr{}
	isolate(bare.SysProcAttr, false)
	if bare.Run() != nil {
		return false, false
	}
	dir, err := os.MkdirTemp("", "ridgepoint-probe-")
	if err != nil {
		return true, false
	}
	defer func() { _ = os.RemoveAll(dir) }() // an empty folder in the temporary folder
	cmd := exec.Command("/proc/self/exe", stageArgument, `{"policy":{"name":"probe","work_dir":"`+dir+`"},"level":"full"}`, program)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	isolate(cmd.SysProcAttr, false)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return true, cmd.Run() == nil
}
