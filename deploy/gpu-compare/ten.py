#!/usr/bin/env python3
"""Spread of the medians of one kernel judged in separate processes: ten.py REPORT.json ..."""
import json
import sys

reports = [json.load(open(f)) for f in sys.argv[1:]]
sizes = [s["size"] for s in reports[0]["sizes"]]
print(f"{len(reports)} processes; wanted: spread <= 1.5 % over 10 us, <= 5 % below")
for i, size in enumerate(sizes):
    medians = sorted(r["sizes"][i]["median_us"] for r in reports if len(r.get("sizes") or []) > i)
    spread = (medians[-1] - medians[0]) / medians[len(medians) // 2]
    limit = 0.015 if medians[0] > 10 else 0.05
    name = ",".join(f"{k}={v}" for k, v in size.items())
    print(f"  {name:24} median {medians[len(medians) // 2]:8.2f} us  spread {100 * spread:5.2f} %  {'ok' if spread <= limit else 'OVER'}")
