// A stand-in for libcuda.so, libamdhip64.so and libnvidia-ml.so that executes: its modules are shared objects made from CUDA
// source with ridgepoint_emulator.h. Work runs at once, in the caller's thread. The environment variable
// RIDGEPOINT_FAKE_CUDA holds knobs, separated by commas:
//   fail=FUNCTION:N:CODE  the N-th call of FUNCTION (CUDA's name) returns CODE
//   hang=N                the N-th launch of a kernel that is not Ridgepoint's own never returns
//   sticky=N              from the N-th such launch on, everything fails with 719
//   wrong=N               from the N-th such launch on, the last pointer argument's first element is wrong
//   slow=MICROSECONDS     each such launch takes that much longer
//   skip=KERNEL           launches of that kernel do nothing, Ridgepoint's own ones too
//   devices=N memory=BYTES process=PID throttle=BITS
// Ridgepoint's own kernels are those whose names begin with "rp_".
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum { kOK = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
       kNotFound = 500, kIllegalAddress = 700, kLaunchFailed = 719, kCooperativeTooLarge = 720, kNotSupported = 801 };
constexpr size_t kPage = 4096, kTotal = size_t(4) << 30;
constexpr int kMaxShared = 232448, kDefaultShared = 49152;

typedef int (*LaunchFunc)(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void**);
struct Kernel { std::string name; LaunchFunc launch; unsigned (*size)(unsigned); int allowed = kDefaultShared; bool wide = false; };
struct Module { void* handle; std::map<std::string, Kernel*> kernels; };
struct Event { timespec at; bool set; };
struct Graph { std::vector<std::function<int()>> work; };

// Physical is the multiprocessor's memory, as ridgepoint_emulator.h has it.
struct Physical { unsigned char shared[256 << 10]; char* stacks; unsigned long long blocks; };
constexpr size_t kStacksBytes = size_t(1024) * (128 << 10);
Physical physical;

std::recursive_mutex lock;
std::map<char*, size_t> allocations;
size_t used;
int holders;  // of the primary context
std::map<std::string, long> calls;
long launches;
int stuck;
bool initialized;
Graph* capturing;
thread_local bool current;

const char* knobs() { const char* s = getenv("RIDGEPOINT_FAKE_CUDA"); return s ? s : ""; }

// knob returns the text after "name=" up to the next comma, or "".
std::string knob(const char* name) {
    std::string all = std::string(",") + knobs(), key = std::string(",") + name + "=";
    size_t at = all.find(key);
    if (at == std::string::npos) return "";
    at += key.size();
    return all.substr(at, all.find(',', at) - at);
}
long number(const char* name, long otherwise) { std::string s = knob(name); return s.empty() ? otherwise : strtol(s.c_str(), nullptr, 0); }

int enter(const char* function) {
    if (stuck) return stuck;
    long n = ++calls[function];
    std::string f = knob("fail");
    if (!f.empty()) {
        size_t a = f.find(':'), b = f.find(':', a + 1);
        if (a != std::string::npos && b != std::string::npos && f.substr(0, a) == function && n == atol(f.c_str() + a + 1)) return atoi(f.c_str() + b + 1);
    }
    return kOK;
}

#define ENTER(name)                                         \
    std::lock_guard<std::recursive_mutex> guard(lock);      \
    if (int code = enter(name)) return code;

bool inside(const void* p, size_t n) {
    auto it = allocations.upper_bound(static_cast<char*>(const_cast<void*>(p)));
    if (it == allocations.begin()) return false;
    --it;
    return static_cast<const char*>(p) + n <= it->first + it->second;
}

sigjmp_buf escape;
volatile sig_atomic_t running;
pthread_t runner;
struct sigaction before[4];
const int kSignals[4] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

void onFault(int sig, siginfo_t* info, void* context) {
    if (running && pthread_equal(pthread_self(), runner)) siglongjmp(escape, sig);
    for (int i = 0; i < 4; ++i)
        if (kSignals[i] == sig && before[i].sa_sigaction) { before[i].sa_sigaction(sig, info, context); return; }
    _exit(128 + sig);
}

int guarded(Kernel* k, const unsigned* d, size_t shared, void** params) {
    struct sigaction action = {};
    action.sa_sigaction = onFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &action, &before[i]);
    runner = pthread_self();
    int code = kOK;
    if (int sig = sigsetjmp(escape, 1)) {
        code = sig == SIGSEGV || sig == SIGBUS ? kIllegalAddress : kLaunchFailed;
    } else {
        running = 1;
        int ended = k->launch(d[0], d[1], d[2], d[3], d[4], d[5], shared, params);
        code = ended == 0 ? kOK : ended == 3 ? kIllegalAddress : kLaunchFailed;
    }
    running = 0;
    for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &before[i], nullptr);
    if (code) stuck = code;
    return code;
}

void corrupt(Kernel* k, void** params) {
    for (int i = 15; i >= 0; --i) {
        bool exists = true;
        for (int j = 0; j <= i; ++j) exists = exists && k->size(j) != 0;
        if (!exists || k->size(i) != 8) continue;
        void* p = *static_cast<void**>(params[i]);
        if (!inside(p, 4)) continue;
        static_cast<unsigned char*>(p)[2] ^= 0x40;
        return;
    }
}

int execute(Kernel* k, const unsigned* d, size_t shared, void** params) {
    if (k->name == knob("skip")) return kOK;
    bool own = k->name.rfind("rp_", 0) == 0;
    if (!own) {
        long n = ++launches;
        long slow = number("slow", 0);
        if (slow > 0) usleep(static_cast<useconds_t>(slow));
        if (n == number("hang", -1)) for (;;) pause();
        long sticky = number("sticky", -1);
        if (sticky > 0 && n >= sticky) return stuck = kLaunchFailed;
        int code = guarded(k, d, shared, params);
        long wrong = number("wrong", -1);
        if (code == kOK && wrong > 0 && n >= wrong) corrupt(k, params);
        return code;
    }
    return guarded(k, d, shared, params);
}

int launch(Kernel* k, const unsigned* d, size_t shared, void** params) {
    size_t threads = size_t(d[3]) * d[4] * d[5];
    if (threads == 0 || threads > 1024 || d[3] > 1024 || d[4] > 1024 || d[5] > 64) return kInvalidValue;
    if (d[0] == 0 || d[1] == 0 || d[2] == 0 || d[0] > 2147483647u || d[1] > 65535 || d[2] > 65535) return kInvalidValue;
    if (shared > size_t(k->allowed)) return kInvalidValue;
    if (!capturing) return execute(k, d, shared, params);
    std::vector<std::vector<char>> copies;
    for (unsigned i = 0; k->size(i) != 0; ++i) {
        const char* p = static_cast<const char*>(params[i]);
        copies.emplace_back(p, p + k->size(i));
    }
    std::vector<unsigned> dims(d, d + 6);
    capturing->work.push_back([k, dims, shared, copies]() mutable {
        std::vector<void*> ptrs;
        for (auto& c : copies) ptrs.push_back(c.data());
        return execute(k, dims.data(), shared, ptrs.data());
    });
    return kOK;
}

int later(std::function<int()> work) {
    if (!capturing) return work();
    capturing->work.push_back(std::move(work));
    return kOK;
}

int attribute(int code) {
    switch (code) {
    case 1: case 2: case 3: return 1024;
    case 4: return 64;
    case 5: return 2147483647;
    case 6: case 7: return 65535;
    case 8: return kDefaultShared;
    case 10: return 32;
    case 12: case 82: return 65536;
    case 13: return 1000000;
    case 16: return 2;
    case 36: return 1000000;
    case 37: return 64;
    case 38: return 1 << 20;
    case 39: return 2048;
    case 75: return 9;
    case 76: return 0;
    case 81: return 233472;
    case 95: return 0;
    case 97: return kMaxShared;
    case 106: return 32;
    case 108: return 1 << 19;
    case 111: return 1024;
    default: return -1;
    }
}

}  // namespace

API cuInit(unsigned) { ENTER("cuInit"); initialized = true; return kOK; }
API cuDriverGetVersion(int* v) { ENTER("cuDriverGetVersion"); *v = 12000; return kOK; }
API cuDeviceGetCount(int* n) { ENTER("cuDeviceGetCount"); *n = static_cast<int>(number("devices", 1)); return kOK; }
API cuDeviceGet(int* dev, int i) { ENTER("cuDeviceGet"); if (i < 0 || i >= number("devices", 1)) return kInvalidDevice; *dev = i; return kOK; }
API cuDeviceGetName(char* s, int n, int) { ENTER("cuDeviceGetName"); snprintf(s, static_cast<size_t>(n), "Ridgepoint emulated device"); return kOK; }
API cuDeviceGetUuid(unsigned char* id, int dev) { ENTER("cuDeviceGetUuid"); memset(id, 0xE0, 16); id[15] = static_cast<unsigned char>(dev); return kOK; }
API cuDeviceTotalMem_v2(size_t* n, int) { ENTER("cuDeviceTotalMem_v2"); *n = static_cast<size_t>(number("memory", kTotal)); return kOK; }
API cuDeviceGetAttribute(int* v, int code, int) { ENTER("cuDeviceGetAttribute"); int a = attribute(code); if (a < 0) return kInvalidValue; *v = a; return kOK; }
API cuDeviceGetPCIBusId(char* s, int n, int dev) { ENTER("cuDeviceGetPCIBusId"); snprintf(s, static_cast<size_t>(n), "0000:%02x:00.0", dev); return kOK; }
API cuDevicePrimaryCtxRetain(void** c, int) { ENTER("cuDevicePrimaryCtxRetain"); ++holders; *c = &stuck; return kOK; }
// The last holder's release ends the context, and its memory with it.
API cuDevicePrimaryCtxRelease_v2(int) {
    ENTER("cuDevicePrimaryCtxRelease_v2");
    if (--holders > 0) return kOK;
    holders = 0;
    for (auto& a : allocations) munmap(a.first - kPage, a.second + 2 * kPage);
    allocations.clear();
    used = 0;
    return kOK;
}
API cuCtxSetCurrent(void* c) { ENTER("cuCtxSetCurrent"); current = c != nullptr; return kOK; }
API cuCtxSynchronize() { ENTER("cuCtxSynchronize"); return current ? kOK : kInvalidContext; }
API cuCtxResetPersistingL2Cache() { ENTER("cuCtxResetPersistingL2Cache"); return current ? kOK : kInvalidContext; }
API cuMemGetInfo_v2(size_t* f, size_t* t) { ENTER("cuMemGetInfo_v2"); *t = static_cast<size_t>(number("memory", kTotal)); *f = *t > used ? *t - used : 0; return kOK; }

API cuMemAlloc_v2(void** p, size_t n) {
    ENTER("cuMemAlloc_v2");
    if (!current) return kInvalidContext;
    if (used + n > static_cast<size_t>(number("memory", kTotal))) return kOutOfMemory;
    size_t room = (n + kPage - 1) / kPage * kPage;
    char* base = static_cast<char*>(mmap(nullptr, room + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base == MAP_FAILED || mprotect(base + kPage, room, PROT_READ | PROT_WRITE)) return kOutOfMemory;
    allocations[base + kPage] = room;
    used += room;
    *p = base + kPage;
    return kOK;
}
API cuMemFree_v2(void* p) {
    ENTER("cuMemFree_v2");
    auto it = allocations.find(static_cast<char*>(p));
    if (it == allocations.end()) return kInvalidValue;
    munmap(it->first - kPage, it->second + 2 * kPage);
    used -= it->second;
    allocations.erase(it);
    return kOK;
}
API cuMemHostAlloc(void** p, size_t n, unsigned) { ENTER("cuMemHostAlloc"); return posix_memalign(p, 4096, n ? n : 1) ? kOutOfMemory : kOK; }
API cuMemFreeHost(void* p) { ENTER("cuMemFreeHost"); free(p); return kOK; }
API cuMemcpyHtoDAsync_v2(void* d, const void* s, size_t n, void*) {
    ENTER("cuMemcpyHtoDAsync_v2");
    if (!inside(d, n)) return kInvalidValue;
    return later([=] { memcpy(d, s, n); return int(kOK); });
}
API cuMemcpyDtoHAsync_v2(void* d, const void* s, size_t n, void*) {
    ENTER("cuMemcpyDtoHAsync_v2");
    if (!inside(s, n)) return kInvalidValue;
    return later([=] { memcpy(d, s, n); return int(kOK); });
}
API cuMemcpyDtoDAsync_v2(void* d, const void* s, size_t n, void*) {
    ENTER("cuMemcpyDtoDAsync_v2");
    if (!inside(d, n) || !inside(s, n)) return kInvalidValue;
    return later([=] { memmove(d, s, n); return int(kOK); });
}
API cuMemsetD8Async(void* d, unsigned char v, size_t n, void*) {
    ENTER("cuMemsetD8Async");
    if (!inside(d, n)) return kInvalidValue;
    return later([=] { memset(d, v, n); return int(kOK); });
}
API cuMemsetD32Async(void* d, unsigned v, size_t n, void*) {
    ENTER("cuMemsetD32Async");
    if (!inside(d, n * 4)) return kInvalidValue;
    return later([=] { for (size_t i = 0; i < n; ++i) static_cast<unsigned*>(d)[i] = v; return int(kOK); });
}
API cuStreamCreate(void** s, unsigned) { ENTER("cuStreamCreate"); *s = new int; return kOK; }
API cuStreamSynchronize(void*) { ENTER("cuStreamSynchronize"); return current ? kOK : kInvalidContext; }
API cuStreamDestroy_v2(void* s) { ENTER("cuStreamDestroy_v2"); delete static_cast<int*>(s); return kOK; }
API cuEventCreate(void** e, unsigned) { ENTER("cuEventCreate"); *e = new Event(); return kOK; }
API cuEventRecord(void* e, void*) {
    ENTER("cuEventRecord");
    return later([=] { Event* v = static_cast<Event*>(e); v->set = true; clock_gettime(CLOCK_MONOTONIC, &v->at); return int(kOK); });
}
API cuEventSynchronize(void*) { ENTER("cuEventSynchronize"); return kOK; }
API cuEventElapsedTime(float* ms, void* a, void* b) {
    ENTER("cuEventElapsedTime");
    Event *x = static_cast<Event*>(a), *y = static_cast<Event*>(b);
    if (!x->set || !y->set) return 400;
    *ms = static_cast<float>((y->at.tv_sec - x->at.tv_sec) * 1e3 + (y->at.tv_nsec - x->at.tv_nsec) / 1e6);
    return kOK;
}
API cuEventDestroy_v2(void* e) { ENTER("cuEventDestroy_v2"); delete static_cast<Event*>(e); return kOK; }

// imageSize reads an ELF image's length off its section header table, which ld puts last.
static size_t imageSize(const unsigned char* p) {
    if (memcmp(p, "\177ELF\2\1", 6)) return 0;
    uint64_t offset; uint16_t entry, count;
    memcpy(&offset, p + 40, 8); memcpy(&entry, p + 58, 2); memcpy(&count, p + 60, 2);
    return offset + size_t(entry) * count;
}
API cuModuleLoadData(void** m, const void* image) {
    ENTER("cuModuleLoadData");
    if (!current) return kInvalidContext;
    size_t n = imageSize(static_cast<const unsigned char*>(image));
    if (n == 0) return kInvalidImage;
    const char* folder = getenv("TMPDIR");
    std::string path = std::string(folder ? folder : "/tmp") + "/ridgepoint-module-XXXXXX";  // dlopen takes equal paths for one library
    int fd = mkstemp(&path[0]);
    if (fd < 0) return kOutOfMemory;
    size_t done = 0;
    for (ssize_t k; done < n && (k = write(fd, static_cast<const char*>(image) + done, n - done)) > 0;) done += static_cast<size_t>(k);
    close(fd);
    void* h = done == n ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    unlink(path.c_str());
    if (!h) { fprintf(stderr, "emulator: %s\n", done == n ? dlerror() : "no room for the module"); return kInvalidImage; }
    void** place = static_cast<void**>(dlsym(h, "ridgepoint_physical"));
    if (!physical.stacks) {
        void* p = mmap(nullptr, kStacksBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED) physical.stacks = static_cast<char*>(p);
    }
    if (!place || !physical.stacks) { dlclose(h); return place ? kOutOfMemory : kInvalidImage; }
    *place = &physical;
    *m = new Module{h, {}};
    return kOK;
}
API cuModuleUnload(void* m) {
    ENTER("cuModuleUnload");
    Module* mod = static_cast<Module*>(m);
    dlclose(mod->handle);
    for (auto& k : mod->kernels) delete k.second;
    delete mod;
    return kOK;
}
API cuModuleGetFunction(void** f, void* m, const char* name) {
    ENTER("cuModuleGetFunction");
    Module* mod = static_cast<Module*>(m);
    Kernel*& k = mod->kernels[name];
    if (!k) {
        void* launch = dlsym(mod->handle, (std::string("ridgepoint_launch_") + name).c_str());
        void* size = dlsym(mod->handle, (std::string("ridgepoint_size_") + name).c_str());
        if (!launch || !size) { mod->kernels.erase(name); return kNotFound; }
        k = new Kernel{name, reinterpret_cast<LaunchFunc>(launch), reinterpret_cast<unsigned (*)(unsigned)>(size)};
    }
    *f = k;
    return kOK;
}
API cuModuleGetGlobal_v2(void** p, size_t* n, void* m, const char* name) {
    ENTER("cuModuleGetGlobal_v2");
    *p = dlsym(static_cast<Module*>(m)->handle, name);
    *n = 0;
    return *p ? kOK : kNotFound;
}
API cuFuncGetAttribute(int* v, int code, void*) { ENTER("cuFuncGetAttribute"); *v = code == 0 ? 1024 : code == 4 ? 32 : 0; return kOK; }
API cuFuncSetAttribute(void* f, int code, int v) {
    ENTER("cuFuncSetAttribute");
    if (code == 8) { if (v > kMaxShared) return kInvalidValue; static_cast<Kernel*>(f)->allowed = v; return kOK; }
    if (code == 14) static_cast<Kernel*>(f)->wide = v != 0;
    return kOK;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void*, int threads, size_t shared) {
    ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *n = threads > 0 ? 2048 / threads : 0;
    if (shared > 0 && *n > static_cast<int>(kMaxShared / shared)) *n = static_cast<int>(kMaxShared / shared);
    return kOK;
}
API cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void*, void** params, void**) {
    ENTER("cuLaunchKernel");
    if (!current) return kInvalidContext;
    unsigned d[6] = {gx, gy, gz, bx, by, bz};
    return launch(static_cast<Kernel*>(f), d, shared, params);
}
#include "extended.h"
API cuStreamBeginCapture_v2(void*, int) { ENTER("cuStreamBeginCapture_v2"); if (capturing) return kInvalidValue; capturing = new Graph; return kOK; }
API cuStreamEndCapture(void*, void** g) { ENTER("cuStreamEndCapture"); if (!capturing) return kInvalidValue; *g = capturing; capturing = nullptr; return kOK; }
API cuGraphInstantiateWithFlags(void** e, void* g, unsigned long long) { ENTER("cuGraphInstantiateWithFlags"); *e = new Graph(*static_cast<Graph*>(g)); return kOK; }
API cuGraphLaunch(void* e, void*) {
    ENTER("cuGraphLaunch");
    for (auto& w : static_cast<Graph*>(e)->work) if (int code = w()) return code;
    return kOK;
}
API cuGraphExecDestroy(void* e) { ENTER("cuGraphExecDestroy"); delete static_cast<Graph*>(e); return kOK; }
API cuGraphDestroy(void* g) { ENTER("cuGraphDestroy"); delete static_cast<Graph*>(g); return kOK; }

static const char* nameOf(int code) {
    switch (code) {
    case kOK: return "CUDA_SUCCESS";
    case kInvalidValue: return "CUDA_ERROR_INVALID_VALUE";
    case kOutOfMemory: return "CUDA_ERROR_OUT_OF_MEMORY";
    case kInvalidDevice: return "CUDA_ERROR_INVALID_DEVICE";
    case kInvalidImage: return "CUDA_ERROR_INVALID_IMAGE";
    case kInvalidContext: return "CUDA_ERROR_INVALID_CONTEXT";
    case kNotFound: return "CUDA_ERROR_NOT_FOUND";
    case kIllegalAddress: return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case kLaunchFailed: return "CUDA_ERROR_LAUNCH_FAILED";
    case kNotSupported: return "CUDA_ERROR_NOT_SUPPORTED";
    case kInvalidClusterSize: return "CUDA_ERROR_INVALID_CLUSTER_SIZE";
    default: return nullptr;
    }
}
API cuGetErrorName(int code, const char** s) { *s = nameOf(code); return *s ? kOK : kInvalidValue; }

// HIP's names for the same functions.
#include "hip_names.h"

API nvmlInit_v2() { return 0; }
API nvmlShutdown() { return 0; }
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int) { return "emulated NVML error"; }
API nvmlDeviceGetHandleByUUID(const char*, void** d) { *d = &stuck; return 0; }
API nvmlDeviceGetClockInfo(void*, int domain, unsigned* mhz) { *mhz = domain == 2 ? 1000 : 900; return 0; }
API nvmlDeviceGetTemperature(void*, int, unsigned* c) { *c = 40; return 0; }
API nvmlDeviceGetPowerUsage(void*, unsigned* mw) { *mw = 12345; return 0; }
API nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) { *bits = static_cast<unsigned long long>(number("throttle", 0)); return 0; }
API nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* n, void* infos) {
    long pid = number("process", 0);
    unsigned own = static_cast<unsigned>(getpid());
    memcpy(infos, &own, 4);
    *n = 1;
    if (pid > 0) { unsigned p = static_cast<unsigned>(pid); memcpy(static_cast<char*>(infos) + 24, &p, 4); *n = 2; }
    return 0;
}
API nvmlSystemGetDriverVersion(char* s, unsigned n) { snprintf(s, n, "emulated"); return 0; }
