"""A record as a job of three nodes would write it, with time and traffic made up.

node1 has a quarter of the others' rate; all wait for it.
"""
import json
import pathlib
import time

HOSTS = ["node0", "node1", "node2"]
SLOW = 1
COMM = "00000000000000aa"
CALL_BYTES, LINK_BYTES = 8 << 20, 5_000_000
FABRIC = {"latency_us": 50, "racks": [{"name": "r", "up_kbps": 0, "down_kbps": 0}],
          "nodes": [{"name": host, "rack": 0} | dict.fromkeys(("out_kbps", "in_kbps"), 100_000 if rank == SLOW else 400_000)
                    for rank, host in enumerate(HOSTS)]}


class MadeRecord:
    def __init__(self, folder, begin_t=None, slurm_job_id="4711"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.begin_t = time.time() - 20 if begin_t is None else begin_t
        self.seconds = 0
        for rank, host in enumerate(HOSTS):
            process = {"type": "process", "t": self.begin_t, "riffle": "0", "host": host, "pid": rank}
            self.write(rank, process | ({"slurm_job_id": slurm_job_id} if slurm_job_id else {}))

    def file(self, rank):
        return self.folder / f"r{rank}.jsonl"

    def write(self, rank, line):
        with self.file(rank).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line, separators=(",", ":")) + "\n")

    def line(self, rank, kind, **fields):
        self.write(rank, {"type": kind, "t": round(self.begin_t + self.seconds, 3), "comm": COMM, "rank": rank} | fields)

    def plan(self, rank, **fields):
        plan = {"from_chunk": 0, "cause": "connect", "name": "direct", "digest": "01", "trigger": "connect",
                "reason": "direct is the fastest known"}
        if rank == 0:
            plan |= {"predicted_us": 2_000_000, "predicted_bytes": 32 << 20, "fabric": FABRIC}
        self.line(rank, "plan", **plan | fields)

    def connect(self):
        for rank in range(len(HOSTS)):
            self.line(rank, "comm", size=len(HOSTS), hosts=HOSTS)
            self.plan(rank)

    def step(self, ranks=range(len(HOSTS))):
        """One second more, 0.9 of it in one call."""
        self.seconds += 1
        n = self.seconds
        for rank in ranks:
            links = [{"peer": peer, "out": n * LINK_BYTES, "in": n * LINK_BYTES, "retransmits": n, "rtt_us": 100,
                      "busy_us": n * (850_000 if SLOW in (peer, rank) else 100_000), "last": n * (8 if peer == SLOW else 1)}
                     for peer in range(len(HOSTS)) if peer != rank]
            self.line(rank, "sample", active_us=900_000 * n, bursts=n, links=links, last_self=0, others=0,
                      sizes=[{"up_to": CALL_BYTES, "count": n, "bytes": n * CALL_BYTES, "total_us": 900_000 * n,
                              "max_us": 900_000, "times": [[786_432, n]]}])

    def run(self, seconds):
        self.connect()
        for _ in range(seconds):
            self.step()
        return self
