"""`riffle doctor` in many situations: the verdict, the exit code, and that nothing is said twice.

usage: doctor_test.py RIFFLE PLUGIN_FOLDER NET_LIBRARY NCCL   (libraries with NET v9, and in the name of NCCL 2.27.5)
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from terminal import Terminal

RIFFLE, FOLDER, NET_LIBRARY, NCCL = sys.argv[1:5]
EMPTY = tempfile.mkdtemp()  # no settings of this machine's, no RDMA ports
RIGHT = {"LD_LIBRARY_PATH": FOLDER, "NCCL_NET_PLUGIN": "riffle", "NCCL_TUNER_PLUGIN": "riffle",
         "NCCL_PROFILER_PLUGIN": "riffle", "NCCL_COLLNET_ENABLE": "1", "NCCL_COMM_SPLIT_SHARE_RESOURCES": "1",
         "NCCL_NET_PLUGIN_REF_COUNT": "1"}
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("RIFFLE_", "NCCL_", "SLURM_"))} | {
    "HOME": EMPTY, "NCCL_CONF_FILE": "/dev/null", "RIFFLE_RDMA_PORTS": EMPTY}
SGD = {"RIFFLE_OPTIMIZER": "sgd"}
KINDS = re.compile(r"^ *(ok|note|WRONG|\[\d+\]|WARN|INFO|riffle:?|remedy: .*|\S+\.cc:\d+)\s*")
LEAST_SITUATIONS = 60  # that the tool is to tell apart
failures, situations = [], set()


def doctor(changes, *arguments):
    env = {k: v for k, v in (CLEAN | RIGHT | changes).items() if v is not None}
    return subprocess.run([RIFFLE, "doctor", *arguments], env=env, capture_output=True, text=True, check=False)


def check(what, changes, code, *said, arguments=("--nccl", "2.28.9")):
    """A text that begins with ! must not be said."""
    situations.add(what)
    done = doctor(changes, *arguments)
    output = done.stdout + done.stderr
    lines = output.splitlines()
    for _ in range(4):  # prefixes of one line
        lines = [KINDS.sub("", line) for line in lines]
    lines = [line for line in lines if line]
    wrong = [] if done.returncode == code else [f"exit code {done.returncode}, not {code}"]
    wrong += [f"does not say: {s}" for s in said if not s.startswith("!") and s not in output]
    wrong += [f"says: {s[1:]}" for s in said if s.startswith("!") and s[1:] in output]
    wrong += [f"said twice: {line}" for line in set(lines) if lines.count(line) > 1]
    wrong += [f"beside the verdicts: {done.stderr}"] if code != 2 and done.stderr else []
    if wrong:
        failures.append(what)
        print(f"{what}: {'; '.join(wrong)}\n{output}")


def problem(what, changes, *said, **more):
    check(what, changes, 1, "WRONG", "remedy: ", *said, **more)


def fine(what, changes, *said, **more):
    check(what, changes, 0, "no problem", "!WRONG", *said, **more)


def variables():
    fine("all is set", {}, "tables, for NCCL", "NCCL_NET_PLUGIN=riffle is ")
    for name in RIGHT:
        if name in ("LD_LIBRARY_PATH", "NCCL_PROFILER_PLUGIN"):
            continue
        problem(f"{name} is missing", {name: None}, name, f"remedy: export {name}={RIGHT[name]}\n", "\n1 problem\n")
    fine("2.28 needs no profiler variable", {"NCCL_PROFILER_PLUGIN": None})
    problem("2.27 does", {"NCCL_PROFILER_PLUGIN": None}, "NCCL_PROFILER_PLUGIN is not set",
            arguments=("--nccl", "2.27.5"))
    problem("2.30 compares nodes", {}, "NCCL_IGNORE_COLLNET_MISMATCH is not set", "\n1 problem\n",
            arguments=("--nccl", "2.30.7"))
    problem("not where the loader looks", {"LD_LIBRARY_PATH": ""}, "is not found by the loader",
            f"remedy: export LD_LIBRARY_PATH={FOLDER}\n")
    problem("... nor the folders that are there", {"LD_LIBRARY_PATH": "/some:/other folder"},
            f"remedy: export LD_LIBRARY_PATH='{FOLDER}:/some:/other folder'")
    problem("no such tuner", {"NCCL_TUNER_PLUGIN": "/nope/libnccl-tuner-riffle.so"},
            "NCCL_TUNER_PLUGIN=/nope/libnccl-tuner-riffle.so is not found", "\n1 problem\n")
    problem("no such profiler", {"NCCL_PROFILER_PLUGIN": "/nope/riffle.so"}, "NCCL_PROFILER_PLUGIN=/nope/riffle.so")
    problem("no such environment plugin", {"NCCL_ENV_PLUGIN": "/nope/riffle.so"}, "NCCL_ENV_PLUGIN=/nope")
    problem("2.20 opens the tuner as a file", {"NCCL_TUNER_PLUGIN": "riffle", "NCCL_PROFILER_PLUGIN": None},
            "NCCL_TUNER_PLUGIN=riffle is not found", "export NCCL_TUNER_PLUGIN=libnccl-tuner-riffle.so",
            arguments=("--nccl", "2.20.5"))
    problem("2.24 opens the profiler as a file", {}, "NCCL_PROFILER_PLUGIN=riffle is not found",
            "export NCCL_PROFILER_PLUGIN=libnccl-profiler-riffle.so", arguments=("--nccl", "2.24.3"))
    fine("2.24, with a file", {"NCCL_PROFILER_PLUGIN": "libnccl-profiler-riffle.so"}, arguments=("--nccl", "2.24.3"))
    path = f"{FOLDER}/libnccl-net-riffle.so"
    fine("a path", {"NCCL_NET_PLUGIN": path}, f"NCCL_NET_PLUGIN={path} is ")
    problem("2.18 takes no path", {"NCCL_NET_PLUGIN": path, "NCCL_TUNER_PLUGIN": None}, "is not found by the loader",
            "remedy: export NCCL_NET_PLUGIN=riffle\n", arguments=("--nccl", "2.18.3"))
    fine("a list", {"NCCL_NET_PLUGIN": "riffle,other"})
    problem("collnet is off", {"NCCL_COLLNET_ENABLE": "0"}, "NCCL_COLLNET_ENABLE=0", "export NCCL_COLLNET_ENABLE=1")
    problem("other network", {"NCCL_NET": "Socket"}, "NCCL_NET=Socket selects another network", "unset NCCL_NET")
    fine("our network", {"NCCL_NET": "riffle"})
    fine("our network, in capitals", {"NCCL_NET": "RIFFLE"})
    for rule in ("Ring", "ring,tree", "^CollNetChain,CollNetDirect", "allreduce:ring", "broadcast:ring;allreduce:tree"):
        problem(f"NCCL_ALGO={rule}", {"NCCL_ALGO": rule}, "leaves no all-reduce to CollNet", "unset NCCL_ALGO", "\n1 problem\n")
    for rule in ("CollNetChain", "ring,COLLNETDIRECT", "^ring", "^collnetdirect", "broadcast:ring", "allreduce:ring,collnetchain"):
        fine(f"NCCL_ALGO={rule}", {"NCCL_ALGO": rule}, "note  NCCL_ALGO=")
    problem("NCCL_PROTO=LL", {"NCCL_PROTO": "LL"}, "the protocol Simple")
    problem("NCCL_PROTO=^Simple", {"NCCL_PROTO": "^Simple"}, "the protocol Simple")
    fine("NCCL_PROTO=Simple", {"NCCL_PROTO": "Simple"})
    fine("a threshold", {"NCCL_COLLNET_NODE_THRESHOLD": "16"}, "communicators of fewer nodes never")


def files(folder):
    conf = folder / "nccl.conf"
    names = [n for n in RIGHT if n not in ("LD_LIBRARY_PATH", "NCCL_NET_PLUGIN")]
    conf.write_text("# ours\n" + "".join(f"{n}={RIGHT[n]}\n" for n in names))
    fine("settings in NCCL's file", dict.fromkeys(names) | {"NCCL_CONF_FILE": str(conf)},
         f"NCCL_COLLNET_ENABLE=1 ({conf})")
    bad = folder / "bad.conf"
    bad.write_text("NCCL_ALGO=Ring\nRIFFLE_STREAMS=abc\n")
    problem("a file that keeps us out", {"NCCL_CONF_FILE": str(bad)}, f"NCCL_ALGO=Ring ({bad})",
            f"take NCCL_ALGO out of {bad}", "RIFFLE_STREAMS=abc", "\n2 problems\n")
    fine("the environment comes first", {"NCCL_CONF_FILE": str(bad), "NCCL_ALGO": "CollNetChain", "RIFFLE_STREAMS": "2"})
    problem("no such file of NCCL's", {"NCCL_CONF_FILE": "/nope"}, "NCCL_CONF_FILE=/nope cannot be read", "\n1 problem\n")
    problem("no such file of ours", {"RIFFLE_CONF_FILE": "/nope"}, "RIFFLE_CONF_FILE=/nope cannot be read", "\n1 problem\n")
    ours = folder / "riffle.conf"
    ours.write_text("RIFFLE_STREMS=2\nnonsense\nRIFFLE_LANES=99\n")
    problem("our file", {"RIFFLE_CONF_FILE": str(ours)}, "did you mean RIFFLE_STREAMS?", f"{ours}:2", f"{ours}:3",
            "\n3 problems\n")
    ours.write_text("# ours\nRIFFLE_COLLNET=off\n")
    problem("a setting of our file", {"RIFFLE_CONF_FILE": str(ours)}, "RIFFLE_COLLNET=off", f"take RIFFLE_COLLNET out of {ours}:2",
            "\n1 problem\n")
    copies = folder / "copies"
    copies.mkdir()
    for library in pathlib.Path(FOLDER).glob("libnccl-*-riffle.so"):
        shutil.copy(library, copies / library.name)  # follows links
    problem("links were followed", {"LD_LIBRARY_PATH": str(copies)}, "the tables would share no state",
            "that is another file than the one beside this command", "NCCL_TUNER_PLUGIN=riffle is ")
    fabric = folder / "fabric.toml"
    fabric.write_text("nonsense")
    problem("a fabric that is none", {"RIFFLE_FABRIC": str(fabric)}, str(fabric))
    problem("no such fabric", {"RIFFLE_FABRIC": "/nope"}, "/nope")
    problem("no such topology", {"RIFFLE_TOPOLOGY": "/nope"}, "/nope")
    topology = folder / "topology.conf"
    topology.write_text("SwitchName=leaf1 Nodes=me,other\n")
    fine("a topology", {"RIFFLE_TOPOLOGY": str(topology), "RIFFLE_NODE_NAME": "me"}, "me stands in leaf1")
    topology.write_text(f"SwitchName=leaf1 Nodes={socket.gethostname()}\n")
    fine("a topology by host names", {"RIFFLE_TOPOLOGY": str(topology), "RIFFLE_NODE_NAME": "me"}, "me stands in leaf1")
    topology.write_text("SwitchName=leaf1 Nodes=me,other\n")
    problem("a topology without this node", {"RIFFLE_TOPOLOGY": str(topology), "RIFFLE_NODE_NAME": "nobody"}, "nobody")
    for knob in ("RIFFLE_RECORD", "RIFFLE_LOG_FILE"):
        fine(f"{knob} is a folder", {knob: str(folder)}, f"{knob}={folder} can be written")
        fine(f"{knob} is a folder to be made", {knob: f"{folder}/a/b/"}, "can be written")
        problem(f"{knob} is below a file", {knob: f"{conf}/x/"}, f"{conf} is no folder", f"unset {knob}")
        problem(f"{knob} has an unknown letter", {knob: f"{folder}/%q"}, "%q is not known")
    problem("no folder to save in", {"RIFFLE_FABRIC_SAVE": "/nope/f.toml"}, "RIFFLE_FABRIC_SAVE=/nope/f.toml")
    if os.geteuid() != 0:
        problem("a folder of someone else", {"RIFFLE_RECORD": "/nope/x/"}, "RIFFLE_RECORD=/nope/x/ cannot be written")


def knobs():
    for name, value, said in (
            ("RIFFLE_STREAMS", "abc", "accepted is 0..16"), ("RIFFLE_STREAMS", "17", "accepted is 0..16"),
            ("RIFFLE_COLLNET", "maybe", "auto|on|off|tcp"), ("RIFFLE_PAYLOAD_CRC", "2", "0|1"),
            ("RIFFLE_CHUNK_BYTES", "1", "64K..64M"), ("RIFFLE_NO_SUCH", "1", "no setting of Riffle"),
            ("RIFFLE_COLLNET", "off", "no group plan ever runs"), ("RIFFLE_PLAN", "triangle", "triangle"),
            ("RIFFLE_CPUS", "8000", "threads cannot run there"), ("RIFFLE_CPUS", "x", "RIFFLE_CPUS=x"),
            ("RIFFLE_CONGESTION", "nope", "tcp_allowed_congestion_control"),
            ("RIFFLE_SOCKET_IFNAME", "ib9", "ib9"), ("NCCL_SOCKET_IFNAME", "=nope", "nope"),
            ("RIFFLE_MIN_RATE", "100", "RIFFLE_ON_LOSS=continue"), ("RIFFLE_TRACE", "10", "without RIFFLE_RECORD"),
            ("RIFFLE_SPARSE", "2", "RIFFLE_SPARSE=2"),
            ("RIFFLE_SYNC", "ds_sync", "say RIFFLE_OPTIMIZER=sgd if that is")):
        problem(f"{name}={value}", {name: value}, said, "\n1 problem\n")
    problem("a mode without replanning", SGD | {"RIFFLE_SYNC": "moshpit", "RIFFLE_EPOCH": "0"}, "RIFFLE_EPOCH=0")
    problem("two modes", SGD | {"RIFFLE_SYNC": "ds_sync", "RIFFLE_SPARSE": "0.01"}, "one of the two")
    problem("no momentum", SGD | {"RIFFLE_SYNC": "ds_sync", "RIFFLE_MOMENTUM": "3"}, "RIFFLE_MOMENTUM=3")
    fine("a mode", SGD | {"RIFFLE_SYNC": "ds_sync"}, "sums are not exact: RIFFLE_SYNC=ds_sync")
    fine("sparse", {"RIFFLE_SPARSE": "0.01"}, "sums are not exact: RIFFLE_SPARSE=0.01")
    fine("a narrower type", {"RIFFLE_WIRE": "bf16"}, "sums are not exact: RIFFLE_WIRE=bf16")
    fine("a plan", {"RIFFLE_PLAN": "ring"}, "note  RIFFLE_PLAN=ring")
    fine("losses", {"RIFFLE_ON_LOSS": "continue", "RIFFLE_MIN_RATE": "100"})
    fine("a CPU", {"RIFFLE_CPUS": str(min(os.sched_getaffinity(0)))}, "threads can run there")
    problem("two modes, and no optimizer", {"RIFFLE_SYNC": "ds_sync", "RIFFLE_SPARSE": "0.01"}, "one of the two")
    fine("no CPU", {"RIFFLE_CPUS": "none"})
    fine("congestion", {"RIFFLE_CONGESTION": "reno"}, "RIFFLE_CONGESTION=reno: the kernel has it")
    fine("loopback", {"RIFFLE_SOCKET_IFNAME": "=lo"})
    fine("a rack", {"RIFFLE_RACK": "r1"}, "RIFFLE_RACK=r1 names the rack")


def encryption(folder):
    key = folder / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    on, keyed = {"RIFFLE_ENCRYPT": "1"}, {"RIFFLE_ENCRYPT": "1", "RIFFLE_KEY_FILE": str(key)}
    fine("encryption", on, "RIFFLE_ENCRYPT=1: ", "note  without RIFFLE_KEY_FILE")
    fine("encryption with a key", keyed, "with the key of RIFFLE_KEY_FILE", "!note  without RIFFLE_KEY_FILE")
    key.chmod(0o644)
    problem("a key that others can read", keyed, f"RIFFLE_KEY_FILE {key} has mode 0644", "chmod 0600", "\n1 problem\n")
    key.chmod(0o600)
    key.write_bytes(b"k")
    problem("a short key", keyed, "has 1 bytes: 32..4096", "\n1 problem\n")
    problem("no key", {"RIFFLE_ENCRYPT": "1", "RIFFLE_KEY_FILE": "/nope"}, "cannot read RIFFLE_KEY_FILE /nope", "\n1 problem\n")
    problem("a key without encryption", {"RIFFLE_KEY_FILE": str(key)}, "has no use without RIFFLE_ENCRYPT=1", "\n1 problem\n")
    problem("encryption, misspelt", {"RIFFLE_ENCRYPTION": "1"}, "did you mean RIFFLE_ENCRYPT?", "\n1 problem\n")
    problem("encryption of another library", on | {"RIFFLE_NET": NET_LIBRARY}, "RIFFLE_ENCRYPT=1 does not go with RIFFLE_NET=",
            "\n1 problem\n")


def ports(folder):
    for device, state, layer in (("efa_0", "4: ACTIVE", "Unspecified"), ("efa_1", "1: DOWN", "Unspecified")):
        port = folder / device / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text(state + "\n")
        (port / "link_layer").write_text(layer + "\n")
    efa = {"RIFFLE_RDMA_PORTS": str(folder)}
    fine("EFA", efa, "note  RDMA ports are active that only a plugin of their own can use: efa_0:1 (Unspecified); ",
         "RIFFLE_NET=ofi (aws-ofi-nccl)", "!no RDMA port", "!efa_1")
    fine("EFA, and its plugin", efa | {"RIFFLE_NET": NET_LIBRARY}, "!efa_0")
    fine("no RDMA", {}, "no RDMA port is active: Riffle carries TCP")


def wires():
    fine("NET of another library", {"RIFFLE_NET": NET_LIBRARY}, f"RIFFLE_NET={NET_LIBRARY} is {NET_LIBRARY}, NET v9",
         "all-reduces stay with NCCL over that library", "device 1: strict1, 12345 Mbit/s", "!no RDMA port")
    fine("... by its bare name", {"RIFFLE_NET": "strict9", "LD_LIBRARY_PATH": f"{FOLDER}:{os.path.dirname(NET_LIBRARY)}"},
         f"RIFFLE_NET=strict9 is {NET_LIBRARY}")
    fine("... with group plans over it", {"RIFFLE_NET": NET_LIBRARY, "RIFFLE_COLLNET": "on"},
         "RIFFLE_COLLNET=on: all-reduces take connections of that library")
    fine("... beside Riffle's TCP", {"RIFFLE_NET": NET_LIBRARY, "RIFFLE_COLLNET": "tcp"},
         "RIFFLE_COLLNET=tcp: all-reduces take Riffle's TCP beside that library")
    fine("... alone, all-reduces being NCCL's", {"RIFFLE_NET": NET_LIBRARY, "RIFFLE_COLLNET": "off", "NCCL_ALGO": "Ring",
                                                 "NCCL_COLLNET_ENABLE": None, "NCCL_TUNER_PLUGIN": None})
    problem("... but not where they are to be Riffle's", {"RIFFLE_NET": NET_LIBRARY, "RIFFLE_COLLNET": "on",
                                                          "NCCL_ALGO": "Ring"}, "leaves no all-reduce to CollNet")
    fine("the next of the list", {"RIFFLE_NET": "next", "NCCL_NET_PLUGIN": f"riffle,{NET_LIBRARY}"},
         f"RIFFLE_NET=next is {NET_LIBRARY}")
    problem("no next", {"RIFFLE_NET": "next"}, "NCCL_NET_PLUGIN=riffle names no library after riffle",
            "remedy: unset RIFFLE_NET")
    problem("no lists before 2.27.3", {"RIFFLE_NET": "next", "NCCL_NET_PLUGIN": f"riffle,{NET_LIBRARY}"},
            "this NCCL takes no list", arguments=("--nccl", "2.26.2"))
    problem("no such library", {"RIFFLE_NET": "tpc"}, "RIFFLE_NET=tpc: no such library", "libnccl-net-tpc.so",
            "accepted: auto, tcp, next, ofi", "remedy: unset RIFFLE_NET")
    problem("no table", {"RIFFLE_NET": "libc.so.6"}, "none of ncclNetPlugin_v5 to v12")
    problem("Riffle itself", {"RIFFLE_NET": "riffle"}, "libnccl-net-riffle.so is Riffle itself")
    fine("... which has NET alone", {"RIFFLE_NET": NET_LIBRARY}, "!does not pass on")
    others = f"{os.path.dirname(NET_LIBRARY)}/libnccl-net-strict-others.so"
    whole, own = f"sets NCCL_NET_PLUGIN={others}, without Riffle", "which Riffle does not pass on: a job that needs it sets NCCL_"
    fine("what else it has", {"RIFFLE_NET": others}, f"note  {others} has COLLNET, which Riffle passes on: ",
         f"{others} has GIN, {own}GIN_PLUGIN={others}\n", f"{others} has RMA, {own}RMA_PLUGIN={others}\n",
         f"{others} has a tuner, which Riffle does not pass on: NCCL_TUNER_PLUGIN={others} takes it", arguments=("--nccl", "2.30.7"))
    fine("... before GIN had a variable of its own", {"RIFFLE_NET": others}, f"has GIN, {own}NET_PLUGIN={others}, without", "!has RMA")
    fine("... and before there was GIN", {"RIFFLE_NET": others}, "has COLLNET, ", "!has GIN", arguments=("--nccl", "2.27.5"))
    fine("... its COLLNET, where all-reduces are Riffle's", {"RIFFLE_NET": others, "RIFFLE_COLLNET": "tcp"},
         f"{others} has COLLNET, which RIFFLE_COLLNET=tcp keeps out", "!passes it on: ")
    fine("... or left out", {"RIFFLE_NET": others, "RIFFLE_COLLNET": "off", "NCCL_COLLNET_ENABLE": None}, "which RIFFLE_COLLNET=off keeps out")
    tuner = {"RIFFLE_NET": others, "NCCL_TUNER_PLUGIN": others}
    fine("another tuner where all-reduces are NCCL's", tuner, f"note  NCCL_TUNER_PLUGIN={others} is {others}, which chooses how",
         "!has a tuner")
    problem("... and where they are Riffle's", tuner | {"RIFFLE_COLLNET": "tcp"}, "the tables would share no state", "\n1 problem\n")
    problem("... or NET is", {"NCCL_TUNER_PLUGIN": others}, "the tables would share no state", "\n1 problem\n")
    problem("too new for this NCCL", {"RIFFLE_NET": NET_LIBRARY}, "has NET v9, this NCCL reads v8 and older",
            arguments=("--nccl", "2.22.3"))


def nccl(folder):
    reads = "reads NET and COLLNET v10, TUNER v4, PROFILER v4"
    loads = {"LD_LIBRARY_PATH": f"{FOLDER}:{os.path.dirname(NCCL)}"}
    fine("NCCL where the loader looks", loads, f"NCCL: 2.27.5\n  ok    NCCL 2.27.5 is {os.path.dirname(NCCL)}/libnccl.so.2, and {reads}\n",
         arguments=())
    fine("another release than --nccl's", loads, "ok    NCCL 2.28.9 reads NET and COLLNET v11, TUNER v5, PROFILER v5, ENV v1\n",
         f"note  NCCL here is 2.27.5, {os.path.dirname(NCCL)}/libnccl.so.2: --nccl names another release")
    fine("--nccl names the one that is there", loads, f"NCCL 2.27.5 is {os.path.dirname(NCCL)}", "!NCCL here is",
         arguments=("--nccl", "2.27.5"))
    packages = folder / "venv/lib/python3.11/site-packages/nvidia/nccl/lib"
    packages.mkdir(parents=True)
    shutil.copy(NCCL, packages / "libnccl.so.2")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        fine(f"NCCL of a Python environment, {variable}", {variable: str(folder / "venv")},
             f"NCCL 2.27.5 is {packages}/libnccl.so.2, and {reads}", arguments=())
    conda = folder / "conda/lib"
    conda.mkdir(parents=True)
    shutil.copy(NCCL, conda / "libnccl.so.2")
    fine("NCCL as conda's own package", {"CONDA_PREFIX": str(folder / "conda")}, f"NCCL 2.27.5 is {conda}/libnccl.so.2", arguments=())
    fine("LD_LIBRARY_PATH comes first", {"CONDA_PREFIX": str(folder / "conda"), "LD_LIBRARY_PATH": f"{FOLDER}:{packages}"},
         f"NCCL 2.27.5 is {packages}/libnccl.so.2", arguments=())


def machine():
    fine("the kernel and its TCP", {}, f"ok    Linux {os.uname().release}, TCP congestion control ")
    fine("congestion control that was asked for", {"RIFFLE_CONGESTION": "reno"}, ", TCP congestion control reno")
    fine("NICs with their MTU", {"RIFFLE_SOCKET_IFNAME": "=lo"}, "ok    traffic takes lo (MTU 65536)")


def on_a_terminal(folder):
    """What takes longer than two seconds says so there, and there alone."""
    slow = folder / "slow"
    slow.write_text("#!/bin/sh\nsleep 4\nexit 1\n")
    slow.chmod(0o755)
    command = ("doctor", "--hosts", "a,b", "--ssh", str(slow))
    terminal = Terminal(RIFFLE, *command)
    terminal.read_until("waiting for 2 hosts, 2 s")
    terminal.read_until("a takes no part: ended, exit code 1")
    if (code := terminal.end()) != 1:
        failures.append(f"on a terminal: exit code {code}")
    done = doctor({}, *command[1:])
    if done.returncode != 1 or "waiting" in done.stdout + done.stderr:
        failures.append("no terminal, but it says that it waits")
        print(done)


def forms():
    check("a release that there is not", {}, 2, "NCCL release", arguments=("--nccl", "1.0"))
    check("two forms", {}, 2, arguments=("--json", "--fix"))
    loop = ("--nccl", "2.28.9", "--loop")
    fine("a whole all-reduce", {}, "all-reduce of 4 MiB among 3 processes over loopback: right", arguments=loop)
    fine("... whatever the job's settings", SGD | {"RIFFLE_SYNC": "ds_sync", "RIFFLE_NODE_NAME": "n1"},
         "over loopback: right", arguments=loop)
    for what, arguments, said in (
            ("one host", ("--hosts", "a"), "2 to 1024 hosts are accepted, not 1"),
            ("a host twice", ("--hosts", "a,b,a"), "host a is named twice"),
            ("no host name", ("--hosts", "a,b;c"), "'b;c' is no host name"),
            ("no file of hosts", ("--hostfile", "/nope"), "--hostfile /nope cannot be read"),
            ("a file without hosts", ("--hostfile", "/dev/null"), "/dev/null names no host"),
            ("fixes elsewhere", ("--fix", "--hosts", "a,b"), "--fix")):
        check(what, {}, 2, said, arguments=arguments)
    changes = {"NCCL_COLLNET_ENABLE": None, "NCCL_ALGO": "Ring", "RIFFLE_SYNC": "ds_sync", "RIFFLE_STREAMS": "abc",
               "RIFFLE_COLLNET": "off"}
    done = doctor(changes, "--fix", "--nccl", "2.28.9")
    if (done.returncode, done.stdout) != (1, "export NCCL_COLLNET_ENABLE=1\nunset NCCL_ALGO\nunset RIFFLE_COLLNET\n"):
        failures.append("--fix: only what does no harm")
        print(done)
    found = json.loads(doctor({"NCCL_ALGO": "Ring"}, "--json", "--nccl", "2.28.9").stdout)
    kinds = [v["kind"] for v in found["verdicts"]]
    if (found["schema"], found["problems"], kinds.count("problem")) != ("riffle-doctor-1", 1, 1):
        failures.append("--json")
        print(found)


variables()
with tempfile.TemporaryDirectory() as made:
    files(pathlib.Path(made))
    encryption(pathlib.Path(made))
    nccl(pathlib.Path(made))
    on_a_terminal(pathlib.Path(made))
with tempfile.TemporaryDirectory() as made:
    ports(pathlib.Path(made))
machine()
knobs()
wires()
forms()
if len(situations) < LEAST_SITUATIONS:
    failures.append(f"{len(situations)} situations, fewer than {LEAST_SITUATIONS}")
shutil.rmtree(EMPTY)
sys.exit(f"wrong: {failures}" if failures else 0)
