// What CUDA has and HIP lacks, so that one source serves both. A warp is 32 lanes wide in a source written for CUDA: on
// devices with waves of 64 lanes two warps share a wave, and a width of 32 keeps their shuffles apart. Masks name lanes of a
// warp; all of HIP's lanes take part in lockstep, so that they need not be looked at.
template <class T> __device__ inline T __shfl_sync(unsigned long long, T v, int from, int width = 32) { return __shfl(v, from, width); }
template <class T> __device__ inline T __shfl_xor_sync(unsigned long long, T v, int mask, int width = 32) { return __shfl_xor(v, mask, width); }
template <class T> __device__ inline T __shfl_up_sync(unsigned long long, T v, unsigned by, int width = 32) { return __shfl_up(v, by, width); }
template <class T> __device__ inline T __shfl_down_sync(unsigned long long, T v, unsigned by, int width = 32) { return __shfl_down(v, by, width); }
__device__ inline unsigned ridgepoint_half(unsigned long long lanes) { return (unsigned)(lanes >> (__lane_id() & 32u)); }
__device__ inline unsigned __ballot_sync(unsigned long long, int p) { return ridgepoint_half(__ballot(p)); }
__device__ inline int __any_sync(unsigned long long m, int p) { return (__ballot_sync(m, p) & (unsigned)m) != 0; }
__device__ inline int __all_sync(unsigned long long m, int p) { return (__ballot_sync(m, !p) & (unsigned)m) == 0; }
__device__ inline unsigned __activemask() { return ridgepoint_half(__ballot(1)); }
__device__ inline void __syncwarp(unsigned long long = ~0ull) {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}
// Cache hints: a load or store of one scalar can be told to stream, others are plain.
template <class T> __device__ inline T __ldcs(const T* p) { return *p; }
template <> __device__ inline float __ldcs<float>(const float* p) { return __builtin_nontemporal_load(p); }
template <> __device__ inline int __ldcs<int>(const int* p) { return __builtin_nontemporal_load(p); }
template <class T> __device__ inline T __ldcg(const T* p) { return *p; }
template <class T> __device__ inline void __stcs(T* p, T v) { *p = v; }
template <> __device__ inline void __stcs<float>(float* p, float v) { __builtin_nontemporal_store(v, p); }
template <class T> __device__ inline void __stcg(T* p, T v) { *p = v; }
#line 1 "kernel.cu"
