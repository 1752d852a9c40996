"""test/gpu/run without a GPU: over gloo with tiny models, and with programs of the test's own making in place of
nvidia-smi, mpirun and all_reduce_perf. Riffle itself takes no part."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench" / "measure")]
sys.dont_write_bytecode = True

import contenders  # noqa: E402
import job as jobs  # noqa: E402
import models  # noqa: E402
import runner  # noqa: E402
import table  # noqa: E402

OPTIONS = None
TINY = ["--backend", "gloo", "--device", "cpu", "--tiny", "--rounds", "1", "--steps", "3", "--warm-up", "1", "--images", "2",
        "--sequences", "2"]
PROGRAMS = {
    "nvidia-smi": "echo 'GPU 0: made up'",
    # Of the ranks, that with the number 1 alone.
    "mpirun": 'while [ "$1" != bash ]; do shift; done; OMPI_COMM_WORLD_RANK=1 exec "$@"',
    "all_reduce_perf": """
[ "$NCCL_HOSTID" = node1 ] || { echo "NCCL_HOSTID is $NCCL_HOSTID"; exit 3; }
us=80.0; [ -z "$NCCL_NET_PLUGIN" ] || us=40.0
network=Socket; [ -z "$NCCL_NET_PLUGIN" ] || network=${NETWORK:-riffle}
echo "host:1:1 [0] NCCL INFO Using network $network"
echo 'NCCL version 2.28.9+cuda13.0'
for rank in $RANKS_SEEN; do echo "#  Rank  $rank Group  0 Pid 1 on host device  0 [0000:01:00] made up"; done
echo "  1024  256  float  sum  -1  9.0  0.1  0.1  0  9.0  0.1  0.1  0"
echo "  4096 1024  float  sum  -1  $us  0.1  0.1  ${WRONG:-0}  70.0  0.1  0.1  0"
echo '# Out of bounds values : 0 OK'"""}


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RIFFLE_", "NCCL_", "SLURM_", "OMPI_"))}
    return dict(kept, OMP_NUM_THREADS="1", **more)


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "gpu.json"

    def start(self, *arguments, **more):
        return subprocess.Popen([sys.executable, str(HERE / "run"), "--riffle", OPTIONS.riffle, "--json", str(self.json),
                                 *arguments], env=environment(**more), text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def ended(self, process, status=0):
        text, _ = process.communicate(timeout=100)
        self.assertEqual(process.returncode, status, text)
        return text

    def programs(self):
        """PATH with PROGRAMS in front."""
        for name, lines in PROGRAMS.items():
            file = self.folder / name
            file.write_text(f"#!/bin/sh\n{lines}\n")
            file.chmod(0o755)
        return f"{self.folder}:{os.environ['PATH']}"

    def check_trainings(self, names, started_by):
        document = json.loads(self.json.read_text())
        self.assertEqual((document["schema"], document["job"]["started_by"], document["job"]["ranks"]),
                         ("riffle-gpu-1", started_by, 2))
        self.assertEqual([(row["contender"], row["model"]) for row in document["training"]],
                         [(contender, name) for contender in contenders.NAMES for name in names])
        for row in document["training"]:
            self.assertEqual((len(row["warm_up_seconds"]), len(row["seconds"])), (1, 3))
            self.assertLess(row["losses"][-1], row["losses"][0])
            self.assertTrue(row["is_same_on_all_ranks"])
        self.assertEqual(document["settings"]["with"]["NCCL_NET_PLUGIN"], "riffle")
        self.assertNotIn("NCCL_NET_PLUGIN", document["settings"]["without"])
        return document

    def test_ranks_of_its_own(self):
        self.ended(self.start(*TINY, "--ranks", "2"))
        document = self.check_trainings(["resnet50", "gpt2"], "test/gpu/run")
        self.assertEqual(document["job"]["nodes"], 2)
        run = table.load("gpu").runs[0]
        with self.assertRaisesRegex(LookupError, "no figure of run training"):
            runner.taken_in(run, self.json)  # gloo says nothing of Riffle
        document["options"].update(backend="nccl", tiny=False)
        self.json.write_text(json.dumps(document))
        kept = runner.taken_in(run, self.json)
        self.assertEqual(list(kept["repeats"][0]["figures"].values()),
                         [document["summary"][name]["times_as_fast"] for name in ("resnet50", "gpt2")])
        self.assertEqual((kept["commit"], kept["machine"]), (document["commit"], document["machine"]))

    def test_ranks_of_torchrun(self):
        port = str(jobs.free_port())
        ranks = [self.start(*TINY, "--models", "resnet50", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True")
                 for rank in range(2)]  # there is no agent: the trainings must not look for its store
        texts = [self.ended(process) for process in ranks]
        self.assertIn("steps/s", texts[0])
        self.assertEqual(texts[1], "")
        self.check_trainings(["resnet50"], "torchrun")

    def test_says_what_is_missing(self):
        text = self.ended(self.start("--riffle", "no-such-command", PATH="/nonexistent"), 77)
        self.assertIn("nvidia-smi -L lists none", text)
        self.assertIn("no riffle command (no-such-command)", text)

    def test_says_that_there_is_no_mpirun(self):
        self.programs()
        (self.folder / "mpirun").unlink()
        self.assertIn("no mpirun in PATH", self.ended(self.start("--models", PATH=str(self.folder)), 77))

    @unittest.skipIf(models.torch.cuda.is_available(), "there is a GPU")
    def test_torch_without_cuda_is_told(self):
        self.assertIn("a build of torch for CUDA is needed", self.ended(self.start(PATH=self.programs()), 77))

    def test_nccl_tests(self):
        self.ended(self.start("--models", PATH=self.programs(), RANKS_SEEN="0 1"))
        kept = runner.taken_in(table.load("gpu").runs[1], self.json)
        self.assertEqual(list(kept["repeats"][0]["figures"].values()), [2.0, 0])
        self.assertEqual(json.loads(self.json.read_text())["versions"]["nccl_of_nccl_tests"], "2.28.9")

    def test_nccl_tests_without_riffle_in_them(self):
        text = self.ended(self.start("--models", PATH=self.programs(), RANKS_SEEN="0 1", NETWORK="Socket"), 1)
        self.assertIn("all_reduce_perf with Riffle, round 1: NCCL's network was Socket", text)

    def test_nccl_tests_with_wrong_elements(self):
        text = self.ended(self.start("--models", PATH=self.programs(), RANKS_SEEN="0 1", WRONG="5"), 1)
        self.assertIn("30 wrong elements", text)  # two contenders, three rounds

    def test_nccl_tests_built_without_mpi(self):
        text = self.ended(self.start("--models", PATH=self.programs(), RANKS_SEEN="0"), 1)
        self.assertIn("ran on 1 rank(s), not on 2: build nccl-tests with MPI=1", text)

    def test_checks(self):
        (self.folder / "bash").write_text("#!/bin/sh\necho 'OK      a case'\necho '        of its log'\n"
                                          "echo 'FAILED  another: why'\nexit 1\n")
        (self.folder / "bash").chmod(0o755)
        text = self.ended(self.start("--checks", "ddp", PATH=f"{self.folder}:{os.environ['PATH']}"), 1)
        self.assertIn("== ddp\nOK      a case\n", text)
        kept = runner.taken_in(next(r for r in table.load("gpu").runs if r.name == "check-ddp"), self.json)
        self.assertEqual(list(kept["repeats"][0]["figures"].values()), [1, 1])


class Parts(unittest.TestCase):
    def test_sizes_are_the_published_ones(self):
        self.assertEqual(models.parameters_of(models.resnet()), 25557032)
        small = {layers: models.parameters_of(models.Gpt2(100, 10, 48, layers, 4)) for layers in (0, 1, 3)}

        def size(vocabulary, length, width, layers):
            return width * (vocabulary + length + 2 + layers * (12 * width + 13))
        self.assertEqual(small, {layers: size(100, 10, 48, layers) for layers in small})
        self.assertEqual(size(50257, 1024, 768, 12), 124439808)

    def test_place_in_a_launchers_job(self):
        self.assertIsNone(jobs.launched({"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "8"}))  # a batch script
        self.assertIsNone(jobs.launched({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}))
        of_torchrun = {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1", "MASTER_ADDR": "node01", "MASTER_PORT": "29500"}
        job = jobs.launched(of_torchrun)
        self.assertEqual((job.ranks, job.size), ([{k: of_torchrun[k] for k in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}], 16))
        self.assertEqual(job.next_meeting(), {"MASTER_ADDR": "node01", "MASTER_PORT": "29501"})
        self.assertEqual(job.next_meeting()["MASTER_PORT"], "29502")
        of_srun = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "12345",
                   "SLURM_STEP_NODELIST": "node[07-08]"}
        self.assertEqual(jobs.launched(of_srun).ranks, [{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}])
        self.assertEqual(jobs.launched(of_srun).next_meeting(), {"MASTER_ADDR": "node07", "MASTER_PORT": "22346"})
        of_mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                  "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        with self.assertRaisesRegex(jobs.Missing, "MASTER_ADDR is not set"):
            jobs.launched(of_mpi)
        self.assertEqual(jobs.launched(dict(of_mpi, OMPI_COMM_WORLD_SIZE="2")).next_meeting()["MASTER_ADDR"], "127.0.0.1")

    def test_first_host_of_slurms_list(self):
        for nodes, first in (("node07", "node07"), ("a[03-05,9],b", "a03"), ("a[4]-ib", "a4-ib"), ("x1,y[2-3]", "x1")):
            self.assertEqual(jobs.first_host(nodes), first)

    def test_another_plugin_of_the_job_stays(self):
        variables = contenders.exports(OPTIONS.riffle)
        of_job = {"NCCL_NET_PLUGIN": "ofi", "NCCL_COLLNET_ENABLE": "1", "LD_LIBRARY_PATH": "/lib/of/job"}
        self.assertEqual(contenders.without_riffle(of_job, variables), of_job)
        changed = contenders.with_riffle(of_job, variables)
        self.assertEqual(changed["NCCL_NET_PLUGIN"], "riffle")
        self.assertTrue(changed["LD_LIBRARY_PATH"].endswith(":/lib/of/job"))
        self.assertEqual(contenders.without_riffle(changed, variables), {"LD_LIBRARY_PATH": changed["LD_LIBRARY_PATH"]})

    def test_what_nccl_says_of_its_network(self):
        log = "x NCCL INFO Using network riffle\nx NCCL INFO Coll 00/0 : 1 [send] via COLLNET/riffle/0\n"
        self.assertEqual(contenders.what_nccl_used(log), {"network": "riffle", "collnet": True})
        self.assertEqual(contenders.what_nccl_used("NCCL INFO Using network Socket\n"),
                         {"network": "Socket", "collnet": False})

    def test_a_rank_that_fails_ends_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            said = jobs.run_together([(["sleep", "60"], None, pathlib.Path(folder, "a")),
                                      (["sh", "-c", "echo broken; exit 3"], None, pathlib.Path(folder, "b"))], 50)
            self.assertLess(time.monotonic() - start, 30)
            self.assertEqual(said, "exit status 3; the end of the output:\n    broken")
            self.assertIn("not ended after 1 s", jobs.run_together(
                [(["sleep", "60"], None, pathlib.Path(folder, "a"))], 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--riffle", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
