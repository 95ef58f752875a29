// The engine's own kernels. They use no header, so that NVRTC compiles them without a toolkit, and no arch's own instructions.
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

// Scratch is the shared memory of a block, all of it dynamic: what is static in one kernel of a module takes the same place from
// all of them on the emulated device, and rp_scribble must reach all. Its parts are not used twice between two barriers.
struct Scratch { double parts[4][32], got; u64 words[32], first, kind; u32 count, last; };
extern __shared__ u64 rp_shared[];
__device__ __forceinline__ Scratch& rp_scratch() { return *(Scratch*)rp_shared; }

// Move rewrites one buffer before a launch: kind 0 copies bytes from src; kind 1 fills it with poison, the block of period
// bytes at src laid out again and again.
struct Move { u64 dst, src, bytes, period; u32 kind, salt; };

__device__ __forceinline__ u64 rp_mix(u64 v) {  // the finalizer of splitmix64
    v += 0x9e3779b97f4a7c15ull;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
    return v ^ (v >> 31);
}

// Tile is one block's share of an item: bytes [from, to), from being a multiple of 16.
struct Tile { u64 item, from, to; };

// rp_move runs a block's share of a move. start is where in the poison blocks this launch's seed starts, a multiple of 64, as
// periods are; buffers and poison blocks are aligned to 16 bytes.
__device__ __forceinline__ void rp_move(const Move& m, const Tile& t, u64 start) {
    uint4* dst = (uint4*)m.dst;
    const uint4* src = (const uint4*)m.src;
    u64 last = t.to / 16, step = blockDim.x;
    if (m.kind == 0) {  // four loads are in flight before the first store
        u64 i = t.from / 16 + threadIdx.x;
        for (; i + 3 * step < last; i += 4 * step) {
            uint4 a = src[i], b = src[i + step], c = src[i + 2 * step], d = src[i + 3 * step];
            dst[i] = a; dst[i + step] = b; dst[i + 2 * step] = c; dst[i + 3 * step] = d;
        }
        for (; i < last; i += step) dst[i] = src[i];
    } else {
        u64 period = m.period / 16, i = t.from / 16 + threadIdx.x, at = (start / 16 + i) % period;
        for (; i < last; i += step) {
            dst[i] = src[at];
            at += step;
            if (at >= period) at -= period;
        }
    }
    u64 i = last * 16 + threadIdx.x;
    if (i < t.to) ((u8*)m.dst)[i] = ((const u8*)m.src)[m.kind == 0 ? i : (start + i) % m.period];
}

// Where two sets differ in few places, a block's share of a buffer goes from the one to the other by its delta: how many of its
// pieces of 16 bytes differ, at most RP_DELTA, and which; more are RP_NONE.
#define RP_NONE 0xffffffffu
#define RP_DELTA 63
struct Delta { u32 count, piece[RP_DELTA]; };

// rp_diff makes the deltas of every input's shares from the moves of two sets.
extern "C" __global__ void rp_diff(const Move* from, const Move* to, const Tile* tiles, Delta* deltas) {
    Tile t = tiles[blockIdx.x];
    Move a = from[t.item], b = to[t.item];
    Delta* d = deltas + blockIdx.x;
    u32& count = rp_scratch().count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const uint4 *x = (const uint4*)a.src, *y = (const uint4*)b.src;
    u64 last = t.to / 16, i = t.from / 16 + threadIdx.x;
    for (; a.kind == 0 && i < last; i += blockDim.x) {
        uint4 v = x[i], w = y[i];
        if (v.x == w.x && v.y == w.y && v.z == w.z && v.w == w.w) continue;
        u32 k = atomicAdd(&count, 1u);
        if (k < RP_DELTA) d->piece[k] = (u32)(i - t.from / 16);
    }
    if (threadIdx.x == 0 && a.kind == 0 && 16 * last < t.to) {  // a piece of fewer bytes, taken to differ
        u32 k = atomicAdd(&count, 1u);
        if (k < RP_DELTA) d->piece[k] = (u32)(last - t.from / 16);
    }
    __syncthreads();
    if (threadIdx.x == 0) d->count = count > RP_DELTA ? RP_NONE : count;
}

// rp_step moves a block's share by its delta. Bytes past the end of a buffer stay as they are.
__device__ __forceinline__ void rp_step(const Move& m, const Tile& t, const Delta* d, u32 count) {
    for (u32 k = threadIdx.x; k < count; k += blockDim.x) {
        u64 at = t.from + 16ull * d->piece[k];
        if (at + 16 <= t.to) *(uint4*)(m.dst + at) = *(const uint4*)(m.src + at);
        else for (u64 i = at; i < t.to; ++i) ((u8*)m.dst)[i] = ((const u8*)m.src)[i];
    }
}

// rp_prepare runs every move.
extern "C" __global__ void rp_prepare(const Move* moves, const Tile* tiles, u64 start) {
    Tile t = tiles[blockIdx.x];
    Move m = moves[t.item];
    rp_move(m, t, start);
}

// Zone is a stretch of memory that no candidate may write.
struct Zone { u64 at, bytes; u32 buffer, after; };

// Look says what is looked at of a buffer after a launch: the copy that an input must equal (0: none), and which output it is
// (RP_NONE: none).
struct Look { u64 master; u32 output, pad; };

// Breach is what is found wrong with zones and inputs after one launch; first is the complement of (item << 44 | offset), so that
// zero means none.
struct Breach { u64 zoneCount, zoneFirst, inputCount, inputFirst, done, mac, pad0, pad1; };

__device__ __forceinline__ u8 rp_zone_byte(u64 address) { return (u8)(rp_mix(address >> 3) >> (8 * (address & 7))); }

extern "C" __global__ void rp_zones_fill(const Zone* zones) {
    Zone z = zones[blockIdx.x];
    for (u64 i = threadIdx.x; i < z.bytes; i += blockDim.x) ((u8*)z.at)[i] = rp_zone_byte(z.at + i);
}

__device__ __forceinline__ void rp_note(u64* count, u64* first, u64 item, u64 offset) {
    atomicAdd(count, 1ull);
    atomicMax(first, ~(item << 44 | offset));
}

// rp_zone checks a zone, eight bytes a step where they are aligned.
__device__ __forceinline__ void rp_zone(const Zone& z, u64 item, Breach* out) {
    u64 head = (8 - (z.at & 7)) & 7;
    if (head > z.bytes) head = z.bytes;
    u64 words = (z.bytes - head) / 8, tail = head + 8 * words;
    if (threadIdx.x < head && ((const u8*)z.at)[threadIdx.x] != rp_zone_byte(z.at + threadIdx.x)) rp_note(&out->zoneCount, &out->zoneFirst, item, threadIdx.x);
    const u64* p = (const u64*)(z.at + head);
    for (u64 k = threadIdx.x; k < words; k += blockDim.x) {
        u64 want = rp_mix((u64)(p + k) >> 3), got = p[k];
        for (u32 b = 0; got != want && b < 8; ++b)
            if ((u8)(got >> (8 * b)) != (u8)(want >> (8 * b))) rp_note(&out->zoneCount, &out->zoneFirst, item, head + 8 * k + b);
    }
    u64 i = tail + threadIdx.x;
    if (i < z.bytes && ((const u8*)z.at)[i] != rp_zone_byte(z.at + i)) rp_note(&out->zoneCount, &out->zoneFirst, item, i);
}

// rp_same checks a block's share of an input against its copy.
__device__ __forceinline__ void rp_same(u64 at, u64 master, const Tile& t, Breach* out) {
    const uint4 *a = (const uint4*)at, *b = (const uint4*)master;
    u64 last = t.to / 16;
    for (u64 i = t.from / 16 + threadIdx.x; i < last; i += blockDim.x) {
        uint4 x = a[i], y = b[i];
        if (x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w) rp_note(&out->inputCount, &out->inputFirst, t.item, i * 16);
    }
    u64 i = last * 16 + threadIdx.x;
    if (i < t.to && ((const u8*)at)[i] != ((const u8*)master)[i]) rp_note(&out->inputCount, &out->inputFirst, t.item, i);
}

// Result is what is found of one output of one launch. first is the complement of the index of the first mismatch, which got, want
// and kind are about; lock is held while they change.
struct Result { u64 mismatches, nonFinite, unwritten, first, last, maxAbs; double sumAbs; u64 done; double got, want; u64 kind; double proj[3]; u64 mac; u32 lock, pad; };

// Types are numbered as harness.DType: float64 1, float32 2, float16 3, bfloat16 4, float8_e4m3 5, float8_e5m2 6, int64 7,
// int32 8, int8 9, uint8 10, bool 11.
__device__ __forceinline__ u32 rp_size(u32 type) {
    switch (type) {
    case 1: case 7: return 8;
    case 2: case 8: return 4;
    case 3: case 4: return 2;
    default: return 1;
    }
}
__device__ __forceinline__ double rp_small(u32 bits, int exponentBits, int mantissaBits, bool infinities) {
    u32 e = bits >> mantissaBits & ((1u << exponentBits) - 1), m = bits & ((1u << mantissaBits) - 1), top = (1u << exponentBits) - 1;
    int bias = (1 << (exponentBits - 1)) - 1;
    double sign = bits >> (exponentBits + mantissaBits) & 1 ? -1.0 : 1.0;
    if (infinities && e == top) return m ? __longlong_as_double(0x7ff8000000000000ll) : sign * __longlong_as_double(0x7ff0000000000000ll);
    if (!infinities && e == top && m == (1u << mantissaBits) - 1) return __longlong_as_double(0x7ff8000000000000ll);
    double fraction = (e ? 1.0 : 0.0) + (double)m / (double)(1u << mantissaBits);
    int power = (e ? (int)e : 1) - bias;
    return sign * fraction * __longlong_as_double((long long)(1023 + power) << 52);
}
__device__ __forceinline__ double rp_load(const void* p, u64 i, u32 type) {
    switch (type) {
    case 1: return ((const double*)p)[i];
    case 2: return (double)((const float*)p)[i];
    case 3: return rp_small(((const unsigned short*)p)[i], 5, 10, true);
    case 4: return (double)__int_as_float((int)((u32)((const unsigned short*)p)[i] << 16));
    case 5: return rp_small(((const u8*)p)[i], 4, 3, false);
    case 6: return rp_small(((const u8*)p)[i], 5, 2, true);
    case 7: return (double)((const long long*)p)[i];
    case 8: return (double)((const int*)p)[i];
    case 9: return (double)((const signed char*)p)[i];
    case 10: return (double)((const u8*)p)[i];
    default: return ((const u8*)p)[i] ? 1.0 : 0.0;
    }
}

// Expected values lie on the device under a mask that only the host knows; kHole marks elements between strides.
#define RP_HOLE 0x7ff4c0ffee000000ull
__device__ __forceinline__ u64 rp_mask_word(u64 key, u64 pad, u64 i) { return rp_mix(key ^ i) ^ pad; }

__device__ __forceinline__ double rp_warp_sum(double v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// rp_block_sum returns to the first thread what v is over its block, of at most 1024 threads: many atomic additions to one place
// would wait for each other. parts is shared memory for 32 values, which nobody reads afterwards.
__device__ __forceinline__ double rp_block_sum(double v, double* parts) {
    v = rp_warp_sum(v);
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x == 0)
        for (u32 w = 1; w < (blockDim.x + 31) / 32; ++w) v += parts[w];
    return v;
}

// rp_sign signs what all blocks have found of an output: all of it is loaded before the first word is mixed, since a load takes as
// long as ten mixes. The key is a launch's own, and the output's number cannot be made up for by the first word, which is small: what
// was found of another launch or output does not pass for this one's.
__device__ void rp_sign(Result* out, u32 index, u64 key) {
    volatile u64* v = (volatile u64*)out;
    const int at[13] = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13};  // all but done
    u64 w[13], m = key ^ (u64)(index + 1) << 48;
#pragma unroll
    for (int k = 0; k < 13; ++k) w[k] = v[at[k]];
#pragma unroll
    for (int k = 0; k < 13; ++k) m = rp_mix(m ^ w[k]);
    out->mac = m;
}

// Output is an output of a set: n elements at at. One that projects is compared by projections under signs where the whole is not
// asked for.
struct Output { u64 at, expected, block, period, n; u32 type, projects; double abs, rel; u64 signs, pad; };

__device__ __forceinline__ bool rp_poisoned(const Output& o, u64 start, u64 i) {
    u32 size = rp_size(o.type);
    const u8 *got = (const u8*)o.at + i * size, *block = (const u8*)o.block + (start + i * size) % o.period;
    for (u32 b = 0; b < size; ++b)
        if (got[b] != block[b]) return false;
    return true;
}

// Proof is what is known of a block's share of an output that was once compared whole and was right: a keyed hash of its bits and
// of the errors that go with them. The same bits are as right in the next launch.
struct Proof { u64 mac; double sum, most; };

// rp_fold multiplies two secret factors: how a change to one of them changes the product, nobody can say who does not know the other.
// With a constant factor a flipped sign changed known bits, which flips in the next word took back.
__device__ __forceinline__ u64 rp_fold(u64 a, u64 b) { return a * b ^ __umul64hi(a, b); }

// rp_bits returns to every thread a keyed hash of a share's bits. Each share has its own key, and in it each thread.
__device__ __forceinline__ u64 rp_bits(u64 at, const Tile& t, u64 key) {
    u64* parts = rp_scratch().words;
    u64 last = t.to / 16, h = rp_mix(rp_mix(key ^ t.item << 44 ^ t.from) ^ threadIdx.x), other = rp_mix(~key);
    for (u64 i = t.from / 16 + threadIdx.x; i < last; i += blockDim.x) {
        uint4 v = ((const uint4*)at)[i];
        h = rp_fold(h ^ ((u64)v.y << 32 | v.x), other ^ ((u64)v.w << 32 | v.z));
    }
    u64 i = last * 16 + threadIdx.x;
    if (i < t.to) h = rp_fold(h ^ ((const u8*)at)[i], other);
    h = rp_mix(h);
    for (int o = 16; o > 0; o >>= 1) h ^= __shfl_xor_sync(0xffffffffu, h, o);
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = h;
    __syncthreads();
    h = 0;
    for (u32 w = 0; w < blockDim.x / 32; ++w) h ^= parts[w];
    return h;
}

__device__ __forceinline__ u64 rp_prove(u64 bits, double sum, double most, u64 key) {
    return rp_mix(rp_mix(rp_mix(bits ^ key) ^ (u64)__double_as_longlong(sum)) ^ (u64)__double_as_longlong(most));
}

// Found is what one thread finds of an output. kinds: 1 mismatch, 2 not finite, 3 unwritten.
struct Found { double sum, most, got; u64 first, last, kind; u32 mismatches, nonFinite, unwritten; };
__device__ __forceinline__ Found rp_nothing() {
    Found f = {0.0, 0.0, 0.0, ~0ull, 0, 0, 0, 0, 0};
    return f;
}

// rp_check holds element i against its expected value: it passes when |got - want| <= abs + rel*|want|, written so that NaN never
// passes. A thread sees its elements in ascending order.
__device__ __forceinline__ void rp_check(const Output& o, u64 start, u64 i, u64 bits, double got, Found& f) {
    const double top = 1.7976931348623157e308;
    if (bits == RP_HOLE) return;
    double want = __longlong_as_double((long long)bits), d = fabs(got - want), limit = o.abs + o.rel * fabs(want);
    if (!(limit <= top)) limit = top;
    if (!(d <= limit)) {
        bool same = got == want || (got != got && want != want);
        if (!same) {
            u64 kind = rp_poisoned(o, start, i) ? 3 : !(fabs(got) <= top) ? 2 : 1;
            ++f.mismatches;
            if (kind == 2) ++f.nonFinite;
            if (kind == 3) ++f.unwritten;
            if (f.first == ~0ull) { f.first = i; f.got = got; f.kind = kind; }
            f.last = i;
        }
        if (!(d <= top)) return;
    }
    f.sum += d;
    if (d > f.most) f.most = d;
}

// rp_range checks elements [from, to), from being a multiple of 4; float32 is loaded four elements at once.
__device__ __forceinline__ void rp_range(const Output& o, u64 from, u64 to, u64 start, u64 maskKey, u64 maskPad, Found& f) {
    const u64* expected = (const u64*)o.expected;
    u64 i = from;
    if (o.type == 2) {
        u64 quads = to / 4;
        for (u64 q = from / 4 + threadIdx.x; q < quads; q += blockDim.x) {
            float4 v = ((const float4*)o.at)[q];
            ulonglong2 a = ((const ulonglong2*)expected)[2 * q], b = ((const ulonglong2*)expected)[2 * q + 1];
            rp_check(o, start, 4 * q, a.x ^ rp_mask_word(maskKey, maskPad, 4 * q), (double)v.x, f);
            rp_check(o, start, 4 * q + 1, a.y ^ rp_mask_word(maskKey, maskPad, 4 * q + 1), (double)v.y, f);
            rp_check(o, start, 4 * q + 2, b.x ^ rp_mask_word(maskKey, maskPad, 4 * q + 2), (double)v.z, f);
            rp_check(o, start, 4 * q + 3, b.y ^ rp_mask_word(maskKey, maskPad, 4 * q + 3), (double)v.w, f);
        }
        i = 4 * quads;
    }
    for (i += threadIdx.x; i < to; i += blockDim.x) rp_check(o, start, i, expected[i] ^ rp_mask_word(maskKey, maskPad, i), rp_load((const void*)o.at, i, o.type), f);
}

// rp_gather adds what a block's threads have found of an output to what is known of it. It returns to the first thread whether all
// is right, with the block's sum and largest error.
__device__ __forceinline__ bool rp_gather(const Found& f, Result* out, double& sum, double& most) {
    Scratch& mine = rp_scratch();
    double *sums = mine.parts[0], *tops = mine.parts[1], &got = mine.got;
    u64 &first = mine.first, &kind = mine.kind;
    most = f.most;
    for (int s = 16; s > 0; s >>= 1) {
        double other = __shfl_xor_sync(0xffffffffu, most, s);
        if (other > most) most = other;
    }
    if ((threadIdx.x & 31) == 0) tops[threadIdx.x >> 5] = most;
    if (threadIdx.x == 0) first = ~0ull;
    sum = rp_block_sum(f.sum, sums);
    if (f.mismatches) {
        atomicAdd(&out->mismatches, (u64)f.mismatches);
        if (f.nonFinite) atomicAdd(&out->nonFinite, (u64)f.nonFinite);
        if (f.unwritten) atomicAdd(&out->unwritten, (u64)f.unwritten);
        atomicMax(&out->last, f.last);
        atomicMin(&first, f.first);
    }
    __syncthreads();
    if (f.mismatches && f.first == first) { got = f.got; kind = f.kind; }
    __syncthreads();
    if (threadIdx.x != 0) return false;
    for (u32 w = 1; w < blockDim.x / 32; ++w)
        if (tops[w] > most) most = tops[w];
    atomicAdd(&out->sumAbs, sum);
    atomicMax(&out->maxAbs, (u64)__double_as_longlong(most));
    if (first == ~0ull) return true;
    while (atomicCAS(&out->lock, 0u, 1u)) {}
    __threadfence();
    volatile Result* v = out;
    if (~first > v->first) { v->first = ~first; v->got = got; v->kind = kind; }
    __threadfence();
    atomicExch(&out->lock, 0u);
    return false;
}

// rp_whole checks a block's share of an output. With known, the bits that the proof is about pass without a look at what is
// expected. proof may be null.
__device__ __forceinline__ void rp_whole(const Output& o, const Tile& t, bool known, Proof* proof, u64 start, Result* out, u64 key, u64 maskKey, u64 maskPad) {
    u64 bits = proof ? rp_bits(o.at, t, key) : 0;
    Proof p = {0, 0.0, 0.0};
    if (proof) p = *proof;
    if (known && p.mac && rp_prove(bits, p.sum, p.most, key) == p.mac) {
        if (threadIdx.x == 0) {
            atomicAdd(&out->sumAbs, p.sum);
            atomicMax(&out->maxAbs, (u64)__double_as_longlong(p.most));
        }
        return;
    }
    u32 size = rp_size(o.type);
    Found f = rp_nothing();
    rp_range(o, t.from / size, t.to / size, start, maskKey, maskPad, f);
    double sum, most;
    if (!rp_gather(f, out, sum, most) || !proof) return;
    proof->sum = sum;
    proof->most = most;
    proof->mac = rp_prove(bits, sum, most, key);
}

__device__ __forceinline__ void rp_signs(double v, u64 h, double& p0, double& p1, double& p2) {
    p0 += h & 1 ? v : -v;
    p1 += h & 2 ? v : -v;
    p2 += h & 4 ? v : -v;
}

// rp_scale is what a launch's projections are multiplied by, one of 256 powers of two with either sign: sums that a kernel has seen of
// another launch are no head start in this one. It rounds nothing: of integers the sums must be exact.
__device__ __forceinline__ double rp_scale(u64 key) {
    u64 h = rp_mix(~key);
    return __longlong_as_double((long long)(h << 63 | (1023 - 128 + (h >> 56)) << 52));
}

// rp_project sums elements [from, to) under three random signs in float64; four neighbours, the first a multiple of 4, draw theirs
// from one hash.
__device__ __forceinline__ void rp_project(const Output& o, u64 from, u64 to, Result* out, u64 key) {
    double p0 = 0, p1 = 0, p2 = 0;
    u64 i = from;
    if (o.type == 2) {
        u64 quads = to / 4, step = blockDim.x, q = from / 4 + threadIdx.x;
        const float4* at = (const float4*)o.at;
        for (; q < quads; q += 2 * step) {
            bool two = q + step < quads;
            float4 v = at[q], w = two ? at[q + step] : make_float4(0.f, 0.f, 0.f, 0.f);
            u64 h = rp_mix(o.signs ^ q), g = rp_mix(o.signs ^ (q + step));
            rp_signs((double)v.x, h, p0, p1, p2);
            rp_signs((double)v.y, h >> 3, p0, p1, p2);
            rp_signs((double)v.z, h >> 6, p0, p1, p2);
            rp_signs((double)v.w, h >> 9, p0, p1, p2);
            rp_signs((double)w.x, g, p0, p1, p2);
            rp_signs((double)w.y, g >> 3, p0, p1, p2);
            rp_signs((double)w.z, g >> 6, p0, p1, p2);
            rp_signs((double)w.w, g >> 9, p0, p1, p2);
        }
        i = 4 * quads;
    }
    for (i += threadIdx.x; i < to; i += blockDim.x) rp_signs(rp_load((const void*)o.at, i, o.type), rp_mix(o.signs ^ (i / 4)) >> (3 * (i & 3)), p0, p1, p2);
    double(*parts)[32] = rp_scratch().parts;
    p0 = rp_block_sum(p0, parts[0]);
    p1 = rp_block_sum(p1, parts[1]);
    p2 = rp_block_sum(p2, parts[2]);
    if (threadIdx.x == 0) {
        double scale = rp_scale(key);
        atomicAdd(&out->proj[0], p0 * scale);
        atomicAdd(&out->proj[1], p1 * scale);
        atomicAdd(&out->proj[2], p2 * scale);
    }
}

// rp_finish fills in what was expected at an output's first mismatch, and signs its result.
__device__ __forceinline__ void rp_finish(const Output& o, u32 index, Result* out, u64 key, u64 maskKey, u64 maskPad) {
    u64 first = ((volatile Result*)out)->first;
    if (first) out->want = __longlong_as_double((long long)(((const u64*)o.expected)[~first] ^ rp_mask_word(maskKey, maskPad, ~first)));
    rp_sign(out, index, key);
}

// rp_turn is all that lies between two launches: its first zoneCount blocks look at the red zones, and each of the others at its
// share of a buffer, an input against its copy and an output against its expected values or by projections, and then rewrites or
// poisons that share for the next launch, where next lists how. With apart the next launch has its buffers elsewhere, and what this
// one wrote is poisoned as well. The last block signs what was found.
//
// every and phase say which shares of the inputs are looked at: one in every. These are written whole for the next launch; with
// deltas, of the others what differs is written. With whole no output is compared by projections or by proofs.
extern "C" __global__ void __launch_bounds__(256, 4) rp_turn(const Zone* zones, u32 zoneCount, u32 whole, const Tile* tiles, const Look* looks, Proof* proofs, u32 every, u32 phase,
                                                             const Move* moves, const Move* next, u32 apart, const Delta* deltas, u64 nextStart,
                                                             const Output* outputs, u32 outputCount, u64 start, Breach* breach, u64 key, u64 proofKey, u64 maskKey, u64 maskPad) {
    Result* results = (Result*)(breach + 1);
    if (blockIdx.x < zoneCount) {
        rp_zone(zones[blockIdx.x], blockIdx.x, breach);
    } else {
        u32 mine = blockIdx.x - zoneCount;
        Tile t = tiles[mine];
        Look l = looks[t.item];
        bool looking = (mine + phase) % every == 0;
        if (l.master && looking) rp_same(moves[t.item].dst, l.master, t, breach);
        if (l.output != RP_NONE && outputCount) {
            Output o = outputs[l.output];
            u32 size = rp_size(o.type);
            if (o.projects && !whole) rp_project(o, t.from / size, t.to / size, results + l.output, key);
            else rp_whole(o, t, !whole, proofs ? proofs + mine : (Proof*)0, start, results + l.output, proofKey, maskKey, maskPad);
        }
        if (next) {
            __syncthreads();  // nobody reads the share any more
            Move m = next[t.item];
            u32 count = deltas && l.master && !looking ? deltas[mine].count : RP_NONE;
            if (count == RP_NONE) rp_move(m, t, nextStart);
            else rp_step(m, t, deltas + mine, count);
            if (apart && !l.master) rp_move(moves[t.item], t, nextStart);
        }
    }
    u32& last = rp_scratch().last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&breach->done, 1ull) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (u32 o = threadIdx.x; o < outputCount; o += blockDim.x) rp_finish(outputs[o], o, results + o, key, maskKey, maskPad);
    if (threadIdx.x == blockDim.x - 1) {
        volatile Breach* v = breach;
        u64 zoned = v->zoneCount, zoneFirst = v->zoneFirst, inputs = v->inputCount, inputFirst = v->inputFirst;
        breach->mac = rp_mix(rp_mix(rp_mix(rp_mix(zoned ^ key) ^ zoneFirst) ^ inputs) ^ inputFirst);
    }
}

// rp_compare compares one output of a set with what lies in its buffer, whole or, with projects, by projections.
extern "C" __global__ void rp_compare(const Output* outputs, u32 index, u32 projects, u64 start, Result* out, u64 key, u64 maskKey, u64 maskPad) {
    Output o = outputs[index];
    u64 share = ((o.n + gridDim.x - 1) / gridDim.x + 3) / 4 * 4, from = blockIdx.x * share, to = from + share < o.n ? from + share : o.n;
    if (from > to) from = to;
    if (projects) {
        rp_project(o, from, to, out, key);
    } else {
        Found f = rp_nothing();
        double sum, most;
        rp_range(o, from, to, start, maskKey, maskPad, f);
        rp_gather(f, out, sum, most);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&out->done, 1ull) == gridDim.x - 1) {
        __threadfence();
        rp_finish(o, index, out, key, maskKey, maskPad);
    }
}

// rp_expect sums the expected values of an output under its signs, as rp_project does what was computed; got receives the sum of
// squared tolerances.
extern "C" __global__ void rp_expect(const Output* outputs, u32 index, Result* out, u64 maskKey, u64 maskPad) {
    Output o = outputs[index];
    const u64* expected = (const u64*)o.expected;
    double p0 = 0, p1 = 0, p2 = 0, squares = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < o.n; i += (u64)gridDim.x * blockDim.x) {
        double v = __longlong_as_double((long long)(expected[i] ^ rp_mask_word(maskKey, maskPad, i))), tol = o.abs + o.rel * fabs(v);
        squares += tol * tol;
        rp_signs(v, rp_mix(o.signs ^ (i / 4)) >> (3 * (i & 3)), p0, p1, p2);
    }
    double(*parts)[32] = rp_scratch().parts;
    p0 = rp_block_sum(p0, parts[0]);
    p1 = rp_block_sum(p1, parts[1]);
    p2 = rp_block_sum(p2, parts[2]);
    squares = rp_block_sum(squares, parts[3]);
    if (threadIdx.x == 0) {
        atomicAdd(&out->proj[0], p0);
        atomicAdd(&out->proj[1], p1);
        atomicAdd(&out->proj[2], p2);
        atomicAdd(&out->got, squares);
    }
}

// rp_exchange exchanges pairs elements, one drawn from each stretch of the first half, with those half the tensor further on.
// No element belongs to two pairs as long as there are at most half as many pairs as elements.
extern "C" __global__ void rp_exchange(u8* p, u64 n, u32 size, u64 pairs, u64 seed) {
    u64 half = n / 2;
    if (half == 0) return;
    for (u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x; k < pairs; k += (u64)gridDim.x * blockDim.x) {
        u64 a = k * half / pairs, room = half / pairs ? half / pairs : 1;
        a += rp_mix(seed ^ k) % room;
        u64 b = half + a;
        for (u32 i = 0; i < size; ++i) {
            u8 t = p[a * size + i];
            p[a * size + i] = p[b * size + i];
            p[b * size + i] = t;
        }
    }
}

// rp_scribble leaves random words in the shared memory of every multiprocessor and in the registers and the local memory of its
// threads, so that a kernel that takes them for zero finds them otherwise. They read as finite numbers between 1 and 2 in every
// float type of 4 or 8 bytes. One block fills a multiprocessor; words is its shared memory in words of 8 bytes.
__device__ __forceinline__ u64 rp_garbage(u64 h) { return (rp_mix(h) & 0x800fffff807fffffull) | 0x3ff000003f800000ull; }

extern "C" __global__ void __launch_bounds__(256, 1) rp_scribble(u64 seed, u32 words, u32 rounds, u64* sink) {
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) rp_shared[i] = rp_garbage(seed ^ (u64)blockIdx.x << 32 ^ i);
    __syncthreads();
    volatile u64 local[120];  // frames end at one place and grow from there: what a smaller one does not reach stays as it was
    u64 word = rp_garbage(seed ^ threadIdx.x);
    for (u32 i = 0; i < 120; ++i) local[i] = word ^ (u64)i << 40 ^ (u64)i << 8;
    u64 held[96], all = local[seed % 120];
#pragma unroll
    for (u32 i = 0; i < 96; ++i) held[i] = rp_shared[(threadIdx.x + 256 * i) % words];
#pragma unroll 1
    for (u32 r = 0; r < rounds; ++r) {  // as many as the host says: until the last one all of held is alive
#pragma unroll
        for (u32 i = 0; i < 95; ++i) held[i] ^= held[i + 1] << 1;
        held[95] ^= held[0];
    }
#pragma unroll
    for (u32 i = 0; i < 96; ++i) all = all * 3 ^ held[i];
    if (all == seed) *sink = all;  // never, as far as a compiler knows always
}

// rp_fill writes uniform random floats in [-1, 1).
extern "C" __global__ void rp_fill(float* p, u64 n, u64 seed) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
        p[i] = (float)(u32)(rp_mix(seed ^ i) >> 40) * (2.f / 16777216.f) - 1.f;
}

// rp_read reads 16 bytes a thread and step and keeps nothing: what lies in the cache afterwards is as memory has it. sink makes the
// compiler read: what it is given means nothing.
extern "C" __global__ void rp_read(const uint4* p, u64 chunks, u64* sink) {
    u32 seen = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < chunks; i += (u64)gridDim.x * blockDim.x) {
        uint4 v = p[i];
        seen |= v.x | v.y | v.z | v.w;
    }
    if (seen) *sink = seen;
}

// rp_copy copies 16 bytes a thread and step; four loads are in flight before the first store.
extern "C" __global__ void rp_copy(uint4* dst, const uint4* src, u64 chunks) {
    u64 step = (u64)gridDim.x * blockDim.x, i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < chunks; i += 4 * step) {
        uint4 a = src[i], b = src[i + step], c = src[i + 2 * step], d = src[i + 3 * step];
        dst[i] = a; dst[i + step] = b; dst[i + 2 * step] = c; dst[i + 3 * step] = d;
    }
    for (; i < chunks; i += step) dst[i] = src[i];
}

// rp_fma does 8 independent chains of rounds fused multiply-adds a thread: 16*rounds floating-point operations.
extern "C" __global__ void rp_fma(float* out, int rounds) {
    float a = 1.f + threadIdx.x * 1e-6f, b = 0.999f;
    float x0 = a, x1 = a + 1, x2 = a + 2, x3 = a + 3, x4 = a + 4, x5 = a + 5, x6 = a + 6, x7 = a + 7;
    for (int i = 0; i < rounds; ++i) {
        x0 = x0 * b + a; x1 = x1 * b + a; x2 = x2 * b + a; x3 = x3 * b + a;
        x4 = x4 * b + a; x5 = x5 * b + a; x6 = x6 * b + a; x7 = x7 * b + a;
    }
    out[(u64)blockIdx.x * blockDim.x + threadIdx.x] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}

extern "C" __global__ void rp_empty() {}
