// Launches with attributes and tensor maps, as cuda.h declares them. What they ask for is checked as a driver checks it; blocks run
// one after another, so that a grid whose blocks wait for each other is refused. Included by driver.cpp.

struct LaunchAttribute {  // CUlaunchAttribute
    unsigned id;
    char pad[4];
    union {
        int cooperative;
        unsigned cluster[3];
        char room[64];
    } value;
};
struct LaunchConfig {  // CUlaunchConfig
    unsigned grid[3], block[3], shared;
    void* stream;
    const LaunchAttribute* attrs;
    unsigned count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "not as cuda.h lays them out");

enum { kInvalidClusterSize = 912, kAttributeCooperative = 2, kAttributeCluster = 4, kPortableCluster = 8, kMaxCluster = 16 };

API cuLaunchKernelEx(const LaunchConfig* c, void* f, void** params, void**) {
    ENTER("cuLaunchKernelEx");
    if (!current) return kInvalidContext;
    Kernel* k = static_cast<Kernel*>(f);
    for (unsigned i = 0; i < c->count; ++i) {
        const LaunchAttribute& a = c->attrs[i];
        if (a.id == kAttributeCooperative) {
            if (a.value.cooperative && (unsigned long long)c->grid[0] * c->grid[1] * c->grid[2] > 1) return kNotSupported;
        } else if (a.id == kAttributeCluster) {
            unsigned blocks = 1;
            for (int d = 0; d < 3; ++d) {
                unsigned n = a.value.cluster[d];
                if (n == 0 || c->grid[d] % n) return kInvalidClusterSize;
                blocks *= n;
            }
            if (blocks > kMaxCluster || (blocks > kPortableCluster && !k->wide)) return kInvalidClusterSize;
        } else {
            return kInvalidValue;
        }
    }
    unsigned d[6] = {c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2]};
    return launch(k, d, c->shared, params);
}

// EncodedMap is what stands in for CUtensorMap's opaque 128 bytes.
struct EncodedMap { unsigned long long magic, base, dims[5], strides[4]; unsigned box[5]; unsigned type, rank, swizzle; };
static_assert(sizeof(EncodedMap) <= 128, "a tensor map has 128 bytes");

// The rules are those of "cuTensorMapEncodeTiled" in the CUDA driver API's reference.
API cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* base, const unsigned long long* dims, const unsigned long long* strides, const unsigned* box,
                           const unsigned* steps, int interleave, int swizzle, int promotion, int fill) {
    ENTER("cuTensorMapEncodeTiled");
    static const unsigned sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    if (reinterpret_cast<uintptr_t>(map) % 64 || type < 0 || type > 9 || rank < 1 || rank > 5 || reinterpret_cast<uintptr_t>(base) % 16) return kInvalidValue;
    if (interleave != 0 || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill != 0) return kInvalidValue;
    EncodedMap e = {};
    e.magic = 0x70616d726f736e65ull, e.base = reinterpret_cast<uintptr_t>(base), e.type = unsigned(type), e.rank = rank, e.swizzle = unsigned(swizzle);
    for (unsigned i = 0; i < rank; ++i) {
        if (dims[i] == 0 || dims[i] > (1ull << 32) || box[i] == 0 || box[i] > 256 || steps[i] < 1 || steps[i] > 8) return kInvalidValue;
        if (i + 1 < rank && (strides[i] % 16 || strides[i] >= (1ull << 40))) return kInvalidValue;
        e.dims[i] = dims[i], e.box[i] = box[i];
        if (i + 1 < rank) e.strides[i] = strides[i];
    }
    unsigned inner = box[0] * sizes[type];
    static const unsigned spans[] = {0, 32, 64, 128};
    if (inner % 16 || (swizzle && inner > spans[swizzle])) return kInvalidValue;
    memset(map, 0, 128);
    memcpy(map, &e, sizeof e);
    return kOK;
}
