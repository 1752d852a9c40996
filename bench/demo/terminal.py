"""What the demo prints."""

import sys
import textwrap

import measure
from units import counted, mib


def title(text):
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def show_network(site):
    network = site.network
    if not site.emulated:
        note = ("NOTE: this machine cannot emulate a network, so all processes run side by side on "
                "loopback, without rates: results are right, times say little. Reason: "
                f"{site.obstacle}")
        print(textwrap.fill(note, 90, subsequent_indent="  "))
        return
    print(f"Network: {network.about}.")
    for index, rack in enumerate(network.racks):
        members = network.members(index)
        rates = sorted({network.nodes[i]["rate_mbps"] for i in members})
        uplink = f", shared uplink {rack['uplink_mbps']:g} Mbit/s" if rack["uplink_mbps"] else ""
        print(f"  rack {rack['name']}: nodes {', '.join(map(str, members))}, each "
              f"{' or '.join(f'{r:g}' for r in rates)} Mbit/s{uplink}")
    print("Every node is a network namespace of this machine; the kernel limits the links.")


def show_step(entry):
    if (entry["step"] + 1) % 20:
        return
    print(f"  step {entry['step'] + 1:3}: loss {entry['loss']:.4f}, accuracy on unseen images "
          f"{100 * entry['accuracy']:.1f} %, {1e3 * entry['step_s']:.0f} ms", flush=True)


def show_training(training):
    riffle, ring = training["riffle"], training["ring"]
    print(f"Weights of the workers bit-identical: {'yes' if training['identical'] else 'NO'}; "
          f"largest difference to one process\nwith the whole batch: {training['distance']:.1g}")
    print(f"Time per step (median): {1e3 * riffle['step_s']:.0f} ms with Riffle, "
          f"{1e3 * ring['step_s']:.0f} ms with NCCL's ring")


def show_progress(text):
    print(f"  {text}", flush=True)


def show_buckets(buckets):
    sizes, bounds = buckets["bytes"], buckets["bounds_s"]
    columns = [mib(b) for b in sizes] + ["together"]
    print("\n" + f"{'seconds':32}" + "".join(f"{c:>10}" for c in columns) +
          ("   x bound" if bounds else ""))
    if bounds:
        print(f"{'bound':32}" + "".join(f"{t:10.2f}" for t in bounds + [sum(bounds)]))
    for library in buckets["libraries"]:
        line = f"{library['name']:32}" + "".join(
            f"{t:10.2f}" for t in library["times_s"] + [library["total_s"]])
        if bounds:
            line += f"{library['total_s'] / sum(bounds):10.2f}"
        if library["cpu_load"] > measure.CPU_BOUND:
            line += "  CPU-bound"
        if library["wrong"]:
            line += "  WRONG RESULT"
        print(line)
    if bounds:
        print("bound: what no exact all-reduce on this network can beat")
    sys.stdout.flush()


def show_contention(contention):
    if not contention:
        print("  (needs an emulated network)")
        return
    for one in contention["series"]:
        with_flow = [m for m in one["series"] if m["neighbour"]][-5:]
        print(f"{one['peer']:14}" + "last all-reduces beside the foreign flow: " +
              " ".join(f"{m['time_us'] / 1e6:.2f}" for m in with_flow) + " s, bound " +
              f"{with_flow[-1]['bound_us'] / 1e6:.2f}")
    for change in contention["changes"]:
        print(f"  after {counted(change['after'], 'all-reduce')}: {change['cause']}; "
              f"plan {change['plan']}")
    sys.stdout.flush()
