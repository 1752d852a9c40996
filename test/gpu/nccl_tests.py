"""nccl-tests' all_reduce_perf on the ranks that `run` starts on this machine."""
import os
import re
import shlex
import shutil
import sys

from contenders import ROOT
from job import BY_ITSELF

sys.path.insert(0, str(ROOT / "nccl-tests-patches"))
from all_reduce_table import lines_of  # noqa: E402

# The started shell knows its rank.
EACH = 'export NCCL_HOSTID=node$((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?}} / GPUS_PER_NODE)); exec "$@"'


def program():
    folders = [os.environ[name] for name in ("NCCL_TESTS_DIR", "PATH") if name in os.environ]
    return shutil.which("all_reduce_perf", path=os.pathsep.join(folders))


def why_not(job):
    """Why they do not run here, or ""."""
    if job.started_by != BY_ITSELF:
        return (f"not in ranks that {job.started_by} started; nccl-tests-patches/run_all_reduce.sh --launch "
                "'mpirun ...' runs them on several hosts")
    if not program():
        return "no all_reduce_perf: build nccl-tests with MPI=1, and set NCCL_TESTS_DIR or PATH"
    return "" if shutil.which("mpirun") else "no mpirun in PATH"


def command(job, gpus_per_node, arguments):
    flags = shlex.split(os.environ.get("MPIRUN_FLAGS", ""))
    each = EACH.replace("GPUS_PER_NODE", str(gpus_per_node))
    return ["mpirun", "-n", str(job.size), "--oversubscribe", *flags, "bash", "-c", each, "bash", program(),
            *shlex.split(arguments), "-g", "1", "-c", "1"]


def environment_of(contender, has_gpu_per_rank):
    """Of a contender's environment: with the wanted libnccl.so.2, and all ranks on the first GPU where there are
    not enough."""
    changed = dict(contender)
    if "NCCL_LIB_DIR" in changed:
        changed["LD_LIBRARY_PATH"] = ":".join(filter(None, (changed.get("LD_LIBRARY_PATH"), changed["NCCL_LIB_DIR"])))
    if not has_gpu_per_rank:
        changed["NCCL_TESTS_DEVICE"] = "0"
    return changed


def release_in(log):
    """Of the NCCL that all_reduce_perf runs with; PyTorch may bring another."""
    found = re.search(r"NCCL version (\d[\w.]*)", log)
    return found[1] if found else None


def rows_of(path, ranks):
    """The table in the output, line by line. Where all_reduce_perf knows nothing of MPI there are many tables, of
    one rank each: ValueError."""
    found = set(re.findall(r"^#\s+Rank\s+(\d+)", path.read_text(errors="replace"), re.MULTILINE))
    if len(found) != ranks:
        raise ValueError(f"{program()} ran on {len(found)} rank(s), not on {ranks}: build nccl-tests with MPI=1")
    return [{"bytes": size, "type": kind, "place": place, **{k: line[k] for k in ("us", "busbw", "wrong")}}
            for (size, kind, place), line in lines_of(path).items()]
