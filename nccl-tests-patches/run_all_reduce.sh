#!/bin/bash
# all_reduce_perf with and without Riffle, in turns: a table and a drawing of both.
#
# usage: run_all_reduce.sh [OPTION]... -- ARGUMENT_OF_ALL_REDUCE_PERF...
#
#   --launch 'WORDS'     what starts the ranks, e.g. 'mpirun -np 8 --hostfile hosts'; default: nothing
#   --program FILE       all_reduce_perf (default: from PATH); unpatched, there is no bound in the table
#   --riffle FILE        the riffle command (default: from PATH), at the same place on every node
#   --nccl RELEASE       NCCL's, e.g. 2.28.9 (riffle run --nccl)
#   --set NAME=VALUE     set on Riffle's side only, e.g. RIFFLE_SPARSE=0.01; may be repeated
#   --rounds N           runs of each (default 3); the table has medians
#   --out FOLDER         all output (default all_reduce.TIME), made here
#
# Example: run_all_reduce.sh --launch 'mpirun -np 8 --map-by node' --nccl 2.28.9 -- -b 1M -e 256M -f 2 -g 1
# Exit code: 0 done, 1 a run failed or had wrong elements, 2 wrong usage.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() { sed -n '2,/^set -euo/{/^set/d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"; }
wrong_usage() { echo "run_all_reduce.sh: $*" >&2; usage >&2; exit 2; }

launch=() program=all_reduce_perf riffle=riffle release=() settings=() rounds=3 out=
while [ $# -gt 0 ]; do
  option=$1
  case $option in
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    --launch | --program | --riffle | --nccl | --set | --rounds | --out)
      [ $# -ge 2 ] || wrong_usage "$option needs a value"
      value=$2
      shift 2 ;;
    *) wrong_usage "$option is not known" ;;
  esac
  case $option in
    --launch) read -ra launch <<<"$value" ;;
    --program) program=$value ;;
    --riffle) riffle=$value ;;
    --nccl) release=(--nccl "$value") ;;
    --set) [[ $value == [A-Z]*=* ]] || wrong_usage "--set $value is not NAME=VALUE"; settings+=("$value") ;;
    --rounds) [[ $value =~ ^[1-9][0-9]*$ ]] || wrong_usage "--rounds $value is not a number above 0"; rounds=$value ;;
    --out) out=$value ;;
  esac
done
for argument in "$@"; do
  case $argument in
    -S* | -I* | --report_timestamps* | --per_iter_timing*)
      wrong_usage "$argument adds columns that the table does not know" ;;
  esac
done
command -v "$riffle" >/dev/null || wrong_usage "no riffle command: set PATH or --riffle"
command -v "$program" >/dev/null || wrong_usage "no all_reduce_perf: set PATH or --program"
program=$(command -v "$program") riffle=$(command -v "$riffle")
out=${out:-all_reduce.$(date +%Y%m%d-%H%M%S)}
# The table would have the medians of both.
if compgen -G "$out/with*-*.txt" >/dev/null; then wrong_usage "--out $out has an earlier run's output"; fi
mkdir -p "$out/record"
out=$(cd "$out" && pwd)

# The environment as it is, less what names Riffle: another plugin that the job has stays.
without=()
for name in NCCL_NET_PLUGIN NCCL_TUNER_PLUGIN NCCL_PROFILER_PLUGIN NCCL_ENV_PLUGIN; do
  [[ ${!name:-} != *riffle* ]] || without+=(-u "$name")
done
[[ ${NCCL_NET_PLUGIN:-} != *riffle* ]] || without+=(-u NCCL_COLLNET_ENABLE)

# run NAME COMMAND...: its output to a file. all_reduce_perf itself fails where elements are wrong;
# whether that is all, its table tells.
run() {
  local log=$out/$1.txt status=0
  shift
  "${launch[@]}" "$@" >"$log" 2>&1 || status=$?
  grep -q 'Out of bounds values' "$log" && return
  echo "run_all_reduce.sh: exit status $status, and no result in $log, which ends with" >&2
  tail -n 15 "$log" | sed 's/^/    /' >&2
  exit 1
}

for ((round = 1; round <= rounds; ++round)); do
  echo "round $round of $rounds" >&2
  run "without-$round" env "${without[@]}" "$program" "$@"
  run "with-$round" env "RIFFLE_RECORD=$out/record/" "${settings[@]}" \
    "$riffle" run "${release[@]}" -- "$program" "$@"
done
exec python3 "$here/all_reduce_table.py" "$out" "$riffle"
