// Asynchronous copies for the emulator: done at once.
#pragma once
static inline void __pipeline_memcpy_async(void* dst, const void* src, size_t n, size_t zero = 0) {
    memcpy(dst, src, n - zero);
    memset(static_cast<char*>(dst) + n - zero, 0, zero);
}
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(size_t) {}
