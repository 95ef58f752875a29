//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// InsideWorkDir is where a full sandbox shows Policy.WorkDir.
const InsideWorkDir = "/work"

// systemFolders are read-only in every full sandbox: what a dynamic linker and a C toolchain need. /etc itself is not there.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc/alternatives", "/etc/ld.so.cache",
	"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/nix/store", "/gnu/store"}

// deviceFiles are the harmless character devices.
var deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// bind is one path to show inside; fd was opened before the old file system was covered.
type bind struct {
	fd       int
	target   string
	folder   bool
	link     string // a symbolic link's text, instead of fd
	writable bool
}

// buildRoot makes a new root of read-only binds, the work folder and small memory file systems, and moves into it.
func buildRoot(p Policy) error {
	binds, err := openBinds(p)
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const root = "/tmp"
	if err := unix.Mount("sandbox", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount a new root: %w", err)
	}
	if err := mountSmall(root, p.Limits); err != nil { // first: a shown path may lie beneath the scratch folder
		return err
	}
	for _, b := range binds {
		if err := b.mount(root); err != nil {
			return fmt.Errorf("show %s: %w", b.target, err)
		}
	}
	if err := moveInto(root); err != nil {
		return err
	}
	return os.Chdir(workDirInside(p))
}

func workDirInside(p Policy) string {
	if p.WorkDir == "" {
		return "/"
	}
	return InsideWorkDir
}

// openBinds opens every path that the sandbox will show; paths that this machine lacks are left out, but the policy's own must
// be there.
func openBinds(p Policy) ([]bind, error) {
	var binds []bind
	add := func(source, target string, writable, required bool) error {
		info, err := os.Lstat(source)
		if err == nil && info.Mode()&os.ModeSymlink != 0 && !required {
			text, err := os.Readlink(source)
			if err != nil {
				return err
			}
			binds = append(binds, bind{fd: -1, target: target, link: text})
			return nil
		}
		fd, err := unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) && !required {
			return nil
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", source, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("stat %s: %w", source, err)
		}
		binds = append(binds, bind{fd: fd, target: target, folder: st.Mode&unix.S_IFMT == unix.S_IFDIR, writable: writable})
		return nil
	}
	for _, s := range systemFolders {
		if err := add(s, s, false, false); err != nil {
			return nil, err
		}
	}
	for _, d := range deviceFiles {
		if err := add(d, d, true, false); err != nil {
			return nil, err
		}
	}
	for _, r := range p.ReadOnly {
		if err := add(r, r, false, true); err != nil {
			return nil, err
		}
	}
	if p.WorkDir != "" {
		if err := add(p.WorkDir, InsideWorkDir, p.Writable, true); err != nil {
			return nil, err
		}
	}
	return binds, nil
}

// mount shows b under root.
func (b bind) mount(root string) error {
	target := filepath.Join(root, b.target)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if b.fd < 0 {
		return os.Symlink(b.link, target)
	}
	if b.folder {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	} else {
		f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(b.fd), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !b.writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if b.folder {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if err := unix.MountSetattr(-1, target, unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make it read-only: %w", err)
	}
	return nil
}

// mountSmall mounts /proc of the new pid namespace and the memory file systems.
func mountSmall(root string, l Limits) error {
	scratch := l.ScratchBytes
	if scratch == 0 {
		scratch = 64 << 20
	}
	size := "mode=1777,size=" + strconv.FormatUint(scratch, 10)
	for _, m := range []struct{ target, kind, options string }{
		{"/proc", "proc", "subset=pid,hidepid=invisible"},
		{"/tmp", "tmpfs", size},
		{"/dev/shm", "tmpfs", size},
	} {
		target := filepath.Join(root, m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, target, m.kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// moveInto makes root the root, detaches the old one and makes the new one read-only.
func moveInto(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the old root: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(-1, "/", 0, &attr); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}
