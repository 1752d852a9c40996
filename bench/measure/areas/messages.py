"""What a message costs the processors of both its ends, through the TCP mesh and through a bare loop of writev and
readv, in turns."""
from table import Area, Figure, Run, at_most, rows

BENCH = "build/bench/riffle_message_bench --json {json}"
SIZES = {64: "64 bytes", 1 << 10: "1 KiB", 4 << 10: "4 KiB", 16 << 10: "16 KiB", 64 << 10: "64 KiB", 256 << 10: "256 KiB"}
# Frames that may wait for one peer at once, and what that is.
AHEAD = {64: "many at once", 1: "one at a time"}


def figures(ahead, size):
    words = f"{SIZES[size]}, {AHEAD[ahead]}, to 16 nodes"
    which = {"peers": 16, "ahead": ahead, "bytes": size}
    found = [Figure(f"{words}: ns per message", rows("message_ns", **which), digits=0),
             Figure(f"{words}: ns per message, bare loop", rows("bare_message_ns", **which), digits=0)]
    if size >= 64 << 10:
        found.append(Figure(f"{words}: µs per MiB, both ends", rows("mib_ns", scale=1e-3, **which), digits=0))
    # What the mesh gathers, a loop with a call per message has to lose against.
    limit = at_most(0.6) if ahead > 1 and size <= 4 << 10 else None
    found.append(Figure(f"{words}: over the bare loop", rows("ratio", **which), limit))
    return found


AREA = Area(
    title="Messages", minutes=2, targets=("riffle_message_bench",),
    about="Processor time of the thread that sends and of the one that receives, over loopback, one direction; the bare loop has one "
          "`writev` and one `readv` per message.",
    runs=[Run("sizes", BENCH, [f for ahead in AHEAD for size in SIZES for f in figures(ahead, size)],
              quick=BENCH + " --rounds 1", repeat=3)])
