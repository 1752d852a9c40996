"""The picture of a neighbour that comes and goes: time of one all-reduce after the other."""

from drawing import WIDTH, box, line, svg, text


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


def timeline(series):
    """`series`: by peer, riffle first. Plan changes are riffle's."""
    left, right, top, bottom = 48, WIDTH - 12, 30, 230
    longest = max(m["time_us"] for one in series for m in one["series"]) / 1e6
    count = max(len(one["series"]) for one in series)

    def x_of(index):
        return left + (right - left) * index / count

    def y_of(seconds):
        return bottom - (bottom - top) * seconds / longest

    def steps(values, style):
        points = []
        for index, value in enumerate(values):
            points += [(x_of(index), y_of(value)), (x_of(index + 1), y_of(value))]
        return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" ' \
               f'class="{style}"/>'

    moments = series[0]["series"]
    body = []
    for begin, end in phases(moments):
        body.append(box(x_of(begin), top, x_of(end) - x_of(begin), bottom - top, "area", 0))
        body.append(text((x_of(begin) + x_of(end)) / 2, top - 12, "a foreign flow on one link"))
    for part in (0, 0.5, 1):
        y = y_of(longest * part)
        body.append(line(left, y, right, y, "grid"))
        body.append(text(left - 6, y + 4, f"{longest * part:.1f} s", "faint", "end"))
    for index, moment in enumerate(moments):
        if moment["changes"]:
            x = x_of(index + 1)
            body.append(line(x, top, x, bottom, "change"))
            body.append(text(x, bottom + 16, "new plan", "bold"))
    body.append(steps([m["bound_us"] / 1e6 for m in moments], "limit"))
    for one in reversed(series):
        style = "course" if one["peer"] == "riffle" else "other"
        body.append(steps([m["time_us"] / 1e6 for m in one["series"]], style))
    return svg(bottom + 24, "Time of each all-reduce while a foreign flow comes and goes", body)
