"""Sparse sums for simulate.py, made by the library itself (sparse_workers.h): all workers of a chunk
in one process, the same messages as in the plugin, but no network and no agreement. As a rule of
relaxed.py it gives one answer, which is that of all workers."""

import ctypes

import numpy as np
import torch


def load(library):
    """libriffle_trainer.so"""
    api = ctypes.CDLL(str(library))
    api.riffle_sparse_workers_open.restype = ctypes.c_void_p
    api.riffle_sparse_workers_open.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_size_t,
                                               ctypes.c_char_p]
    api.riffle_sparse_workers_sum.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p,
                                              ctypes.c_size_t, ctypes.c_void_p]
    api.riffle_sparse_workers_residual.restype = ctypes.POINTER(ctypes.c_float)
    api.riffle_sparse_workers_residual.argtypes = [ctypes.c_void_p, ctypes.c_int]
    api.riffle_sparse_workers_close.argtypes = [ctypes.c_void_p]
    api.riffle_sparse_workers_error.restype = ctypes.c_char_p
    return api


class Chunk:
    """The workers of one chunk, with their residuals."""

    def __init__(self, api, workers, teams, elements, residual):
        self._api, self._workers, self._elements = api, workers, elements
        self._handle = api.riffle_sparse_workers_open(workers, teams, elements, residual.encode())
        if not self._handle:
            raise ValueError(api.riffle_sparse_workers_error().decode())

    def sum_into(self, result, gradients, density):
        """gradients: workers x elements of float32, rows contiguous; result: elements of it."""
        assert gradients.shape == (self._workers, self._elements)
        assert gradients.strides[1] == result.strides[0] == 4
        if self._api.riffle_sparse_workers_sum(self._handle, density, gradients.ctypes.data,
                                               gradients.strides[0] // 4, result.ctypes.data):
            raise RuntimeError(self._api.riffle_sparse_workers_error().decode())

    def residuals(self):
        rows = [np.ctypeslib.as_array(self._api.riffle_sparse_workers_residual(self._handle, p),
                                      (self._elements,)) for p in range(self._workers)]
        return np.stack(rows)

    def __del__(self):
        if self._handle:
            self._api.riffle_sparse_workers_close(self._handle)


def density_at(step, density, ramp):
    """RIFFLE_SPARSE_RAMP: from a quarter down by factors of 4, in stages of equal length."""
    stages = 0
    while 0.25 / 4 ** stages > density:
        stages += 1
    return density if step >= ramp else max(density, 0.25 / 4 ** (step * stages // ramp))


class Sparse:
    """Exact for `warmup` steps, then of every chunk the densest part, the rest later."""

    def __init__(self, name, api, density, residual, warmup, ramp, chunk, teams):
        self.name, self._api, self._density, self._residual = name, api, density, residual
        self._warmup, self._ramp, self._chunk, self._teams = warmup, ramp, chunk, teams
        self._t, self._chunks = 0, None

    def step(self, g):
        t = self._t - self._warmup
        self._t += 1
        if t < 0:
            return g.mean(1, keepdim=True)
        runs, workers, elements = g.shape
        starts = range(0, elements, self._chunk)
        if self._chunks is None:
            self._chunks = [[Chunk(self._api, workers, self._teams, min(self._chunk, elements - s),
                                   self._residual) for s in starts] for _ in range(runs)]
        density = density_at(t, self._density, self._ramp)
        given, sums = g.numpy(), np.empty((runs, elements), np.float32)
        for run, chunks in enumerate(self._chunks):
            for start, chunk in zip(starts, chunks):
                end = start + self._chunk
                chunk.sum_into(sums[run, start:end], given[run, :, start:end], density)
        return torch.from_numpy(sums)[:, None] / workers
