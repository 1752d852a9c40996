#!/usr/bin/env python3
"""What riffle finds by probing emulated clusters, again and again, against what tc was set to.

  bench/probe_check.py --runs 20 straggler8 racks8 racks8-ordered mixed16

Every run is a `riffle bench --fabric live` of its own: no file tells riffle anything. One line per
run (rates within 10 %? racks right? x bound), one summary per profile with the x bound of a run
that was given the file. Exit code 1 if rates are off in a run, or racks wrong in more than 1 of 20.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def truth_of(profile):
    """Per node its rate and the set of its rack mates; rack uplinks by their set of nodes."""
    with open(ROOT / "bench" / "profiles" / f"{profile}.toml", "rb") as file:
        data = tomllib.load(file)
    rates = {n: data["rate_mbps"] for n in range(data["nodes"])}
    for exception in data.get("exception", []):
        rates.update({n: exception["rate_mbps"] for n in exception["nodes"]})
    racks = {frozenset(r["nodes"]): r["uplink_mbps"] for r in data.get("rack", [])}
    return rates, racks or {frozenset(rates): 0}


def found_in(path):
    with open(path, "rb") as file:
        text = file.read().decode()
    data = tomllib.loads(text)
    rates, members = {}, {}
    for node in data["node"]:
        number = int(node["name"].removeprefix("node"))
        both = node.get("rate_mbps")
        rates[number] = (both or node["out_mbps"], both or node["in_mbps"])
        members.setdefault(node["rack"], set()).add(number)
    uplinks = {}
    for rack in data["rack"]:
        both = rack.get("uplink_mbps")
        ways = (both, both) if both is not None else (rack["up_mbps"], rack["down_mbps"])
        uplinks[frozenset(members.get(rack["name"], ()))] = ways
    seconds = re.search(r"probed in ([0-9.]+) s", text)
    return rates, uplinks, float(seconds.group(1)) if seconds else float("nan")


def off_by(found, true):
    return max(abs(f / true - 1) for f in found)


def bench(riffle, profile, sizes, iters, live):
    """(x bounds, path of what was found)"""
    with tempfile.TemporaryDirectory() as folder:
        rows, saved = f"{folder}/rows.json", f"{folder}/found.toml"
        command = [riffle, "bench", "--profile", profile, "--sizes", sizes, "--iters", str(iters),
                   "--json", rows, "--fabric", "live" if live else "file"]
        env = dict(os.environ, RIFFLE_FABRIC_SAVE=saved)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        with open(rows, encoding="utf-8") as file:
            x_bounds = [row["x_bound"] for row in json.load(file)]
        return x_bounds, found_in(saved) if live and os.path.exists(saved) else None


def check(profile, runs, riffle, sizes, iters):
    true_rates, true_racks = truth_of(profile)
    with_file, _ = bench(riffle, profile, sizes, max(5, iters), live=False)
    rates_right = racks_right = 0
    x_bounds, times, worst = [], [], 0.0
    for run in range(1, runs + 1):
        x, found = bench(riffle, profile, sizes, iters, live=True)
        x_bounds.append(x)
        if found is None:
            print(f"{profile} run {run}: nothing found", flush=True)
            continue
        rates, racks, seconds = found
        error = max(off_by(rates[n], true_rates[n]) for n in true_rates)
        same = set(racks) == set(true_racks)
        if same:
            error = max([error] + [off_by(racks[r], true_racks[r]) for r in true_racks
                                   if true_racks[r]])
        rates_right += error <= 0.10
        racks_right += same
        worst = max(worst, error)
        times.append(seconds)
        print(f"{profile} run {run}: rates off by {100 * error:.1f} % at most, "
              f"{len(racks)} rack(s) {'right' if same else 'WRONG'}, probed in {seconds:.2f} s, "
              f"x bound {' '.join(f'{v:.3f}' for v in x)}", flush=True)
    medians = [sorted(column)[len(column) // 2] for column in zip(*x_bounds)]
    print(f"{profile}: rates within 10 % in {rates_right} of {runs} (worst {100 * worst:.1f} %), "
          f"racks right in {racks_right} of {runs}, probing {min(times, default=0):.2f} to "
          f"{max(times, default=0):.2f} s, x bound {' '.join(f'{v:.3f}' for v in medians)} (median), "
          f"with the file {' '.join(f'{v:.3f}' for v in with_file)}", flush=True)
    return rates_right == runs and racks_right >= runs * 19 // 20


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profiles", nargs="*",
                        default=["straggler8", "racks8", "racks8-ordered", "mixed16"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--sizes", default="16M")
    parser.add_argument("--iters", type=int, default=5, help="all-reduces per run")
    parser.add_argument("--riffle", default=str(ROOT / "build" / "tools" / "riffle"))
    options = parser.parse_args()
    good = [check(p, options.runs, options.riffle, options.sizes, options.iters)
            for p in options.profiles]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
