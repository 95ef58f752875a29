// Executes CUDA device code on the host: one block after another, the threads of a block as fibers that switch at barriers
// and warp operations. Slow and correct; it is included before the kernel's source and compiled with it by g++.
// As on a card, shared memory and the threads' own memory hold what the last block left there, whatever kernel or module it was
// of, and every second block runs its warps in the opposite order.
// Not emulated: inline PTX, textures, tensor maps, grid-wide barriers, dynamic parallelism; code that needs them does not
// compile or does not launch here.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <sys/mman.h>
#include <utility>

struct uint3 { unsigned int x, y, z; };
struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1) : x(a), y(b), z(c) {}
};

namespace ridgepoint {

enum State { kFresh, kReady, kBlock, kWarp, kDone };

struct Fiber {
    void* sp;
    char* stack;
    State state;
    unsigned waitMask;      // lanes that the warp operation names
    unsigned long long in;  // what this lane brings to a warp operation
    int predicate;
    const struct Snapshot* seen;
    uint3 tid;
};

struct Snapshot { unsigned long long value[32]; int predicate[32]; unsigned arrived; };

constexpr size_t kStackBytes = 128 << 10, kSharedBytes = 256 << 10;
constexpr int kMaxThreads = 1024, kRing = 8;

// Physical is what outlives a kernel on the one multiprocessor of the device. The driver owns it; src/driver.cpp has the same.
struct Physical {
    unsigned char shared[kSharedBytes];
    char* stacks;  // kMaxThreads of kStackBytes each
    unsigned long long blocks;
};

struct Machine {
    Fiber fibers[kMaxThreads];
    Snapshot ring[kMaxThreads / 32][kRing];
    int turn[kMaxThreads / 32];
    Fiber* current;
    void* scheduler;
    char* freeStacks[kMaxThreads];
    int freeCount, threads, barrierKind;
    uint3 block;
    dim3 gridDim, blockDim;
    void (*body)(void**);
    void** params;
    bool backwards;
};

static Machine machine;
extern "C" __attribute__((visibility("default"))) Physical* ridgepoint_physical;
Physical* ridgepoint_physical;  // set by the driver when it loads the module
constexpr size_t kGuardBytes = 1024;
alignas(1024) static unsigned char dynamicShared[kSharedBytes + kGuardBytes];  // with what no block may touch behind it

// __shared__ variables are thread_local: this puts them side by side, apart from all others, where findShared finds them.
static thread_local volatile unsigned char sharedAnchor;
struct Span { unsigned char* at; size_t bytes; };

static int findShared(dl_phdr_info* info, size_t, void* out) {
    const uintptr_t here = reinterpret_cast<uintptr_t>(&findShared);
    bool mine = false;
    size_t bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& h = info->dlpi_phdr[i];
        if (h.p_type == PT_TLS) bytes = h.p_memsz;
        if (h.p_type == PT_LOAD && here - info->dlpi_addr - h.p_vaddr < h.p_memsz) mine = true;
    }
    if (!mine) return 0;
    *static_cast<Span*>(out) = {static_cast<unsigned char*>(info->dlpi_tls_data), bytes};
    return 1;
}

extern "C" void ridgepoint_switch(void** save, void* load);
asm(R"(
.text
.local ridgepoint_switch
.type ridgepoint_switch,@function
ridgepoint_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

static inline void yield(State s) {
    Fiber* f = machine.current;
    f->state = s;
    ridgepoint_switch(&f->sp, machine.scheduler);
}

static void fiberMain() {
    machine.body(machine.params);
    machine.current->state = kDone;
    ridgepoint_switch(&machine.current->sp, machine.scheduler);
    __builtin_trap();
}

static void prepare(Fiber* f) {
    if (machine.freeCount == 0) __builtin_trap();
    f->stack = machine.freeStacks[--machine.freeCount];
    void** top = reinterpret_cast<void**>(f->stack + kStackBytes - 64);
    *--top = nullptr;  // keeps the stack 16-byte aligned as after a call
    *--top = reinterpret_cast<void*>(&fiberMain);
    for (unsigned long long i = 0; i < 6; ++i)  // registers hold anything at the start
        *--top = reinterpret_cast<void*>((ridgepoint_physical->blocks + i) * 0x9e3779b97f4a7c15ull | 1);
    f->sp = top;
}

static inline int threadIndex() { return static_cast<int>(machine.current - machine.fibers); }

// releaseWarp lets a warp's waiting lanes go on when all lanes that still run, and that they name, have come.
static bool releaseWarp(int warp) {
    int first = warp * 32, last = first + 32 < machine.threads ? first + 32 : machine.threads;
    unsigned alive = 0, waiting = 0;
    for (int i = first; i < last; ++i) {
        if (machine.fibers[i].state != kDone) alive |= 1u << (i - first);
        if (machine.fibers[i].state == kWarp) waiting |= 1u << (i - first);
    }
    bool released = false;
    for (int i = first; i < last; ++i) {
        Fiber& f = machine.fibers[i];
        if (f.state != kWarp) continue;
        unsigned need = f.waitMask & alive, group = 0;
        if ((need & ~waiting) != 0) continue;
        Snapshot* snap = &machine.ring[warp][machine.turn[warp]++ % kRing];
        for (int j = first; j < last; ++j)
            if (machine.fibers[j].state == kWarp && machine.fibers[j].waitMask == f.waitMask && (need >> (j - first) & 1)) group |= 1u << (j - first);
        if (group != need) continue;
        snap->arrived = group;
        for (int j = first; j < last; ++j) {
            if (!(group >> (j - first) & 1)) continue;
            snap->value[j - first] = machine.fibers[j].in;
            snap->predicate[j - first] = machine.fibers[j].predicate;
            machine.fibers[j].seen = snap;
            machine.fibers[j].state = kReady;
        }
        released = true;
    }
    return released;
}

static bool releaseBlock() {
    int count = 0;
    bool any = false, all = true;
    for (int i = 0; i < machine.threads; ++i) {
        State s = machine.fibers[i].state;
        if (s == kDone) continue;
        if (s != kBlock) return false;
        any = true;
        if (machine.fibers[i].predicate) ++count; else all = false;
    }
    if (!any) return false;
    for (int i = 0; i < machine.threads; ++i) {
        if (machine.fibers[i].state != kBlock) continue;
        machine.fibers[i].predicate = machine.barrierKind == 1 ? count : machine.barrierKind == 2 ? all : count != 0;
        machine.fibers[i].state = kReady;
    }
    return true;
}

// runBlock returns 0, or 1 when the threads wait for each other for ever.
static int runBlock() {
    for (int i = 0; i < machine.threads; ++i) {
        Fiber& f = machine.fibers[i];
        f.state = kFresh;
        f.tid = {i % machine.blockDim.x, i / machine.blockDim.x % machine.blockDim.y, i / (machine.blockDim.x * machine.blockDim.y)};
    }
    for (;;) {
        int done = 0;
        bool moved = false;
        for (int n = 0; n < (machine.threads + 31) / 32 * 32; ++n) {
            int i = machine.backwards ? ((machine.threads - 1) / 32 - n / 32) * 32 + n % 32 : n;
            if (i >= machine.threads) continue;
            Fiber& f = machine.fibers[i];
            if (f.state == kWarp && (i & 31) == 0) moved |= releaseWarp(i / 32);
            if (f.state == kWarp && (i & 31) != 0 && f.waitMask != ~0u) moved |= releaseWarp(i / 32);
            if (f.state == kDone) { ++done; continue; }
            if (f.state != kFresh && f.state != kReady) continue;
            if (f.state == kFresh) prepare(&f);
            machine.current = &f;
            moved = true;
            ridgepoint_switch(&machine.scheduler, f.sp);
            if (f.state == kDone) machine.freeStacks[machine.freeCount++] = f.stack;
        }
        if (done == machine.threads) return 0;
        if (moved) continue;
        for (int w = 0; w * 32 < machine.threads; ++w) moved |= releaseWarp(w);
        if (!moved && !releaseBlock()) return 1;
    }
}

static int run(dim3 grid, dim3 block, size_t shared, void** params, void (*body)(void**)) {
    Physical* here = ridgepoint_physical;
    Span fixed = {};
    sharedAnchor = 0;
    if (!here || dl_iterate_phdr(findShared, &fixed) != 1 || !fixed.at) return 2;
    if (fixed.bytes == sizeof sharedAnchor) fixed.bytes = 0;  // the module has no other
    const size_t behind = (fixed.bytes + 15) / 16 * 16;       // where dynamic shared memory begins
    if (behind + shared > kSharedBytes) return 2;
    machine.freeCount = 0;
    for (int i = 0; i < kMaxThreads; ++i) machine.freeStacks[machine.freeCount++] = here->stacks + kStackBytes * i;
    machine.gridDim = grid;
    machine.blockDim = block;
    machine.threads = static_cast<int>(block.x * block.y * block.z);
    machine.params = params;
    machine.body = body;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                machine.block = {x, y, z};
                machine.backwards = here->blocks++ & 1;
                memcpy(fixed.at, here->shared, fixed.bytes);
                memcpy(dynamicShared, here->shared + behind, shared);
                memset(dynamicShared + shared, 0x5A, kGuardBytes);
                int code = runBlock();
                for (size_t i = 0; i < kGuardBytes; ++i)
                    if (dynamicShared[shared + i] != 0x5A) code = 3;  // as an illegal address
                memcpy(here->shared, fixed.at, fixed.bytes);
                memcpy(here->shared + behind, dynamicShared, shared);
                if (code) return code;
            }
    return 0;
}

template <class... A, size_t... I>
static inline void apply(void (*f)(A...), void** p, std::index_sequence<I...>) {
    f(*static_cast<std::remove_reference_t<A>*>(p[I])...);
}
template <class... A>
static inline void call(void (*f)(A...), void** p) { apply(f, p, std::index_sequence_for<A...>{}); }

static inline const Snapshot* exchange(unsigned mask, unsigned long long in, int predicate) {
    Fiber* f = machine.current;
    f->waitMask = mask;
    f->in = in;
    f->predicate = predicate;
    yield(kWarp);
    return f->seen;
}
static inline int barrier(int kind, int predicate) {
    machine.barrierKind = kind;
    machine.current->predicate = predicate;
    yield(kBlock);
    return machine.current->predicate;
}
template <class T> static inline unsigned long long bits(T v) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long u = 0;
    memcpy(&u, &v, sizeof v);
    return u;
}
template <class T> static inline T value(unsigned long long u) { T v; memcpy(&v, &u, sizeof v); return v; }
template <class T> static inline T shuffle(unsigned mask, T v, int source, bool inside) {
    const Snapshot* s = exchange(mask, bits(v), 0);
    return inside && (s->arrived >> source & 1) ? value<T>(s->value[source]) : v;
}
static inline int lane() { return threadIndex() & 31; }

template <class... A>
static inline unsigned sizeOf(void (*)(A...), unsigned i) {
    const unsigned sizes[] = {static_cast<unsigned>(sizeof(A))..., 0u};
    return i < sizeof...(A) ? sizes[i] : 0;
}

}  // namespace ridgepoint

// RIDGEPOINT_KERNEL exports what the driver needs to launch the kernel of that name.
#define RIDGEPOINT_KERNEL(name)                                                                                   \
    extern "C" __attribute__((visibility("default"))) int ridgepoint_launch_##name(                               \
        unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, size_t shared, void** params) { \
        return ridgepoint::run(dim3(gx, gy, gz), dim3(bx, by, bz), shared, params, [](void** p) { ridgepoint::call(name, p); }); \
    }                                                                                                             \
    extern "C" __attribute__((visibility("default"))) unsigned ridgepoint_size_##name(unsigned i) { return ridgepoint::sizeOf(name, i); }

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define RIDGEPOINT_EMULATED 1
#define __device__
#define __host__
#define __global__
#define __constant__ static
#define __managed__
#define __shared__ static thread_local
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define alignas(n) __attribute__((aligned(n)))
#define __nv_pure__
#define __builtin_assume(x) do { } while (0)

#define threadIdx (ridgepoint::machine.current->tid)
#define blockIdx (ridgepoint::machine.block)
#define blockDim (ridgepoint::machine.blockDim)
#define gridDim (ridgepoint::machine.gridDim)
static constexpr int warpSize = 32;

#include "ridgepoint_vector.h"
#include "ridgepoint_intrinsics.h"
