#!/usr/bin/env python3
"""Our medians against two independent measures of the same cubin: independent.py REPORT.json OBJECTS_FOLDER loop.cpp

Triton's do_bench round cuLaunchKernel, and the C event loop of loop.cpp. The kernel is softmax_2d's baseline: grid rows, block
256, arguments input, output, rows, cols. Wanted: within 5 % over 20 us.
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

import torch
import triton

report, objects, loop = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
cubin = os.path.join(objects, report["build"]["artifact"])
kernel = report["build"]["kernels"][0]["name"]
torch.zeros(1, device="cuda")
cu = ctypes.CDLL("libcuda.so.1")
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuModuleLoad(ctypes.byref(module), cubin.encode()) == 0
assert cu.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()) == 0
work = tempfile.mkdtemp()
nvcc = "/usr/local/cuda/bin/nvcc"
program = os.path.join(work, "loop")
built = subprocess.run([nvcc, "-O2", loop, "-o", program, "-lcuda"], capture_output=True, text=True)
print("same cubin, three clocks; wanted: within 5 % over 20 us")
for s in report["sizes"]:
    rows, cols = s["size"]["rows"], s["size"]["cols"]
    x, y = torch.randn(rows, cols, device="cuda"), torch.empty(rows, cols, device="cuda")
    values = [ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_int(rows), ctypes.c_int(cols)]
    args = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values])

    def launch():
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        assert cu.cuLaunchKernel(function, rows, 1, 1, 256, 1, 1, 0, stream, args, None) == 0

    bench = 1000 * triton.testing.do_bench(launch, return_mode="median")
    c = float("nan")
    if built.returncode == 0:
        c = float(subprocess.run([program, cubin, kernel, str(rows), str(cols)], capture_output=True, text=True).stdout or "nan")
    ours = s["median_us"]
    ok = ours < 20 or (abs(bench / ours - 1) <= 0.05 and abs(c / ours - 1) <= 0.05)
    print(f"  {rows}x{cols}: ours {ours:8.2f}  do_bench {bench:8.2f} ({100 * (bench / ours - 1):+5.1f} %)  C loop {c:8.2f} ({100 * (c / ours - 1):+5.1f} %)  {'ok' if ok else 'OVER'}")
if built.returncode:
    print("  the C loop was not built:", built.stderr.strip()[:300])
