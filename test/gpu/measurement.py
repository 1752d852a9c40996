"""The trainings and all-reduces of both contenders, round by round, and the document that keeps them."""
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

import contenders
import job as jobs
import nccl_tests

sys.path.insert(0, str(contenders.ROOT / "bench" / "measure"))
import machine  # noqa: E402

SCHEMA = "riffle-gpu-1"
OPTIONS = ("backend", "device", "tiny", "models", "rounds", "steps", "warm_up", "images", "sequences", "nccl_tests")
TRAIN = pathlib.Path(__file__).resolve().parent / "train.py"


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def gpus():
    return [line for line in output_of("nvidia-smi", "-L").splitlines() if line.startswith("GPU")]


def header(schema):
    """With which a document says when, where and at which commit it was measured."""
    return {"schema": schema, "date": datetime.date.today().isoformat(), "commit": machine.commit(),
            "machine": machine.describe()}


def median(rows, field, **where):
    """Of all numbers that the rows with the values `where` have."""
    values = [row[field] for row in rows if all(row[key] == value for key, value in where.items())]
    return statistics.median(sum(values, []) if isinstance(values[0], list) else values)


def summary_of(document):
    """Steps per second, over all measured steps of all rounds, and how many times as many with Riffle, by round, too;
    microseconds and busbw (GB/s) of all-reduces out of place, medians of the rounds."""
    summary = {}
    for model in document["options"]["models"]:
        rounds = [[row["seconds"] for c in contenders.NAMES for row in document["training"]
                   if (row["model"], row["contender"], row["round"]) == (model, c, number)]
                  for number in sorted({row["round"] for row in document["training"] if row["model"] == model})]
        seconds = {c: [s for steps in rounds for s in steps[i]] for i, c in enumerate(contenders.NAMES)}
        summary[model] = {f"{c}_steps_per_s": len(s) / sum(s) for c, s in seconds.items()}
        summary[model]["times_as_fast"] = summary[model]["with_steps_per_s"] / summary[model]["without_steps_per_s"]
        by_contender = [dict(zip(contenders.NAMES, map(statistics.mean, steps))) for steps in rounds]
        summary[model]["times_as_fast_by_round"] = [mean["without"] / mean["with"] for mean in by_contender]
    if rows := document["all_reduce"]:
        summary["all_reduce"] = []
        for size in sorted({row["bytes"] for row in rows}):
            line = {f"{c}_{field}": median(rows, field, bytes=size, place="out", contender=c)
                    for c in contenders.NAMES for field in ("us", "busbw")}
            line["times_as_fast"] = line["without_us"] / line["with_us"]
            summary["all_reduce"].append({"bytes": size, **line})
        summary["wrong_elements"] = sum(row["wrong"] for row in rows)
    return summary


class Measurement:
    def __init__(self, options, job, command, folder):
        self.options, self.job, self.folder = options, job, folder
        self.environments = contenders.environments(
            command, jobs.LOOPBACK if job.started_by == jobs.BY_ITSELF else {})
        versions = {"riffle": output_of(command, "--version"), "driver": next(iter(output_of(
            "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()), None)}
        self.document = header(SCHEMA) | {
            "versions": versions,
            "job": {"started_by": job.started_by, "ranks": job.size},
            "options": {name: getattr(options, name) for name in OPTIONS},
            "settings": {name: contenders.settings(e) for name, e in self.environments.items()},
            "notes": [], "training": [], "all_reduce": [], "summary": {}}

    def note(self, text):
        if text not in self.document["notes"]:
            self.document["notes"].append(text)
            self.say(f"note: {text}")

    def say(self, text):
        if self.job.has_rank_0:
            print(text, flush=True)

    def train(self, number, contender):
        o, output = self.options, self.folder / "rank0.json"
        command = [sys.executable, str(TRAIN), "--output", str(output), "--backend", o.backend,
                   "--device", o.device, "--models", *o.models, *(["--tiny"] if o.tiny else [])]
        for name in ("steps", "warm_up", "images", "sequences"):
            command += ["--" + name.replace("_", "-"), str(getattr(o, name))]
        meeting = self.job.next_meeting()
        trouble = jobs.run_together(
            [(command, dict(self.environments[contender], **rank, **meeting), self.folder / f"rank{rank['RANK']}.log")
             for rank in self.job.ranks], o.limit_s)
        if trouble:
            raise RuntimeError(f"training {contender} Riffle, round {number}: {trouble}")
        if not self.job.has_rank_0:
            return
        found = json.loads(output.read_text())
        self.document["versions"].update(found["versions"])
        self.document["job"].update(nodes=found["nodes"], gpu_of_rank=found["gpu_of_rank"])
        used = contenders.what_nccl_used((self.folder / "rank0.log").read_text(errors="replace"))
        if o.backend == "nccl" and contender == "with" and not used["collnet"]:
            self.note(f"with Riffle, NCCL's network was {used['network']}, and no all-reduce went through CollNet ("
                      f"{found['nodes']} node(s)); riffle doctor says why")
        for name, result in found["models"].items():
            if not result["is_same_on_all_ranks"]:
                self.note(f"{name}, {contender} Riffle: the ranks ended with different weights")
            self.document["training"].append({"round": number, "contender": contender, "model": name, **used, **result})
            rate = 1 / statistics.median(result["seconds"])
            self.say(f"round {number}, {contender:7} Riffle, {name:8}: {rate:.3f} steps/s")

    def all_reduce(self, number, contender):
        log = self.folder / "all_reduce.log"
        command = nccl_tests.command(self.job, self.options.gpus_per_node, self.options.nccl_tests)
        environment = nccl_tests.environment_of(self.environments[contender], len(gpus()) >= self.job.size)
        trouble = jobs.run_together([(command, environment, log)], self.options.limit_s)
        text = log.read_text(errors="replace")
        # Where elements are wrong it fails as well, and its table says so.
        if trouble and "Out of bounds values" not in text:
            raise RuntimeError(f"all_reduce_perf {contender} Riffle, round {number}: {trouble}")
        rows = nccl_tests.rows_of(log, self.job.size)
        used = contenders.what_nccl_used(text)
        if contender == "with" and "riffle" not in str(used["network"]).lower():
            raise RuntimeError(f"all_reduce_perf with Riffle, round {number}: NCCL's network was {used['network']}; "
                               "riffle doctor says why")
        self.document["versions"]["nccl_of_nccl_tests"] = nccl_tests.release_in(text)
        self.document["all_reduce"] += [{"round": number, "contender": contender, **used, **row} for row in rows]
        self.say(f"round {number}, {contender:7} Riffle, all_reduce_perf: {len(rows)} lines, "
                 f"{sum(row['wrong'] for row in rows):g} wrong elements")

    def save(self):
        """Whole at any time, also where a later round fails."""
        if self.job.has_rank_0:
            self.document["summary"] = summary_of(self.document)
            new = self.options.json.with_name(self.options.json.name + ".new")
            new.write_text(json.dumps(self.document, indent=1) + "\n")
            new.replace(self.options.json)

    def why_no_nccl_tests(self):
        if self.options.backend != "nccl":
            return "they need backend nccl"
        return nccl_tests.why_not(self.job) if self.options.nccl_tests else "not asked for"

    def run(self):
        is_try = self.options.backend != "nccl"
        if is_try:
            self.note(f"backend {self.options.backend}: Riffle takes no part, so this only tries the command")
        if lacks := self.why_no_nccl_tests():
            self.note(f"nccl-tests left out: {lacks}")
            if not self.options.models:
                raise jobs.Missing(lacks)
        for number in range(1, self.options.rounds + 1):
            for contender in contenders.NAMES if number % 2 else reversed(contenders.NAMES):
                if self.options.models:
                    self.train(number, contender)
                if not lacks:
                    self.all_reduce(number, contender)
            self.save()
        for name in self.options.models if self.job.has_rank_0 and not is_try else []:
            self.say(f"{name}: {self.document['summary'][name]['times_as_fast']:.3f} times as fast with Riffle")
        self.say(f"written: {self.options.json}")
        if wrong := self.document["summary"].get("wrong_elements"):
            raise RuntimeError(f"all_reduce_perf: {wrong:g} wrong elements")
