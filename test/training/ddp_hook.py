"""A communication hook of PyTorch's DistributedDataParallel: the gradients of every bucket are
summed through a plugin's own tables, as NCCL would call them, instead of the process group."""

import time

import torch


class PluginHook:
    """Buckets are queued as DDP has them ready, while it still computes the others; with the last
    one the hook waits for all. One thread only, that of backward()."""

    def __init__(self, trainer, ranks):
        self._trainer, self._ranks = trainer, ranks
        self._queued = []
        self.bucket_bytes = []  # of the latest step: DDP lays them out anew after the first
        self.waited_s = 0.0  # for sums, of the latest step
        self.after_next_bucket = None  # called once, with the bucket queued: for faults

    def sum_bucket(self, _, bucket):
        """What DistributedDataParallel.register_comm_hook() wants."""
        if bucket.index() == 0:
            self.bucket_bytes = []
        flat = bucket.buffer()
        self.bucket_bytes.append(4 * flat.numel())
        flat.div_(self._ranks)  # before the sum, as DDP's own all-reduce does it
        self._trainer.sum_in_place(flat.numpy())
        future = torch.futures.Future()
        self._queued.append((future, flat))
        if self.after_next_bucket:
            act, self.after_next_bucket = self.after_next_bucket, None
            act()
        if bucket.is_last():
            start = time.monotonic()
            self._trainer.wait()
            self.waited_s = time.monotonic() - start
            for done, result in self._queued:
                done.set_result(result)
            self._queued = []
        return future
