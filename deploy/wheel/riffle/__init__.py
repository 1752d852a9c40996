"""Riffle, a plugin for NCCL: where its parts lie. Importing it changes nothing.

`python -m riffle env` prints the variables that a job exports, `riffle run -- COMMAND` sets them. A job
that is running sets them before its first communicator:

    os.environ["NCCL_NET_PLUGIN"] = os.environ["NCCL_TUNER_PLUGIN"] = riffle.plugin_path()

A wheel holds no links, so the one file goes by its path, which NCCL takes from 2.21 on."""
import pathlib

_FOLDER = pathlib.Path(__file__).resolve().parent


def plugin_path() -> str:
    """The shared object, with the tables of NCCL's NET, COLLNET, TUNER, PROFILER and ENV."""
    return str(_FOLDER / "lib" / "libnccl-net-riffle.so")


def command_path() -> str:
    """The riffle command, a program by itself."""
    return str(_FOLDER / "bin" / "riffle")
