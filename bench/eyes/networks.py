"""Networks to look at, which racks of a fabric make a difference, and fabrics that are wrong."""
import copy
import json
import subprocess
import tomllib

# Those of "the plain manner" (docs/emulator.md), in which racks were once missed.
FIXED = ("plain-uneven2 plain-slow5 plain-slow7 plain-uniform16 plain-racks8 plain-racks8-five plain-racks8-uneven "
         "plain-racks9 plain-racks10 plain-racks12 plain-racks12-even").split()
# An uplink that carries nearly all that its nodes have does not show.
SHOWS = 0.95


def of_seeds(text):
    """ "1-3,7" -> random:1, random:2, random:3, random:7."""
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return [f"random:{seed}" for seed in seeds]


def profile_of(riffle, network, folder):
    """(The profile, the true fabric), both as TOML says them."""
    file = f"{folder}/truth.toml"
    done = subprocess.run([riffle, "cluster", "--profile", network, "--print", "--fabric", file],
                          capture_output=True, text=True, check=True)
    with open(file, "rb") as truth:
        return tomllib.loads(done.stdout), tomllib.load(truth)


def ways(item, out, into, both):
    """Rates of the two directions; None where there is no limit."""
    return (item.get(out, item.get(both)), item.get(into, item.get(both)))


def members_of(fabric):
    """Of every rack in the file's order: the set of its nodes."""
    return [frozenset(n for n, node in enumerate(fabric["node"]) if node.get("rack") == rack["name"])
            for rack in fabric.get("rack", [])]


def racks_that_show(fabric):
    """Sets of nodes. Files name nodes in the order of their ranks. A rack of one node, of all, or
    with room for all that its nodes have is none; beside a single rack the rest is one as well."""
    rates = [ways(node, "out_mbps", "in_mbps", "rate_mbps") for node in fabric["node"]]
    everyone = frozenset(range(len(rates)))
    found = set()
    for rack, members in zip(fabric.get("rack", []), members_of(fabric)):
        limits = ways(rack, "up_mbps", "down_mbps", "uplink_mbps")
        shows = any(limit is not None and limit < SHOWS * sum(rates[n][way] for n in members)
                    for way, limit in enumerate(limits))
        if shows and 1 < len(members) < len(everyone):
            found.add(members)
    return found | {everyone - rack for rack in found} if len(found) == 1 else found


LIMITS = ("up_mbps", "down_mbps", "uplink_mbps")


def tightest(racks):
    """The one with the slowest uplink, of those that have one."""
    return min((r for r in racks if any(r.get(k) for k in LIMITS)), key=lambda r: min(r[k] for k in LIMITS if r.get(k)))


def swap_uplinks(fabric):
    racks = [rack for rack in fabric["rack"] if any(rack.get(key) for key in LIMITS)]
    one = tightest(racks)
    other = max(racks, key=lambda rack: max(rack.get(key, 0) for key in LIMITS))
    one["name"], other["name"] = other["name"], one["name"]


def double_uplink(fabric):
    rack = tightest(fabric["rack"])
    rack.update({key: 2 * rack[key] for key in LIMITS if key in rack})


def swap_nodes(fabric):
    one = fabric["node"][0]
    other = next(node for node in fabric["node"] if node["rack"] != one["rack"])
    one["rack"], other["rack"] = other["rack"], one["rack"]


# What a file may have wrong.
WRONG = {"swapped-uplinks": swap_uplinks, "doubled-uplink": double_uplink, "swapped-nodes": swap_nodes}


def write_wrong(fabric, how, file):
    """A file for RIFFLE_FABRIC."""
    fabric = copy.deepcopy(fabric)
    WRONG[how](fabric)
    lines = [f"{key} = {value}" for key, value in fabric.items() if not isinstance(value, list)]
    for kind in ("rack", "node"):
        for item in fabric.get(kind, []):
            lines += [f"[[{kind}]]"] + [f"{key} = {json.dumps(value)}" for key, value in item.items()]
    file.write_text("\n".join(lines) + "\n")
