"""The charts of the report: what stands in them; `riffle draw` draws them."""

import json
import subprocess


class Failed(Exception):
    """With a message for the user."""


def ask(riffle, kind, data=None):
    """What `riffle draw` makes of it: a chart as SVG, or the style sheet."""
    result = subprocess.run([str(riffle), "draw", kind], input=json.dumps(data), text=True,
                            timeout=60, capture_output=True)
    if result.returncode != 0:
        raise Failed(f"riffle draw {kind}: {result.stderr.strip()}")
    return result.stdout


def bars(riffle, buckets):
    """One bar per library, cut at its buckets; a line at the bound."""
    bound = sum(buckets["bounds_s"]) if buckets["bounds_s"] else None
    rows = []
    for library in buckets["libraries"]:
        label = f"{library['total_s']:.2f} s"
        if bound:
            label += f" = {library['total_s'] / bound:.2f} × bound"
        ours = library["peer"] == "riffle"
        rows.append({"name": library["name"], "parts": library["times_s"], "label": label,
                     "paint": "blue" if ours else "grey", "bold": ours})
    chart = {"title": "Time for the gradients of one ResNet-50 step, bucket by bucket",
             "bars": rows, "legend": [{"paint": "blue", "text": "Riffle"},
                                      {"paint": "grey", "text": "other libraries"}]}
    if bound:
        chart["mark"] = {"at": bound, "label": f"physical bound {bound:.2f} s"}
    return ask(riffle, "bars", chart)


def curve(riffle, course):
    """Loss of every step, and accuracy on unseen images where it was measured."""
    return ask(riffle, "lines", {
        "title": "Loss and accuracy over the steps of the training",
        "x": {"before": "step "}, "left": {}, "right": {"after": " %", "most": 100},
        "series": [
            {"name": "loss on worker 0’s images (left scale)", "paint": "brown", "dashed": True,
             "points": [[e["step"] + 1, e["loss"]] for e in course]},
            {"name": "accuracy on unseen images (right scale)", "paint": "blue", "right": True,
             "points": [[e["step"] + 1, 100 * e["accuracy"]] for e in course if "accuracy" in e]},
        ]})


def phases(moments):
    """Half-open ranges of all-reduces during which the neighbour was there."""
    ranges, start = [], None
    for index, moment in enumerate([*moments, {"neighbour": False}]):
        if moment["neighbour"] and start is None:
            start = index
        if not moment["neighbour"] and start is not None:
            ranges.append((start, index))
            start = None
    return ranges


def neighbour(riffle, series):
    """Time of one all-reduce after the other. `series`: by peer, riffle first, whose plan changes
    are marked by their number."""
    moments = series[0]["series"]

    def course(name, paint, values, dashed=False):
        points = [[index, value] for index, value in enumerate([*values, values[-1]])]
        return {"name": name, "paint": paint, "points": points, "stepped": True, "dashed": dashed}

    lines = [course("physical bound", "alert", [m["bound_us"] / 1e6 for m in moments], True)]
    for one in reversed(series):
        ours = one["peer"] == "riffle"
        values = [m["time_us"] / 1e6 for m in one["series"]]
        lines.append(course("Riffle", "blue", values) if ours else
                     course("Riffle, keeping its first plan", "grey", values))
    at = [index + 1 for index, moment in enumerate(moments) for _ in moment["changes"]]
    return ask(riffle, "lines", {
        "title": "Time of each all-reduce while a foreign flow comes and goes",
        "x": {"before": "all-reduce "}, "left": {"after": " s"}, "series": lines,
        "stages": [{"from": begin, "to": end, "label": "a foreign flow on one link"}
                   for begin, end in phases(moments)],
        "marks": [{"at": x, "label": str(number + 1)} for number, x in enumerate(at)],
        "mark_text": "Riffle changes its plan"})
