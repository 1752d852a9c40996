"""The two contenders, a job with Riffle and the same job without: the variables of each."""
import json
import os
import pathlib
import re
import shutil
import subprocess

from job import Missing

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("without", "with")
LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}  # says which network is used


def find_command(asked):
    """The `riffle` command: the one that is named, that of PATH, or that of the folder RIFFLE_LIB_DIR."""
    library = os.environ.get("RIFFLE_LIB_DIR")
    places = [asked] if asked else ["riffle"] + [
        os.path.join(library, folder, "riffle") for folder in ("../bin", "../tools") if library]
    for place in places:
        if found := shutil.which(place):
            return found
    raise Missing(f"no riffle command ({', '.join(places)}): install Riffle, and set PATH, RIFFLE_LIB_DIR or --riffle")


def exports(command):
    """What `riffle env` tells a job to export: a list of {name, value, prepend}."""
    done = subprocess.run([command, "env", "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"{command} env: exit status {done.returncode}: {done.stderr.strip()}")
    told = json.loads(done.stdout)
    if missing := [note for note in told["notes"] if "libnccl-net-riffle.so" in note]:
        raise Missing(f"{command} env: {missing[0]}")
    return told["variables"]


def without_riffle(environment, variables):
    """Less what names Riffle: another plugin that the job has stays."""
    names = {v["name"] for v in variables if not v["prepend"]}
    is_on = "riffle" in environment.get("NCCL_NET_PLUGIN", "")
    return {name: value for name, value in environment.items()
            if name not in names or not (is_on or "riffle" in value)}


def with_riffle(environment, variables):
    changed = dict(environment)
    for v in variables:
        before = environment.get(v["name"])
        changed[v["name"]] = f"{v['value']}:{before}" if v["prepend"] and before else v["value"]
    return changed


def environments(command, defaults):
    """Of each contender; `defaults` are for variables that are not set. A launcher's own store and its logs are
    not for the processes that are started here."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("TORCHELASTIC_")}
    if "NCCL_DEBUG" not in base:
        base.update(LOG)
    for name, value in defaults.items():
        base.setdefault(name, value)
    variables = exports(command)
    plain = without_riffle(base, variables)
    return {"without": plain, "with": with_riffle(plain, variables)}


def settings(environment):
    """Those worth keeping beside what was measured."""
    return {name: value for name, value in sorted(environment.items()) if name.startswith(("NCCL_", "RIFFLE_"))
            and not name.endswith(("_DIR", "_HOSTID")) and not name.startswith("NCCL_DEBUG")}


def what_nccl_used(log):
    """By NCCL's own words."""
    network = re.search(r"Using network (\S+)", log)
    return {"network": network[1] if network else None, "collnet": "via COLLNET/" in log}
