"""demo/report.html: one page without anything external, the result first."""

import statistics
from html import escape

import drawing
import measure
from units import counted, mib


def paragraph(words, style=""):
    return f'<p class="{style}">{escape(words)}</p>' if style else f"<p>{escape(words)}</p>"


def tiles(figures):
    """Value and meaning of each."""
    inner = "".join(f'<div class="tile"><b>{escape(value)}</b>{escape(words)}</div>'
                    for value, words in figures)
    return f'<div class="tiles">{inner}</div>'


def table(rows):
    """The first row is the head."""
    cells = "".join(
        "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in row) + "</tr>"
        for row, tag in zip(rows, ["th"] + ["td"] * len(rows)))
    return f'<div class="wide"><table>{cells}</table></div>'


def factors(site, buckets):
    """Riffle's time over the bound, and of every library over Riffle's; None without rates."""
    totals = {library["peer"]: library["total_s"] for library in buckets["libraries"]}
    if not site.emulated or not {"riffle", "nccl-ring"} <= totals.keys():
        return None
    found = {peer: total / totals["riffle"] for peer, total in totals.items()}
    return dict(found, bound=totals["riffle"] / sum(buckets["bounds_s"]))


def result(site, buckets):
    """What stands in the first screen."""
    known = factors(site, buckets)
    drawn = drawing.bars(site.riffle, buckets)
    if known is None:
        return ["<h1>Riffle: exact all-reduces on an uneven network</h1>", paragraph(
            "This machine does not allow emulated networks: everything ran on loopback without "
            f"rates, so the results are right but the times say little. ({site.obstacle})",
            "note"), drawn]
    title = (f"Riffle sums gradients at {known['bound']:.2f} × the physical bound, "
             f"{known['nccl-ring']:.1f} × as fast as NCCL’s ring as ranks lie")
    figures = [(f"{known['bound']:.2f} ×", "the physical bound"),
               (f"{known['nccl-ring']:.1f} ×", "as fast as NCCL’s ring, ranks as they lie")]
    if "nccl-ring-ordered" in known:
        title += f", {known['nccl-ring-ordered']:.1f} × with ranks in perfect order"
        figures.append((f"{known['nccl-ring-ordered']:.1f} ×",
                        "as fast as NCCL’s ring, ranks in perfect order"))
    wrong = sum(library["wrong"] for library in buckets["libraries"])
    return [f"<h1>{escape(title)}</h1>", tiles(figures), paragraph(
        f"The gradients of one ResNet-50 step, {mib(sum(buckets['bytes']))} per worker, on "
        f"{site.nodes} emulated nodes ({site.network.about}); {wrong} wrong elements."), drawn]


def comparison(buckets):
    bounds = buckets["bounds_s"]
    rows = [["seconds", *map(mib, buckets["bytes"]), "together", "CPU load", "wrong"]]
    if bounds:
        rows.append(["bound", *(f"{t:.2f}" for t in bounds), f"{sum(bounds):.2f}", "", ""])
    limited = []
    for library in buckets["libraries"]:
        busy = library["cpu_load"] > measure.CPU_BOUND
        limited += [library["name"]] * busy
        rows.append([library["name"], *(f"{t:.2f}" for t in library["times_s"]),
                     f"{library['total_s']:.2f}",
                     f"{100 * library['cpu_load']:.0f} %" + " !" * busy, library["wrong"]])
    note = [paragraph("This machine’s processors were busy, so that they and not only the network "
                      f"may have limited: {', '.join(limited)}.", "note")]
    return ["<h2>Bucket by bucket</h2>", paragraph(
        "25.6 million parameters, in the buckets that PyTorch’s DistributedDataParallel makes of "
        "them. “wrong” counts elements, over all nodes, that differ from the exact sum."),
        table(rows), *note * bool(limited and bounds)]


def plan(site):
    return ["<h2>The network, and the groups for it</h2>", paragraph(
        "In data-parallel training every worker computes gradients on its own data, and before "
        "each step all workers need the sum. A ring takes no notice of slow links, so they set "
        "its pace. Riffle picks groups of workers that send as little as possible over them, and "
        "still computes the exact sum: within a group each member ends up with the group’s sum of "
        "the part that it owns; the next level adds up those parts between groups; then the same "
        "groups, walked backwards, hand out the finished sums. Riffle was told nothing of this "
        "network: it measures the links when a job connects. The picture is what “riffle plan” "
        "makes of the true rates."), site.plan_svg]


def training(site, result):
    riffle, ring = result["riffle"], result["ring"]
    rows = [["one step, median", "whole step", f"all-reduce of {mib(result['bytes'])}"]]
    for name, times in (("Riffle", riffle), ("NCCL’s ring", ring)):
        rows.append([name, *(f"{1e3 * times[key]:.0f} ms" for key in ("step_s", "reduce_s"))])
    same = "bit-identical" if result["identical"] else "NOT IDENTICAL"
    return ["<h2>A real training through the plugin</h2>", paragraph(
        f"{site.nodes} workers, one per node, learn to read 1,797 handwritten digits "
        "(scikit-learn’s data set; a third is held out). The plugin sums their gradients, loaded "
        f"and called as NCCL does it: {result['collnet_calls']} calls of its all-reduce in "
        f"{counted(measure.STEPS, 'step')}."),
        tiles([(f"{100 * result['accuracy']:.1f} %", "accuracy on unseen images"),
               (same, f"final weights of the {counted(site.nodes, 'worker')}"),
               (f"{result['distance']:.0e}",
                "largest difference to one process with the whole batch")]),
        drawing.curve(site.riffle, result["course"]), table(rows)]


def beside_neighbour(one):
    """Seconds of an all-reduce once the plan has settled, and the bound: medians of the last five
    beside the foreign flow."""
    last = [m for m in one["series"] if m["neighbour"]][-5:]
    return tuple(statistics.median(m[key] for m in last) / 1e6 for key in ("time_us", "bound_us"))


def neighbour(site, contention):
    if not contention:
        return []
    names = {"riffle": "with replanning", "riffle-fixed": "with the first plan kept"}
    figures = [(f"{beside_neighbour(one)[0]:.2f} s",
                f"beside the foreign flow, {names[one['peer']]}") for one in contention["series"]]
    figures.append((f"{beside_neighbour(contention['series'][0])[1]:.2f} s",
                    "the physical bound beside the flow"))
    rows = [["number", "after all-reduce", "what Riffle noticed", "plan"]]
    rows += [[number, change["after"], change["cause"], change["plan"]]
             for number, change in enumerate(contention["changes"], 1)]
    return ["<h2>A neighbour comes and goes</h2>", paragraph(
        "Eight equal nodes sum 32 MiB again and again. For a while a foreign flow is guaranteed "
        "three quarters of one node’s link. Riffle notices from its own traffic, agrees on another "
        "plan while all-reduces run, and returns to the even one afterwards."),
        tiles(figures), drawing.neighbour(site.riffle, contention["series"]),
        table(rows) if len(rows) > 1 else ""]


def method(site, buckets):
    machine = measure.machine()
    busiest = max(library["cpu_load"] for library in buckets["libraries"])
    emulated = ("Emulated: every node is a network namespace of one machine, joined by virtual "
                "links whose rates the Linux kernel limits (tc); processes share nothing but these "
                "links. " if site.emulated else "Processes on loopback, without rates. ")
    words = [
        f"{emulated}The machine has {counted(machine['processors'], 'processor')} "
        f"({machine['model']}, Linux {machine['kernel']}), which all nodes share and which were at "
        f"most {100 * busiest:.0f} % busy on average while a library ran; over 80 % is marked with "
        "“!”.",
        "Every bucket was summed once per library, after a warm-up; a time is that of the slowest "
        "node. NCCL’s ring and trees mean its patterns, run over the same plugin’s network transport "
        "by a stand-in for NCCL’s host side; in perfect order the ranks of a rack are neighbours in "
        "the ring. BlueConnect (rings in racks, then across them) runs over the same transport. "
        "Gloo and Open MPI are Debian’s packages over TCP, each with its fastest algorithm here. "
        "All sockets have the same congestion control, cubic."]
    if buckets["bounds_s"]:
        words.append("The bound is what no exact all-reduce can beat; it counts what an ideal TCP "
                     "flow carries as payload (1448 of 1514 bytes).")
    again = f"riffle bench --profile {site.profile} --peers nccl-best,blueconnect,gloo --sizes 16M,32M"
    return ["<h2>How it was measured</h2>", *map(paragraph, words),
            f"<p>{machine['date']}. More sizes and repetitions: <code>{escape(again)}</code></p>"]


def html(site, trained, buckets, contention):
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>Riffle demo</title><style>{drawing.ask(site.riffle, 'style')}</style></head>",
             "<body>", *result(site, buckets), *comparison(buckets)]
    if site.emulated:
        parts += plan(site)
    parts += [*training(site, trained), *neighbour(site, contention), *method(site, buckets),
              "</body></html>"]
    return "\n".join(parts) + "\n"
