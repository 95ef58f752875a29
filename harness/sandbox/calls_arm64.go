package sandbox

import "golang.org/x/sys/unix"

// auditArch is AUDIT_ARCH_AARCH64.
const auditArch = unix.AUDIT_ARCH_AARCH64

// arm64 has no older forms.
var legacyComputeCalls, legacyProgramCalls []uintptr

// legacyPathArgument is empty: arm64 has no older forms.
var legacyPathArgument map[uintptr]int

func isLegacyOpen(uintptr) bool { return false }
