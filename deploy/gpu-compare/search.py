#!/usr/bin/env python3
"""One line on a search: search.py RESULT.json TORCH.txt. RESULT is `ridgepoint run --json`, TORCH what torch_baseline.py printed."""
import json
import math
import sys


def sizes_of(result):
    """The replayed runtimes, else the confirmed ones, in microseconds."""
    sizes = (result.get("winner") or {}).get("sizes") or []
    if not sizes:
        return None, "nothing confirmed"
    if all(s.get("replayed_us") for s in sizes):
        return [s["replayed_us"] for s in sizes], "replayed"
    return [s["runtime_us"] for s in sizes], "confirmed"


try:
    result = json.load(open(sys.argv[1]))
except (OSError, ValueError):
    print("no result")
    sys.exit()
torch = [float(line.split()[-1]) for line in open(sys.argv[2]) if line.strip() and not line.startswith("#")]
ours, what = sizes_of(result)
if not ours or len(ours) != len(torch):
    print(f"{what}; {len(ours or [])} sizes against torch's {len(torch)}")
    sys.exit()
ratios = [t / o for t, o in zip(torch, ours)]
geomean = math.exp(sum(map(math.log, ratios)) / len(ratios))
print(f"{geomean:.2f} ({what}; " + " ".join(f"{o:.1f}/{t:.1f}" for o, t in zip(ours, torch)) + " us)")
