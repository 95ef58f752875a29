package runner

import "testing"

func TestLockedBy(t *testing.T) {
	t.Parallel()
	const locks = "1: POSIX  ADVISORY  WRITE 11 fe:01:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 22 fe:01:78 0 EOF\n3: FLOCK  ADVISORY  WRITE 33 fe:01:77 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 44 fe:01:77 0 EOF\n4: FLOCK\n5: FLOCK ADVISORY WRITE x fe:01:79 0 EOF\n"
	for inode, want := range map[uint64]int{77: 33, 78: 22, 79: 0, 80: 0} {
		if got := lockedBy(locks, 0xfe, 1, inode); got != want {
			t.Errorf("inode %d: process %d, want %d", inode, got, want)
		}
	}
}
