#!/usr/bin/env python3
"""Loads the shared object into a process that has PyTorch, and with it another libstdc++, and uses
both: the tables must work and exceptions and strings of the two must not meet.

Usage: load_beside_torch.py libnccl-net-riffle.so"""

import ctypes
import os
import sys

import torch

# RTLD_LOCAL as NCCL does it; ctypes' default mode.
library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)


class NetV8(ctypes.Structure):
    """The first members of the table are enough."""
    _fields_ = [("name", ctypes.c_char_p),
                ("init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
                ("devices", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))),
                ("get_properties", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p))]


table = NetV8.in_dll(library, "ncclNetPlugin_v8")
assert table.name == b"riffle", table.name
assert table.init(None) == 0  # without a logger lines go to stderr
count = ctypes.c_int(0)
assert table.devices(ctypes.byref(count)) == 0 and count.value >= 1, count.value
record = (ctypes.c_char * 64)()
assert table.get_properties(0, record) == 0
name = ctypes.cast(record, ctypes.POINTER(ctypes.c_char_p))[0]
# An error makes the library format a message, log it and return a code.
assert table.get_properties(count.value, record) == 4  # invalid argument

# PyTorch goes on working, exceptions from its C++ side included.
assert torch.ones(1000).sum().item() == 1000
try:
    torch.ones(2) @ torch.ones(3)
    raise AssertionError("torch accepted a product of unequal sizes")
except RuntimeError:
    pass

loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libstdc++" in line}
assert loaded, "torch brought no libstdc++, so this test shows nothing"
print(f"torch {torch.__version__}, {count.value} device(s), first {name.decode()}, beside {loaded}")
