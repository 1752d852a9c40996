"""What networks have shown, one line each, and what share of them holds which limit."""
import networks

MOST_LOAD = 0.8  # of the machine's processors while all-reduces run; beyond it, they set the pace


def line(entry):
    if entry["failed"]:
        return f"{entry['network']}: FAILED: {entry['failed']}"
    probing = f"{entry['probing_s']:.2f} s" if entry["probing_s"] is not None else "nothing"
    racks = f"{entry['true_racks']} rack(s) {'right' if entry['racks_right'] else 'WRONG'}"
    return (f"{entry['network']}: {entry['nodes']} nodes, {racks}, x live {entry['x']['live']:.3f}, file {entry['x']['file']:.3f}"
            + "".join(f", {name} {x:.2f}" for name, x in entry["x"].items() if name not in ("live", "file"))
            + f"; live/file {entry['over_file']:.3f}"
            + (f", live/best {entry['over_best']:.3f}" if entry["over_best"] is not None else "")
            + f"; probed in {probing}, {entry['plan_changes']} plan change(s), {entry['seconds']:.0f} s")


def percent(entries, holds):
    if not entries:
        return "not measured"
    return f"{100 * sum(not e['failed'] and holds(e) for e in entries) / len(entries):.1f} %"


def worst(entries, key):
    values = [(e[key], e["network"]) for e in entries if not e["failed"] and e[key] is not None]
    return "{:.3f} ({})".format(*max(values)) if values else "not measured"


def worst_of(entries, contender):
    return worst([e | {"its": e["x"][contender]} for e in entries if contender in e.get("x", {})], "its")


SURE = 80  # percent


def of_sure_racks(entries):
    """Beyond it a rack that is reported should be one."""
    right = [is_right for e in entries if not e["failed"] for percent, is_right in e["confidence"] if percent >= SURE]
    return f"{sum(right)} of {len(right)} right, {100 * sum(right) / len(right):.1f} %" if right else "none"


def is_of_network(entry):
    """The emulation shows the network, not the machine's processors, which other networks could do without."""
    return bool(entry["failed"]) or entry["cpu_load"] <= MOST_LOAD


def lines(entries, left_out):
    if not entries:
        return ["no network was measured"]
    failed = sum(bool(e["failed"]) for e in entries)
    of_network = [e for e in entries if is_of_network(e)]
    return [
        f"{len(entries)} network(s), {failed} failed, {left_out} with a policer left out",
        f"measured anew, as times differed: {sum(not e['failed'] and e['anew'] for e in entries)}",
        f"racks reported with a confidence of {SURE} % and more: {of_sure_racks(entries)}",
        f"racks right: {percent(entries, lambda e: e['racks_right'])}",
        "racks right or live/file at most 1.03: "
        + percent(entries, lambda e: e["racks_right"] or e["over_file"] <= 1.03),
        f"live/file at most 1.10: {percent(entries, lambda e: e['over_file'] <= 1.10)}",
        f"worst live/file: {worst(entries, 'over_file')}",
        f"worst live/best of the forced plans: {worst(entries, 'over_best')}",
        *([f"worst live/nccl: {worst([e | {'its': e['x_live'] / e['x']['nccl']} for e in entries if 'nccl' in e.get('x', {})], 'its')}"]
          if any("nccl" in e.get("x", {}) for e in entries) else []),
        f"worst x of live: {worst(entries, 'x_live')}",
        *(f"worst x of {wrong}: {worst_of(entries, wrong)}" for wrong in networks.WRONG
          if any(wrong in e.get("x", {}) for e in entries)),
        f"longest probing, s, up to 8 nodes: {worst([e for e in entries if e['nodes'] <= 8], 'probing_s')}",
        f"longest probing, s, all: {worst(entries, 'probing_s')}",
        f"most plan changes: {worst(entries, 'plan_changes')}",
        f"processors of the machine at most {100 * MOST_LOAD:.0f} % busy: {len(of_network)} network(s), "
        + f"within 1.10 {percent(of_network, lambda e: e['over_file'] <= 1.10)}, worst {worst(of_network, 'over_file')}, "
        + f"over best {worst(of_network, 'over_best')}",
    ]
