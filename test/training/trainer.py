"""trainer.h for Python: all-reduces of numpy arrays through a plugin's own tables."""

import ctypes

import numpy as np


class Trainer:
    def __init__(self, library, plugin, rendezvous, rank, ranks, algorithm=""):
        self._api = ctypes.CDLL(library)
        self._api.riffle_trainer_open.restype = ctypes.c_void_p
        self._api.riffle_trainer_error.restype = ctypes.c_char_p
        self._api.riffle_trainer_collnet_calls.restype = ctypes.c_uint64
        self._trainer = ctypes.c_void_p(self._api.riffle_trainer_open(
            rank, ranks, rendezvous.encode(), plugin.encode(), algorithm.encode()))
        self._check(not self._trainer)

    def _check(self, failed):
        if failed:
            raise RuntimeError(self._api.riffle_trainer_error().decode())

    def sum_in_place(self, array):
        """Queued; the array must live and rest until wait() has returned."""
        assert array.dtype == np.float32 and array.flags["C_CONTIGUOUS"]
        self._check(self._api.riffle_trainer_all_reduce(
            self._trainer, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.size)))

    def wait(self):
        self._check(self._api.riffle_trainer_wait(self._trainer))

    def collnet_calls(self):
        return self._api.riffle_trainer_collnet_calls(self._trainer)

    def close(self):
        trainer, self._trainer = self._trainer, None
        self._check(self._api.riffle_trainer_close(trainer))


class Buckets:
    """Gradients copied into a few flat arrays, last layer first, as DDP does it."""

    def __init__(self, parameters, bucket_bytes):
        self.members, size = [[]], 0
        for index in reversed(range(len(parameters))):
            if size >= bucket_bytes:
                self.members.append([])
                size = 0
            self.members[-1].append(index)
            size += parameters[index].nbytes
        self.flat = [np.empty(sum(parameters[i].size for i in m), np.float32)
                     for m in self.members]

    def move(self):
        """The same arrays, elsewhere in memory, and by one element off the alignment they had."""
        longer = [np.empty(f.size + 1, np.float32) for f in self.flat]
        self.kept = self.flat  # or a new array might take the old one's place
        self.flat = [f[1:] for f in longer]

    def average(self, gradients, trainer, ranks):
        """The mean over all workers, in place of each worker's own gradients."""
        for flat, members in zip(self.flat, self.members):
            np.concatenate([gradients[i].ravel() for i in members], out=flat)
            trainer.sum_in_place(flat)
        trainer.wait()
        for flat, members in zip(self.flat, self.members):
            flat /= np.float32(ranks)
            start = 0
            for i in members:
                gradients[i] = flat[start:start + gradients[i].size].reshape(gradients[i].shape)
                start += gradients[i].size
