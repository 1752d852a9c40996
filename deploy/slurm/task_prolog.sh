#!/bin/sh
# TaskProlog of slurm.conf: tasks of jobs that ask for Riffle get the variables of `riffle env`; the others
# stay as they are. A job asks by USE_RIFFLE, the release of its NCCL, or 1 for a set that suits all:
#
#   sbatch --export=ALL,USE_RIFFLE=2.28.9 job.sh
#
# Slurm takes lines "export NAME=VALUE" into the task's environment, and prints lines "print TEXT" there.
[ -n "${USE_RIFFLE-}" ] || exit 0
[ "$USE_RIFFLE" = 1 ] && USE_RIFFLE=

riffle=$(command -v riffle || echo /opt/riffle/bin/riffle)
variables=$("$riffle" env --nccl "$USE_RIFFLE" --format slurm 2>&1) ||
  variables="print the job runs without Riffle: $(printf '%s' "$variables" | head -n 1)"
printf '%s\n' "$variables"
