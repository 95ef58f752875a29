package device

import (
	"runtime"
	"unsafe"
)

// Ptr is an address in device memory. The zero Ptr is no memory.
type Ptr uintptr

// Add returns the address n bytes on.
func (p Ptr) Add(n int64) Ptr { return Ptr(int64(p) + n) }

// Memory returns the free and the total bytes of the device.
func (s *Session) Memory() (free, total int64, err error) {
	var f, t uint64
	err = s.driver.call(fnMemInfo, uintptr(unsafe.Pointer(&f)), uintptr(unsafe.Pointer(&t)))
	return int64(f), int64(t), err
}

// Alloc takes sizeBytes of device memory, aligned to at least 256 bytes. The contents are whatever was there.
func (s *Session) Alloc(sizeBytes int64) (Ptr, error) {
	var p uintptr
	err := s.driver.call(fnAlloc, uintptr(unsafe.Pointer(&p)), uintptr(max(sizeBytes, 1)))
	return Ptr(p), err
}

// Free gives memory of Alloc back; it waits for work that uses it. Freeing 0 does nothing.
func (s *Session) Free(p Ptr) error {
	if p == 0 {
		return nil
	}
	return s.driver.call(fnFree, uintptr(p))
}

// Pinned is page-locked host memory that asynchronous copies may use.
type Pinned struct {
	Bytes []byte
	addr  uintptr
}

// Slice returns the n bytes from offset on as memory of their own; only the whole may be freed.
func (m *Pinned) Slice(offset, n int64) *Pinned {
	return &Pinned{Bytes: m.Bytes[offset : offset+n], addr: m.addr + uintptr(offset)}
}

// AllocPinned takes sizeBytes of page-locked host memory.
func (s *Session) AllocPinned(sizeBytes int64) (*Pinned, error) {
	var p uintptr
	if err := s.driver.call(fnHostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(max(sizeBytes, 1)), 0); err != nil {
		return nil, err
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	return &Pinned{Bytes: unsafe.Slice((*byte)(base), sizeBytes), addr: p}, nil
}

// FreePinned gives the memory back; its Bytes must not be touched afterwards.
func (s *Session) FreePinned(m *Pinned) error {
	m.Bytes = nil
	return s.driver.call(fnHostFree, m.addr)
}

// Upload copies src to dst, in the order of st, and returns when src may be reused.
func (s *Session) Upload(st Stream, dst Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := s.driver.call(fnToDevice, uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)), uintptr(st)); err != nil {
		return err
	}
	err := s.Wait(st)
	runtime.KeepAlive(src)
	return err
}

// Download copies src to dst, in the order of st, and waits for it.
func (s *Session) Download(st Stream, dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	if err := s.driver.call(fnToHost, uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)), uintptr(st)); err != nil {
		return err
	}
	err := s.Wait(st)
	runtime.KeepAlive(dst)
	return err
}

// UploadAsync queues a copy from page-locked memory; the first n bytes of src must stay as they are until it has run.
func (s *Session) UploadAsync(st Stream, dst Ptr, src *Pinned, n int64) error {
	return s.driver.call(fnToDevice, uintptr(dst), src.addr, uintptr(n), uintptr(st))
}

// DownloadAsync queues a copy into page-locked memory.
func (s *Session) DownloadAsync(st Stream, dst *Pinned, src Ptr, n int64) error {
	return s.driver.call(fnToHost, dst.addr, uintptr(src), uintptr(n), uintptr(st))
}

// Copy queues a copy of n bytes within the device.
func (s *Session) Copy(st Stream, dst, src Ptr, n int64) error {
	return s.driver.call(fnCopy, uintptr(dst), uintptr(src), uintptr(n), uintptr(st))
}

// ForgetPersisting makes the lines of the L2 cache that accesses have marked to persist as likely to go as all others. It acts at
// once, also while work is queued.
func (s *Session) ForgetPersisting() error { return s.driver.call(fnForgetPersisting) }

// Memset queues the filling of n bytes with value.
func (s *Session) Memset(st Stream, dst Ptr, value byte, n int64) error {
	return s.driver.call(fnMemset8, uintptr(dst), uintptr(value), uintptr(n), uintptr(st))
}

// Memset32 queues the filling of n 32-bit words with value.
func (s *Session) Memset32(st Stream, dst Ptr, value uint32, n int64) error {
	return s.driver.call(fnMemset32, uintptr(dst), uintptr(value), uintptr(n), uintptr(st))
}
