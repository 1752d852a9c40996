"""What communicators cost a process that has them, and what is left of them once they are destroyed."""
from table import Area, Figure, Run, at_most, rows

PLUGIN = "build/plugin/libnccl-net-riffle.so"
COMMAND = f"build/bench/riffle_footprint --plugin {PLUGIN} --json {{json}} "
FITTED = (8, 16, 32)  # nodes
MIB = 1 / 1024
# Field, scale, what it is called, digits.
COLUMNS = {"connections": ("connections", 1, "connections", 0), "idle": ("idle_us_per_s", 1e-3, "idle, ms of processor a second", 2),
           "connected": ("private_kib", MIB, "MiB, connected", 1), "used": ("private_kib", MIB, "MiB, after two sums each", 1),
           "threads": ("threads", 1, "threads", 0)}


def stage_of(column):
    return "connected" if column == "connected" else "used"


def figure(nodes, communicators, column, limit=None, where=""):
    field, scale, name, digits = COLUMNS[column]
    return Figure(f"{nodes} nodes{where} x {communicators}: {name}",
                  rows(field, scale=scale, nodes=nodes, communicators=communicators, stage=stage_of(column)),
                  limit, digits=digits)


def line(out, field, communicators, stage):
    """(base, slope) of the least squares over the nodes that were measured, and the points."""
    points = [(r["nodes"] - 1, r[field]) for r in out.rows
              if r["communicators"] == communicators and r["stage"] == stage and r["nodes"] in FITTED]
    x_mean, y_mean = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)
    return y_mean - slope * x_mean, slope, points


def extrapolated(nodes, communicators, column):
    field, scale, name, digits = COLUMNS[column]

    def value(out):
        base, slope, _ = line(out, field, communicators, stage_of(column))
        return (base + slope * (nodes - 1)) * scale
    return Figure(f"{nodes} nodes x {communicators}, extrapolated: {name}", value, digits=digits)


def misfit(communicators, column):
    """How far the line is off where it was fitted, in percent."""
    field, _, name, _ = COLUMNS[column]

    def value(out):
        base, slope, points = line(out, field, communicators, stage_of(column))
        return max(abs(base + slope * x - y) / y * 100 for x, y in points)
    return Figure(f"8, 16 and 32 nodes x {communicators}: farthest from their line, %, {name}", value, digits=1)


def per_peer(communicators):
    """Idle links, so before the first sum. Communicators of the same processes share a link: with one, all that a link
    takes is in it, with many, mostly what each of them has for a peer."""
    def value(out):
        return line(out, "private_kib", communicators, "connected")[1] / communicators
    return Figure(f"KiB per further node and communicator, {communicators} communicators, connected", value, at_most(16), digits=1)


def left(field, name, limit):
    """In the 20th round more than in the 2nd."""
    def value(out):
        after = {r["round"]: r[field] for r in out.rows if r["stage"] == "destroyed"}
        return after[20] - after[2]
    return Figure(f"8 nodes x 64, destroyed: {name}, after 20 rounds beyond after 2", value,
                  at_most(limit), digits=0)


AREA = Area(
    title="What communicators cost a process", minutes=30, targets=("riffle_footprint", "riffle_plugin"),
    about="Processes on loopback, nodes x communicators of all of them; the process that has most, beyond what it had with the "
          "plugin loaded. Private pages only; the kernel's socket memory is not in them.",
    runs=[
        Run("flat", COMMAND + "--nodes 8,16,32 --comms 1,8,64",
            [figure(n, c, column) for n in FITTED for c in (1, 8, 64) for column in ("connections", "used")]
            + [figure(n, 64, column) for n in FITTED for column in ("idle", "threads")]
            + [per_peer(1), per_peer(64)]
            + [extrapolated(128, 64, column) for column in ("connections", "used", "idle")]
            + [misfit(64, column) for column in ("used", "idle")],
            quick=COMMAND + "--nodes 8,16,32 --comms 1,2 --idle-s 1"),
        Run("flat128", COMMAND + "--nodes 128 --comms 1,8",
            [figure(128, c, column) for c in (1, 8) for column in ("connections", "used", "idle")],
            quick=COMMAND + "--nodes 32 --comms 1 --idle-s 1"),
        Run("racks128", COMMAND + "--nodes 128 --racks 16 --comms 8",
            [figure(128, 8, column, {"connections": at_most(300), "used": at_most(20)}.get(column), " in 16 racks")
             for column in ("connections", "used", "idle", "threads")],
            quick=COMMAND + "--nodes 32 --racks 4 --comms 1 --idle-s 1"),
        Run("rounds", COMMAND + "--nodes 8 --comms 64 --rounds 20 --idle-s 0",
            [left("private_kib", "KiB", 1024), left("heap_kib", "KiB in use of the heap", 64),
             left("descriptors", "descriptors", 0), left("threads", "threads", 0)],
            quick=COMMAND + "--nodes 4 --comms 2 --rounds 2 --idle-s 0")])
