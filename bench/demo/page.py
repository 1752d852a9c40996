"""demo/report.html: one page without anything external."""

from html import escape

import drawing
import measure
import timeline

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --faint: #59626c; --page: #ffffff;
  --area: #f1f3f5; --edge: #8a939c; --ours: #0072b2; --theirs: #a3abb3; --slow: #c44a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7ea; --faint: #a3abb3; --page: #16191d;
  --area: #23282e; --edge: #7c868f; --ours: #4aa8e0; --theirs: #69727b; --slow: #ff8a4a; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
svg { width: 100%; height: auto; font-size: 13px; margin: .3rem 0; }
svg text { fill: var(--text); } svg .faint { fill: var(--faint); } svg .bold { font-weight: 700; }
svg .number { fill: #ffffff; font-weight: 700; }
.rack0 { fill: #0072b2; } .rack1 { fill: #9a5a00; } .rack2 { fill: #00795a; }
.rack3 { fill: #8f4d78; }
.area { fill: var(--area); } .switch { fill: var(--page); stroke: var(--edge); }
.link { stroke: var(--edge); stroke-width: 2; } .slow { stroke: var(--slow); stroke-width: 5; }
.ours { fill: var(--ours); } .theirs { fill: var(--theirs); }
.bound { stroke: var(--slow); stroke-width: 2; stroke-dasharray: 5 4; }
.grid { stroke: var(--edge); stroke-width: .5; }
.loss, .accuracy { fill: none; stroke-width: 2; stroke: var(--ours); }
.loss { stroke: var(--slow); stroke-dasharray: 5 3; }
.course, .other, .limit { fill: none; stroke-width: 2; stroke: var(--ours); }
.other { stroke: var(--theirs); } .limit { stroke: var(--slow); stroke-dasharray: 5 4; }
.change { stroke: var(--edge); stroke-width: 1.5; stroke-dasharray: 2 3; }
.note { border-left: 4px solid var(--slow); padding: .2rem 1rem; background: var(--area); }
.level { font-weight: 600; margin-bottom: 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; width: 100%; }
td, th { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--area);
  white-space: nowrap; }
td:first-child, th:first-child { text-align: left; } code { font-size: .9em; }
"""


def paragraph(words, style=""):
    return f'<p class="{style}">{escape(words)}</p>' if style else f"<p>{escape(words)}</p>"


def headline(site, buckets):
    by_peer = {library["peer"]: library for library in buckets["libraries"]}
    if not site.emulated or not {"riffle", "nccl-ring"} <= by_peer.keys():
        return "Riffle: exact all-reduces on an uneven network"
    factor = by_peer["nccl-ring"]["total_s"] / by_peer["riffle"]["total_s"]
    bound = by_peer["riffle"]["total_s"] / sum(buckets["bounds_s"])
    return (f"On this network Riffle sums gradients {factor:.1f} times as fast as NCCL’s ring, "
            f"at {bound:.2f} times the physical bound")


def meaning(site, buckets):
    size = sum(buckets["bytes"]) / 1e6
    text = [paragraph(
        f"In data-parallel training every worker computes gradients on its own data, and before "
        f"each step all workers need the sum of everybody’s: for ResNet-50 that is {size:.0f} MB "
        "per worker and step. The usual ring takes no notice of slow links, so they set the pace "
        "for everybody; Riffle picks groups of workers that send as little as possible over them, "
        "and still computes the exact sum.")]
    if not site.emulated:
        text.append(paragraph(
            "This machine does not allow emulated networks: everything ran on loopback without "
            f"rates, so the results are right but the times say little. ({site.obstacle})", "note"))
    return text


def network(site):
    about = site.network.about
    return ["<h2>The network</h2>", paragraph(
        f"{about[0].upper()}{about[1:]}. Numbers below nodes are the rates of their links in "
        "Mbit/s, in both directions."), drawing.network(site.network)]


def levels(site):
    plan = site.plan["plans"]
    steps = plan["lanes"][0]["levels"]  # the others differ by their order only
    text = []
    for index, groups in enumerate(steps):
        direct = all(group["pattern"] == "direct" for group in groups)
        text.append(paragraph(
            f"Level {index + 1} of {len(steps)}: {len(groups)} group{'s' * (len(groups) > 1)}, " +
            ("everyone with everyone" if direct else "around rings"), "level"))
        text.append(drawing.groups(site.network, groups))
    return text


def plan(site):
    name = site.plan["plans"]["name"]
    return ["<h2>The groups Riffle chose</h2>", paragraph(
        f"Plan “{name}”. Within a group the members exchange parts of the buffer; afterwards each "
        "one holds the group’s sum of its own part, whose size stands below the node. The next "
        "level adds up those parts between groups. Then the same groups, walked backwards, hand "
        "out the finished sums. Colours are racks."), *levels(site),
        paragraph(f"{len(site.plan['plans']['lanes'])} shuffled variants of this plan take turns, "
                  "so that no node is favoured.")]


def table(buckets):
    bounds = buckets["bounds_s"]
    head = [f"{b / 1e6:.1f} MB" for b in buckets["bytes"]]
    rows = [["seconds", *head, "together", "CPU load", "wrong"]]
    if bounds:
        rows.append(["bound", *(f"{t:.2f}" for t in bounds), f"{sum(bounds):.2f}", "", ""])
    for library in buckets["libraries"]:
        load = f"{100 * library['cpu_load']:.0f} %"
        rows.append([library["name"], *(f"{t:.2f}" for t in library["times_s"]),
                     f"{library['total_s']:.2f}", load + " !" * (library["cpu_load"] > measure.CPU_BOUND),
                     f"{library['wrong']}"])
    cells = "".join(
        "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in row) + "</tr>"
        for row, tag in zip(rows, ["th"] + ["td"] * len(rows)))
    return f'<div class="wide"><table>{cells}</table></div>'


def comparison(buckets):
    limited = [lib["name"] for lib in buckets["libraries"] if lib["cpu_load"] > measure.CPU_BOUND]
    note = [paragraph("This machine’s processors were busy, so that they and not only the network "
                      f"may have limited {', '.join(limited)}.", "note")]
    return ["<h2>One ResNet-50 step</h2>", paragraph(
        "25.6 million parameters, in the buckets that PyTorch’s DistributedDataParallel makes of "
        "them; the bars are cut at the buckets."), drawing.bars(buckets), table(buckets),
        *note * bool(limited and buckets["bounds_s"]),
        paragraph("“wrong” counts elements, over all nodes, that differ from the exact sum.")]


def training(site, result):
    riffle, ring = result["riffle"], result["ring"]
    same = "bit-identical" if result["identical"] else "NOT IDENTICAL"
    return ["<h2>A real training through the plugin</h2>", paragraph(
        f"{site.nodes} workers, one per node, learn to read 1,797 handwritten digits "
        "(scikit-learn’s data set; a third is held out). Their gradients are summed by the plugin, "
        "loaded and called as NCCL does it: "
        f"{result['collnet_calls']} calls of its all-reduce in {measure.STEPS} steps."),
        drawing.curve(result["course"]), paragraph(
        f"Accuracy on unseen images: {100 * result['accuracy']:.1f} %. The final weights of the "
        f"{site.nodes} workers are {same}, and differ by at most {result['distance']:.0e} from "
        "those of one process that trains with the whole batch. A step takes "
        f"{1e3 * riffle['step_s']:.0f} ms with Riffle, {1e3 * riffle['reduce_s']:.0f} of them "
        f"in the all-reduce of {result['bytes'] / 1e3:.0f} kB; with NCCL’s ring over the same "
        f"links {1e3 * ring['step_s']:.0f} and {1e3 * ring['reduce_s']:.0f} ms (medians).")]


def neighbour(series):
    if not series:
        return []
    changes = [change for moment in series[0]["series"] for change in moment["changes"]]
    listed = "".join(f"<li>{escape(change)}</li>" for change in changes)
    return ["<h2>A neighbour comes and goes</h2>", paragraph(
        "Eight equal nodes sum 32 MiB again and again. For a while somebody else’s traffic is "
        "guaranteed three quarters of one node’s link. Blue: Riffle, which notices from its own "
        "traffic, agrees on another plan while all-reduces run, and returns to the even one "
        "afterwards. Grey: the same with its first plan kept. Dashed: the physical bound."),
        timeline.timeline(series), f"<ul>{listed}</ul>" if listed else ""]


def method(site, buckets):
    machine = measure.machine()
    busiest = max(library["cpu_load"] for library in buckets["libraries"])
    emulated = ("Emulated: every node is a network namespace of one machine, joined by virtual "
                "links whose rates the Linux kernel limits (tc); processes share nothing but these "
                "links. " if site.emulated else "Processes on loopback, without rates. ")
    words = (
        f"{emulated}The machine has {machine['processors']} processors ({machine['model']}, Linux "
        f"{machine['kernel']}), which all nodes share and which were at most {100 * busiest:.0f} % "
        "busy on average while a library ran; over 80 % is marked with “!”. Every bucket was summed once per library, after a "
        "warm-up; a time is that of the slowest node. NCCL’s ring means its ring pattern, run over "
        "the same plugin’s network transport by a stand-in for NCCL’s host side; Gloo and Open MPI "
        "are Debian’s packages over TCP, Gloo with its fastest algorithm here.")
    if buckets["bounds_s"]:
        words += (" The bound is what no exact all-reduce can beat; it counts what an ideal TCP "
                  "flow carries as payload (1448 of 1514 bytes).")
    again = f"riffle bench --profile {site.profile} --peers nccl-ring,gloo,openmpi --sizes 16M,32M"
    return ["<h2>How it was measured</h2>", paragraph(words),
            f"<p>{machine['date']}. More sizes and repetitions: <code>{escape(again)}</code></p>"]


def html(site, trained, buckets, contention):
    title = headline(site, buckets)
    parts = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
             '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>Riffle demo</title><style>{STYLE}</style></head><body>",
             f"<h1>{escape(title)}</h1>", *meaning(site, buckets)]
    if site.emulated:
        parts += [*network(site), *plan(site)]
    parts += [*comparison(buckets), *training(site, trained), *neighbour(contention),
              *method(site, buckets),
              "</body></html>"]
    return "\n".join(parts) + "\n"
