# deploy/slurm: the task prolog asks riffle for variables only where the job asks for Riffle.
#
# usage: slurm_test.sh RIFFLE
set -euo pipefail
slurm=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/deploy/slurm
# prolog [NAME=VALUE...]: what Slurm reads.
prolog() { env -i PATH="${riffles:+$riffles:}/usr/bin:/bin" "$@" sh "$slurm/task_prolog.sh"; }
fail() {
  echo "slurm_test: $1"
  exit 1
}

riffles=$(dirname "$1")
[[ -z $(prolog) ]] || fail "a job that did not ask gets: $(prolog)"
[[ $(prolog USE_RIFFLE=1) == "$("$1" env --format slurm)" ]] || fail "USE_RIFFLE=1: $(prolog USE_RIFFLE=1)"
[[ $(prolog USE_RIFFLE=2.28.9) == "$("$1" env --nccl 2.28.9 --format slurm)" ]] || fail "USE_RIFFLE=2.28.9"
[[ $(prolog USE_RIFFLE=1 LD_LIBRARY_PATH=/a:/b) == *":/a:/b"* ]] || fail "the list of the task is lost"
# A job that asks for what is not there says so in its output, and runs.
[[ $(prolog USE_RIFFLE=9) == "print the job runs without Riffle: riffle: NCCL release \"9\""* ]] || fail "$(prolog USE_RIFFLE=9)"
riffles=
if [[ ! -x /opt/riffle/bin/riffle ]] && ! PATH=/usr/bin:/bin command -v riffle >/dev/null; then
  [[ $(prolog USE_RIFFLE=1) == "print the job runs without Riffle: "*/opt/riffle/bin/riffle* ]] || fail "$(prolog USE_RIFFLE=1)"
fi

# The example: bash reads it, and it starts training by riffle run on every node.
bash -n "$slurm/job.sbatch"
fakes=$(mktemp -d)
trap 'rm -rf "$fakes"' EXIT
for command in srun scontrol; do
  printf '#!/bin/sh\necho %s "$@"\n' $command >"$fakes/$command"
  chmod +x "$fakes/$command"
done
said=$(PATH="$fakes:$PATH" SLURM_NNODES=4 SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[1-4]' bash "$slurm/job.sbatch")
[[ $said == *"srun /opt/riffle/bin/riffle run --nccl 2.28.9 -- torchrun --nnodes=4 "*" train.py" ]] || fail "$said"
echo ok
