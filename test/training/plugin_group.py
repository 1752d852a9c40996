"""A process group of torch.distributed whose sums go through a plugin's own tables, as NCCL would call them.
Registered as the backend "riffle", it serves stock DistributedDataParallel, which needs no hook then. What is no
sum of contiguous float32 (DDP's broadcasts and gathers at its start, barriers) goes to a gloo group inside."""

import queue
import threading
import time

import torch
import torch.distributed as dist


def register(open_trainer):
    """As what init_process_group("riffle") makes. open_trainer: returns a Trainer, once the other ranks are there."""
    dist.Backend.register_backend(
        "riffle", lambda store, rank, size, timeout: PluginGroup(store, rank, size, timeout, open_trainer))


class PluginGroup(dist.ProcessGroup):
    """One thread makes all calls of the plugin, as NCCL's does, while DDP computes the next bucket."""

    def __init__(self, store, rank, size, timeout, open_trainer):
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
        # A rank that ended while others still connect would let these wait for the whole timeout.
        self._gloo.barrier().wait()
        self._asked = queue.SimpleQueue()  # (tensor, future, event: it is queued), or None: end
        self._ready, self._failed = threading.Event(), None
        self._last_asked = 0.0
        self.sum_bytes = []  # of the sums since clear(), in order
        self.waited_s = 0.0  # from when the latest sum was asked for until none was under way
        self.collnet_calls = 0
        self.after_next_sum = None  # called once, with the sum queued in the plugin: for faults
        self._thread = threading.Thread(target=self._serve, args=(open_trainer,), daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed:
            raise self._failed

    def clear(self):
        self.sum_bytes = []

    def allreduce(self, tensors, opts=None):
        tensor = tensors[0]
        is_sum = opts is None or opts.reduceOp == dist.ReduceOp.SUM
        if not (is_sum and len(tensors) == 1 and tensor.dtype == torch.float32 and tensor.is_contiguous()):
            return self._gloo.allreduce(tensors, opts or dist.AllreduceOptions())
        future, is_queued = torch.futures.Future(), threading.Event()
        self.sum_bytes.append(4 * tensor.numel())
        self._last_asked = time.monotonic()
        self._asked.put((tensor, future, is_queued))
        if self.after_next_sum:
            act, self.after_next_sum = self.after_next_sum, None
            is_queued.wait()
            act()
        return torch._C._distributed_c10d._create_work_from_future(future)

    def allgather(self, outputs, inputs, opts=None):
        return self._gloo.allgather(outputs, inputs, opts or dist.AllgatherOptions())

    def broadcast(self, tensors, opts=None):
        return self._gloo.broadcast(tensors, opts or dist.BroadcastOptions())

    def barrier(self, opts=None):
        return self._gloo.barrier(opts or dist.BarrierOptions())

    def getBackendName(self):
        return "riffle"

    def close(self):
        """Collective. Counts stay."""
        self._asked.put(None)
        self._thread.join()
        if self._failed:
            raise self._failed

    def _serve(self, open_trainer):
        trainer = None
        try:
            trainer = open_trainer()
            self._ready.set()
            while self._sum_what_is_asked(trainer):
                pass
            self.collnet_calls = trainer.collnet_calls()
            trainer.close()
        except Exception as trouble:  # raised again by who waits
            self._failed = trouble
        finally:
            self._ready.set()

    def _sum_what_is_asked(self, trainer):
        """All sums that wait by now, in the order in which all ranks ask for them. False: it is the end."""
        asked = [self._asked.get()]
        while not self._asked.empty():
            asked.append(self._asked.get())
        sums = [one for one in asked if one]
        try:
            for tensor, _, is_queued in sums:
                trainer.sum_in_place(tensor.numpy().reshape(-1))
                is_queued.set()
            trainer.wait()
        except Exception as trouble:
            for _, future, is_queued in sums:
                future.set_exception(trouble)
                is_queued.set()
            return None not in asked
        self.waited_s = time.monotonic() - self._last_asked
        for tensor, future, _ in sums:
            future.set_result([tensor])
        return None not in asked
