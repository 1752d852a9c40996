#!/usr/bin/env python3
"""How well a job does that finds the network itself, beside one that is told by a file.

  bench/eyes/check.py --seeds 1-68 --json build/eyes-random.json
  bench/eyes/check.py plain-racks8 plain-racks12

On every network one `riffle bench` runs, all in turns on the same emulated cluster: "live" (no file,
--warmup all-reduces before the measured ones), "file", the forced --plans (with the file), and
"nccl" (RIFFLE_COLLNET=off: the ring or tree that NCCL takes). One line per network, at the end the
shares of networks that hold the limits. The ratios are medians over neighbouring all-reduces. Where
times of live or file differ by more than --steady among themselves, as where flows of others come and
go, new jobs run with twice as many all-reduces: ratios are of their total times, plan changes and
probing the most of both.

Networks that --json has already, of the same plugin and measured the same way, are not measured
again: a long run can be cut into parts. Every entry says when it was measured, at which commit, and what
others used of the machine before; what --json has of another plugin, or without that, is dropped. Drawn
networks with a policer are left out, as what it drops is no rate. Exit code 1 if a bench failed.
"""
import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH / "measure"))
import machine  # noqa: E402
import networks  # noqa: E402
import summary  # noqa: E402

BUILD = BENCH.parent / "build"
CHANGE = re.compile(r"\(plan .*from chunk \d+")  # all nodes may say so
PLUGIN = "plugin/libnccl-net-riffle.so"
FOR_PLANS = 2  # all-reduces before the measured ones where nothing has to be found
IF_UNSTEADY = 2  # times as many all-reduces


def settings_of(name, warmup, folder):
    if name == "live":
        return [f"warmup={warmup}", "RIFFLE_FABRIC=", "RIFFLE_PROBE=on",
                f"RIFFLE_FABRIC_SAVE={folder}/found.toml", f"RIFFLE_LOG_FILE={folder}/%p.log"]
    if name == "file":
        return [f"warmup={min(warmup, FOR_PLANS)}"]
    if name in networks.WRONG:
        return [f"warmup={warmup}", f"RIFFLE_FABRIC={folder}/{name}.toml", f"RIFFLE_LOG_FILE={folder}/%p.{name}.log"]
    forced = ["RIFFLE_COLLNET=off"] if name == "nccl" else ["RIFFLE_COLLNET=on", f"RIFFLE_PLAN={name}"]
    return [f"warmup={min(warmup, FOR_PLANS)}", *forced]


def times_of(row):
    return [trial["time_us"] for trial in row["trials"]]


def is_steady(row, spread):
    return max(times_of(row)) - min(times_of(row)) <= spread * row["time_us"]


def bench(options, network, folder):
    """The rows by contender, how many times as long live takes as each other one, and the folders of what jobs left."""
    rows = bench_once(options, network, folder / "first", options.iters)
    others = [name for name in rows if name != "live"]
    if options.steady == 0 or all(is_steady(rows[name], options.steady) for name in ("live", "file")):
        return rows, {name: 1 / rows[name]["ratio"]["median"] for name in others}, [folder / "first"]
    rows = bench_once(options, network, folder / "anew", IF_UNSTEADY * options.iters)
    over = {name: sum(times_of(rows["live"])) / sum(times_of(rows[name])) for name in others}
    return rows, over, [folder / "first", folder / "anew"]


def bench_once(options, network, folder, iters):
    folder.mkdir()
    for wrong in folder.parent.glob("*.toml"):
        (folder / wrong.name).write_text(wrong.read_text())
    command = [options.riffle, "bench", "--profile", network, "--fabric", "file", "--sizes", options.size,
               "--rounds", "1",
               "--iters", str(iters), "--json", f"{folder}/rows.json"]
    for name in ["live", "file", *options.plans]:
        command += ["--plugin", f"{name}={options.plugin}", "--settings",
                    f"{name}:{','.join(settings_of(name, options.warmup, folder))}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"riffle bench ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return {row["peer"]: row for row in json.loads(pathlib.Path(folder, "rows.json").read_text())}


def found_in(folder):
    """(The racks that show or None, seconds of probing or None, by reported rack its confidence in percent)"""
    file = folder / "found.toml"
    if not file.exists():
        return None, None, {}
    text = file.read_text()
    seconds = re.search(r"probed in ([0-9.]+) s", text)
    found = tomllib.loads(text)
    told = re.findall(r"\(confidence (\d+) %\)", text.partition(" racks:")[2])
    sure = dict(zip(networks.members_of(found), map(int, told)))
    return networks.racks_that_show(found), float(seconds.group(1)) if seconds else None, sure


def changes_in(folder):
    return len(set(CHANGE.findall("".join(f.read_text(errors="replace") for f in folder.glob("*[0-9].log")))))


def said(log):
    """Of the network and of plans, each once."""
    messages = [line.split(None, 4)[-1] for line in log.splitlines() if "plugin/collective/" in line]
    return list(dict.fromkeys(messages))[:60]


def look_at(options, network, folder, truth):
    entry = {"network": network, "nodes": len(truth["node"]), "failed": ""} | how(options) | origin()
    start = time.monotonic()
    try:
        for name in set(options.plans) & set(networks.WRONG):
            networks.write_wrong(truth, name, folder / f"{name}.toml")
        rows, over, jobs = bench(options, network, folder)
        racks, _, sure = found_in(jobs[-1])
        log = "".join(file.read_text(errors="replace") for file in sorted(jobs[-1].glob("*.log")))
        if not log:
            raise RuntimeError("the nodes of live have logged nothing")
    except (RuntimeError, OSError) as trouble:
        return entry | {"failed": str(trouble)}
    true_racks = networks.racks_that_show(truth)
    forced = [name for name in options.plans if name != "nccl" and name not in networks.WRONG]
    return entry | {
        "true_racks": len(true_racks), "racks_right": racks == true_racks,
        "found_racks": None if racks is None else sorted(sorted(rack) for rack in racks),
        "x": {name: row["x_bound"] for name, row in rows.items()}, "x_live": rows["live"]["x_bound"],
        "over_file": over["file"],
        "over_best": max((over[name] for name in forced), default=None),
        "confidence": [[percent, rack in true_racks] for rack, percent in sure.items() if len(rack) > 1],
        "probing_s": max((found_in(job)[1] for job in jobs if found_in(job)[1] is not None), default=None),
        "plan_changes": max(map(changes_in, jobs)), "log": said(log), "anew": len(jobs) > 1,
        "cpu_load": rows["live"]["cpu_load"],
        "times_us": {name: [round(us) for us in times_of(row)] for name, row in rows.items()},
        "seconds": round(time.monotonic() - start, 1)}


def origin():
    """When and of what an entry is, which may be shown in a later run."""
    return {"date": datetime.date.today().isoformat(), "commit": machine.commit(),
            "busy_before": round(machine.busy(), 2)}


def how(options):
    """What an entry must have in common with the options to count."""
    content = hashlib.sha256(pathlib.Path(options.plugin).read_bytes()).hexdigest()
    return {"plugin": content[:16], "size": options.size, "iters": options.iters, "warmup": options.warmup,
            "plans": options.plans, "steady": options.steady}


def known_in(file, options):
    """By network, without those that failed."""
    if not file or not file.exists():
        return {}
    return {e["network"]: e for e in json.loads(file.read_text())
            if not e["failed"] and "busy_before" in e and how(options).items() <= e.items()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="PROFILE", help="names, files, random:SEED; \"fixed\": "
                        + ", ".join(networks.FIXED))
    parser.add_argument("--seeds", type=networks.of_seeds, default=[], help="of drawn networks, such as 1-60,77")
    parser.add_argument("--json", type=pathlib.Path, help="file for all that was measured; it is added to")
    parser.add_argument("--size", default="8M")
    parser.add_argument("--warmup", type=int, default=20, help="all-reduces of live before the measured ones")
    parser.add_argument("--iters", type=int, default=5, help="measured all-reduces of each")
    parser.add_argument("--steady", type=float, default=0.15, help="part of the median by which times may differ; 0: by all")
    parser.add_argument("--plans", type=lambda text: text.split(",") if text else [],
                        default=["ring", "tree", "direct"],
                        help="others beside live and file: plans of RIFFLE_PLAN, nccl, "
                        + ", ".join(networks.WRONG) + " (told by a file that is wrong); empty: none")
    parser.add_argument("--riffle", default=str(BUILD / "tools" / "riffle"))
    parser.add_argument("--plugin", default=str(BUILD / PLUGIN))
    return parser.parse_args()


def main():
    options = parse()
    wanted = [n for name in options.networks for n in (networks.FIXED if name == "fixed" else [name])] + options.seeds
    known, entries, left_out = known_in(options.json, options), [], 0
    for network in wanted:
        with tempfile.TemporaryDirectory(prefix="riffle-eyes-") as folder:
            profile, truth = networks.profile_of(options.riffle, network, folder)
            if network.startswith("random:") and profile.get("shaper") == "policer":
                left_out += 1
                continue
            entry = known.get(network) or look_at(options, network, pathlib.Path(folder), truth)
        entries.append(entry)
        known[network] = entry
        print(summary.line(entry), flush=True)
        if options.json:
            options.json.write_text("[" + ",\n".join(json.dumps(e) for e in known.values()) + "]\n")
    print("\n".join(summary.lines(entries, left_out)))
    sys.exit(1 if any(e["failed"] for e in entries) else 0)


if __name__ == "__main__":
    main()
