"""Starts the workers of a training side by side on this machine."""

import importlib
import multiprocessing
import os
import pathlib
import time

HERE = pathlib.Path(__file__).resolve().parent


def _worker(module, arguments, environment, log):
    for name in [n for n in os.environ if n.startswith(("RIFFLE_", "NCCL_"))]:
        del os.environ[name]
    os.environ.update(environment)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    if log:
        with open(log, "w") as file:
            os.dup2(file.fileno(), 2)
    importlib.import_module(module).main(arguments)


def run(module, arguments, environment, workers, limit_s, logs=None):
    """Exit codes of workers that call main(arguments) of `module`; None: not ended in time. Settings of
    the plugin come from `environment` alone. logs: what they say goes to the files <logs>0, <logs>1, ..."""
    # Large modules are imported once; the workers are forked from there, where nothing runs yet.
    processes_of = multiprocessing.get_context("forkserver")
    processes_of.set_forkserver_preload([module])
    os.environ["PYTHONPATH"] = str(HERE)  # else the module is not found there
    environment = dict(environment, WORLD_SIZE=str(workers))
    environment.setdefault("RIFFLE_SOCKET_IFNAME", "=lo")
    environment.setdefault("RIFFLE_COLLNET", "on")  # on one machine auto would rightly fall back to NCCL
    processes = [processes_of.Process(target=_worker, args=(
        module, arguments, dict(environment, RANK=str(rank)), logs and f"{logs}{rank}"))
        for rank in range(workers)]
    for process in processes:
        process.start()
    deadline = time.monotonic() + limit_s
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    return codes
