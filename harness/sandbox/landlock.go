//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockABI returns the kernel's landlock version, 0 when it has none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// The rights of landlock(7) by use.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	makeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// restrictFiles adds landlock rules for the policy. A kernel without landlock is passed over: Probe reports it.
func restrictFiles(o order) error {
	abi := landlockABI()
	if abi == 0 {
		return nil
	}
	handled := uint64(readRights | makeRights)
	if abi >= 2 {
		handled |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	if abi >= 4 && !o.Policy.Network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("create landlock rules: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }() // the process is about to become another
	work := o.Policy.WorkDir
	scratch := os.TempDir()
	if o.Level == LevelFull {
		work, scratch = workDirInside(o.Policy), "/tmp"
	}
	for _, path := range append(append(append([]string{"/proc"}, systemFolders...), deviceFiles...), o.Policy.ReadOnly...) {
		if err := allowBeneath(int(fd), path, readRights&handled); err != nil {
			return err
		}
	}
	// This binary, which "self" names, may lie anywhere.
	if err := allowBeneath(int(fd), "/proc/self/exe", readRights&handled); err != nil {
		return err
	}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full"} {
		if err := allowBeneath(int(fd), path, fileRights&handled); err != nil {
			return err
		}
	}
	writable := []string{"/dev/shm"}
	if o.Level == LevelFull {
		writable = append(writable, scratch)
	}
	rights := uint64(readRights) & handled
	if o.Policy.Writable {
		writable = append(writable, work)
	} else if err := allowBeneath(int(fd), work, rights); err != nil {
		return err
	}
	for _, path := range writable {
		if err := allowBeneath(int(fd), path, (readRights|writeRights)&handled); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("apply landlock rules: %w", errno)
	}
	return nil
}

// allowBeneath grants rights under path; a path that is not there grants nothing.
func allowBeneath(ruleset int, path string, rights uint64) error {
	if path == "" {
		return nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s for landlock: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // an O_PATH descriptor holds nothing to flush
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat %s for landlock: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("add landlock rule for %s: %w", path, errno)
	}
	return nil
}
