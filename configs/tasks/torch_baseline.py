#!/usr/bin/env python3
"""What a PyTorch user gets: the external baseline of every shipped task.

    python3 torch_baseline.py TASK [SIZE ...]       a size is DIM=VALUE,DIM=VALUE,...; none: the task's scored sizes for cuda

Prints one line a size, "SIZE MICROSECONDS": the median of 50 launches after 10, each behind a write of three times the L2 cache
(where a call reads at least a quarter of the cache and writes less than a sixteenth: a read of as much) and between two events, as
Ridgepoint measures its candidates. A pause on the device before each flush lets Python get ahead, so that no launch is waited for.
Inputs are normal float32; TF32 is off.
"""
import argparse
import statistics
import sys

import torch

PAUSE_CYCLES = 200_000  # about 0.1 ms: several times what Python needs to queue one launch
SQUARES = [(128, 128), (256, 256), (512, 512), (1024, 1024), (2048, 1024), (2048, 2048), (4096, 2048), (4096, 4096)]
MATRICES = [{"rows": r, "cols": c} for r, c in SQUARES]


def normal(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float32)


def nbody(n):
    position, velocity = normal(n, 4).abs(), normal(n, 4)
    dt, softening = 0.01, 0.1

    def step():
        place, mass = position[:, :3], position[:, 3]
        forces = []
        for i in range(0, n, 2048):  # blocks: n^2 distances need not be held at once
            d = place[None, :, :] - place[i:i + 2048, None, :]
            w = mass * (d.square().sum(-1) + softening * softening).pow(-1.5)
            forces.append((w[:, :, None] * d).sum(1))
        fast = velocity[:, :3] + dt * torch.cat(forces)
        return torch.cat([place + dt * fast, mass[:, None]], 1), torch.cat([fast, velocity[:, 3:]], 1)

    return step


def softmax_2d(rows, cols):
    x = normal(rows, cols)
    return lambda: torch.softmax(x, dim=-1)


def reduce_sum(rows, cols):
    x = normal(rows, cols)
    return lambda: x.sum(-1)


def transpose(rows, cols):
    x = normal(rows, cols)
    return lambda: x.t().contiguous()


def vector_add(n):
    a, b = normal(n), normal(n)
    return lambda: a + b


def gemm_f32(m, n, k):
    a, b = normal(m, k), normal(k, n)
    return lambda: a @ b


def conv2d_3x3(h, w):
    x, k = normal(1, 1, h, w), normal(1, 1, 3, 3)
    return lambda: torch.nn.functional.conv2d(x, k, padding=1)


# Every task: the call to measure, made from a size's dims, and the scored sizes.
TASKS = {
    "softmax_2d": (softmax_2d, MATRICES),
    "reduce_sum": (reduce_sum, MATRICES),
    "transpose": (transpose, MATRICES),
    "vector_add": (vector_add, [{"n": 1 << e} for e in (14, 18, 22, 26)]),
    "gemm_f32": (gemm_f32, [{"m": s, "n": s, "k": s} for s in (256, 512, 1024, 2048, 4096)]),
    "nbody": (nbody, [{"n": 1024 << e} for e in range(5)]),
    "conv2d_3x3": (conv2d_3x3, [{"h": s, "w": s} for s in (512, 1024, 2048, 4096)]),
}


def reads_mostly(task, size, cache):
    """Whether a call's write-backs would be the flush's own, not its: cudaengine's rule."""
    return task == "reduce_sum" and 4 * size["rows"] * size["cols"] >= cache // 4 and 4 * size["rows"] < cache // 16


def measure(call, flush, reads, warmup, timed):
    times = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(warmup + timed)]
    for i, (start, end) in enumerate(times):
        torch.cuda._sleep(PAUSE_CYCLES)
        if reads:
            flush.sum()
        else:
            flush.fill_(float(i))
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(1000 * start.elapsed_time(end) for start, end in times[warmup:])


def parse_size(text):
    return {name: int(value) for name, value in (part.split("=", 1) for part in text.split(","))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("sizes", nargs="*", type=parse_size, metavar="SIZE")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--timed", type=int, default=50)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch sees no CUDA device; run this where nvidia-smi shows one")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.zeros(3 * cache // 4, device="cuda", dtype=torch.float32)
    make, sizes = TASKS[args.task]
    with torch.no_grad():
        for size in args.sizes or sizes:
            us = measure(make(**size), flush, reads_mostly(args.task, size, cache), args.warmup, args.timed)
            print(",".join(f"{k}={v}" for k, v in size.items()), f"{us:.3f}", flush=True)


if __name__ == "__main__":
    main()
