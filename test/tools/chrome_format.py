"""Chrome's trace-event format, as far as `riffle trace` uses it: a checker for tests."""

# What each kind of event has to have, and no other.
FIELDS = {"M": {"ph", "pid", "tid", "name", "args"}, "X": {"ph", "pid", "tid", "name", "ts", "dur", "args"},
          "i": {"ph", "pid", "tid", "name", "ts", "s", "args"}, "s": {"ph", "pid", "tid", "name", "cat", "id", "ts"},
          "f": {"ph", "pid", "tid", "name", "cat", "id", "ts", "bp"}}


def check(picture):
    """Fails where it does not hold to the format; returns rows by name, with their slices."""
    assert set(picture) == {"displayTimeUnit", "otherData", "traceEvents"}, set(picture)
    assert picture["otherData"]["schema"] == "riffle-trace-1"
    names, slices = {}, {}
    for event in picture["traceEvents"]:
        assert set(event) == FIELDS[event["ph"]], event
        row = event["pid"], event["tid"]
        if event["name"] == "thread_name":
            assert row not in names, event
            names[row] = event["args"]["name"]
        if event["ph"] in "Xis":
            assert row in names and event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["dur"] >= 0, event
            slices.setdefault(row, []).append(event)
    for row, events in slices.items():
        for before, after in zip(events, events[1:]):
            # (To the nanosecond: microseconds are printed with three decimals.)
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-6, (names[row], before, after)
    return {(row[0], names[row]): events for row, events in slices.items()}
