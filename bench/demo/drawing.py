"""The pictures of the report, as inline SVG. Colours are names of the page's style sheet, so that
the pictures follow a dark or light background; nothing is told by colour alone."""

from html import escape

WIDTH = 720


def svg(height, title, body):
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
            f"<title>{escape(title)}</title>{''.join(body)}</svg>")


def text(x, y, words, style="", anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">' \
           f"{escape(str(words))}</text>"


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def box(x, y, width, height, style, radius=8):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" ' \
           f'rx="{radius}" class="{style}"/>'


def node(x, y, number, rack):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="14" class="rack{rack % 4}"/>' + \
           text(x, y + 4.5, number, "number")


def slowest_links(net):
    """What limits an all-reduce first: the racks whose uplink, else the nodes whose link, is the
    narrowest of all."""
    uplinks = [r["uplink_mbps"] for r in net.racks if r["uplink_mbps"]]
    least = min(uplinks + [n["rate_mbps"] for n in net.nodes])
    racks = {i for i, r in enumerate(net.racks) if r["uplink_mbps"] == least}
    nodes = set() if len(set(n["rate_mbps"] for n in net.nodes)) == 1 else {
        i for i, n in enumerate(net.nodes) if n["rate_mbps"] == least}
    return racks, nodes


def network(net):
    slow_racks, slow_nodes = slowest_links(net)
    body, gap = [], 16
    width = (WIDTH - gap * (len(net.racks) - 1)) / len(net.racks)
    core = WIDTH / 2
    for index, rack in enumerate(net.racks):
        left = index * (width + gap)
        middle = left + width / 2
        members = net.members(index)
        slow = index in slow_racks
        if rack["uplink_mbps"]:
            away = -1 if middle < core else 1
            body.append(text((core + middle) / 2 + 14 * away, 66,
                             f"{rack['uplink_mbps']:g} Mbit/s" + (", the bottleneck" * slow),
                             "bold" if slow else "", "end" if away < 0 else "start"))
        body.append(box(left, 96, width, 132, "area"))
        body.append(line(core, 38, middle, 104, "slow" if slow else "link"))
        body.append(box(middle - 52, 104, 104, 26, "switch", 5))
        body.append(text(middle, 121, f"rack {rack['name']}"))
        for place, member in enumerate(members):
            x = left + width * (place + 0.5) / len(members)
            slow_node = member in slow_nodes
            body.append(line(middle, 130, x, 178, "slow" if slow_node else "link"))
            body.append(node(x, 184, member, index))
            body.append(text(x, 216, f"{net.nodes[member]['rate_mbps']:g}" + "!" * slow_node,
                             "bold" if slow_node else "faint"))
    body.append(box(core - 52, 12, 104, 26, "switch", 5))
    body.append(text(core, 29, "core switch"))
    return svg(232, "Network: " + net.about, body)


def groups(net, level):
    """The groups of one level, each a box with its members; node colours are racks."""
    count = len(level)
    columns = min(count, 4 if max(len(g["members"]) for g in level) <= 3 else 2)
    width, height = (WIDTH - 12 * (columns - 1)) / columns, 84
    body = []
    for index, group in enumerate(level):
        x = (index % columns) * (width + 12)
        y = (index // columns) * (height + 12)
        members, cuts = group["members"], group["cuts"]
        body.append(box(x, y, width, height, "area"))
        inner = [x + width * (i + 0.5) / len(members) for i in range(len(members))]
        body.append(line(inner[0], y + 32, inner[-1], y + 32, "link"))
        for at, member, share in zip(inner, members, (b - a for a, b in zip(cuts, cuts[1:]))):
            body.append(node(at, y + 32, member, net.nodes[member]["rack"]))
            body.append(text(at, y + 68, f"{100 * share / (1 << 30):.3g} %", "faint"))
    rows = -(-count // columns)
    return svg(rows * (height + 12) - 12, "Groups of one level", body)


def bars(buckets):
    """One bar per library, cut at its buckets; a line at the bound."""
    libraries, bounds = buckets["libraries"], buckets["bounds_s"]
    longest = max(library["total_s"] for library in libraries)
    left, room = 100, WIDTH - 100 - 170
    body, y = [], 26
    for library in libraries:
        body.append(text(left - 10, y + 17, library["name"],
                         "bold" if library["peer"] == "riffle" else "", "end"))
        x = left
        for seconds in library["times_s"]:
            length = room * seconds / longest
            body.append(box(x, y, length - 1.5, 24,
                            "ours" if library["peer"] == "riffle" else "theirs", 2))
            x += length
        label = f"{library['total_s']:.2f} s"
        if bounds:
            label += f" = {library['total_s'] / sum(bounds):.2f} × bound"
        body.append(text(x + 6, y + 17, label, "", "start"))
        y += 36
    if bounds:
        x = left + room * sum(bounds) / longest
        body.append(line(x, 20, x, y, "bound"))
        body.append(text(x, 14, f"physical bound {sum(bounds):.2f} s", "", "start"))
    return svg(y + 4, "Time of each library for the gradients of one ResNet-50 step", body)


def curve(course):
    """Loss of every step, and accuracy on unseen images where it was measured."""
    left, right, top, bottom = 56, WIDTH - 56, 16, 190
    steps = len(course)
    highest = max(entry["loss"] for entry in course)

    def x_of(step):
        return left + (right - left) * step / max(steps - 1, 1)

    def y_of(part):
        return bottom - (bottom - top) * part

    def path(points, style):
        return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" ' \
               f'class="{style}"/>'

    body = []
    for part in (0, 0.5, 1):
        y = y_of(part)
        body.append(line(left, y, right, y, "grid"))
        body.append(text(left - 8, y + 4, f"{highest * part:.1f}", "faint", "end"))
        body.append(text(right + 8, y + 4, f"{100 * part:.0f} %", "faint", "start"))
    for step in (0, steps // 2, steps):
        body.append(text(x_of(max(step - 1, 0)), bottom + 18, f"step {max(step, 1)}", "faint"))
    body.append(path([(x_of(e["step"]), y_of(e["loss"] / highest)) for e in course], "loss"))
    measured = [e for e in course if "accuracy" in e]
    body.append(path([(x_of(e["step"]), y_of(e["accuracy"])) for e in measured], "accuracy"))
    late = measured[len(measured) // 2]
    body.append(text(x_of(late["step"]), y_of(late["accuracy"]) + 18,
                     "accuracy on unseen images (right scale)"))
    body.append(text(x_of(late["step"]), y_of(0.3),
                     "loss on worker 0’s images (left scale, dashed)"))
    return svg(bottom + 26, "Loss and accuracy over the steps of the training", body)
