#!/bin/bash
# PyTorch's collectives through the plugin: exact results, many communicators, the loss of a rank.
# Needs a GPU and PyTorch; settings: common.sh.
# shellcheck source=test/gpu/common.sh
source "$(dirname "$0")/common.sh"
need_gpu
need_torch

check() {  # NAME EXPECT SETTING...
  local name=$1 expect=$2 problem=
  shift 2
  launch env "$@" "$PYTHON" "$here/operations.py" || problem="exit status $?"
  cat "$work"/rank.* >"$work/log"
  [ "$(grep -c 'collectives, 0 wrong' "$work/log")" = "$RANKS" ] || problem="${problem:+$problem, }wrong results"
  grep -qE "$expect" "$work/log" || problem="${problem:+$problem, }no /$expect/"
  verdict "$name" "$problem" "$work/log"
}
check "collnet from the tuner's threshold up" 'Algo (COLLNET|NVLS|[234] )' "${collnet[@]}"
check "collnet for every size" 'Algo (COLLNET|NVLS|[234] )' "${collnet[@]}" RIFFLE_COLLNET_MIN_BYTES=0
check "net only" 'via NET/[^SI]' "${plugin[@]}" NCCL_COLLNET_ENABLE=0

# Relaxed modes, as the policy page promises: sums over the ranks agree, the rest is exact. Without the
# profiler nobody knows which gradients a call holds: then everything stays exact, and a line says so.
# Three nodes have but one group that joins them all.
relaxed() {  # NAME LEAST MOST EXPECT SETTING...
  local name=$1 least=$2 most=$3 expect=$4 problem=
  shift 4
  local RANKS=$((RANKS > 4 ? RANKS : 4))
  launch env "${collnet[@]}" RIFFLE_OPTIMIZER=sgd RIFFLE_FULL_EVERY=8 "$@" "$PYTHON" "$here/operations.py" --relaxed 60 ||
    problem="exit status $?"
  cat "$work"/rank.* >"$work/log"
  awk -v least="$least" -v most="$most" '/large all-reduces/ {++n; if ($6 < least || $6 > most || $8 != 0) bad = 1}
    END {exit bad || n != '"$RANKS"'}' "$work/log" || problem="${problem:+$problem, }results"
  grep -qE "$expect" "$work/log" || problem="${problem:+$problem, }no /$expect/"
  verdict "$name" "$problem" "$work/log"
}
for mode in ds_sync moshpit shadow_sync; do
  relaxed "$mode" 60 180 "$mode from call" RIFFLE_SYNC=$mode
done
relaxed "ds_sync without the profiler plugin" 0 0 'not sure of one|has not begun' RIFFLE_SYNC=ds_sync NCCL_PROFILER_PLUGIN=none

# 25 communicators one after the other leave no descriptor behind.
problem=
launch env "${collnet[@]}" "$PYTHON" "$here/operations.py" --cycles 25 || problem="exit status $?"
cat "$work"/rank.* >"$work/log"
verdict "25 communicators one after the other" "$problem" "$work/log"

# Rank 1 is killed or stopped; the others must end by themselves, with an error, soon after the peer
# timeout. (PyTorch's watchdog looks at NCCL's asynchronous errors; a hang would run into the limit. Before it
# ends a process it waits four times as long as it lets dumps of what was under way take, a minute by default.)
peer_timeout_s=5 limit_s=60
for way in collnet plugin; do
  declare -n settings=$way
  for how in kill stop; do
    SECONDS=0 problem='' took=0
    LIMIT_S=$limit_s launch env "${settings[@]}" RIFFLE_PEER_TIMEOUT=$peer_timeout_s \
      TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC=1000 TORCH_NCCL_ASYNC_ERROR_HANDLING=1 NCCL_ASYNC_ERROR_HANDLING=1 "$PYTHON" "$here/operations.py" --lose $how
    for ((r = 0; r < RANKS; r++)); do
      [ "$r" = 1 ] || took=$(($(<"$work/ended.$r") > took ? $(<"$work/ended.$r") : took))
    done
    cat "$work"/rank.* >"$work/log"
    [ "$took" -lt $((limit_s - 5)) ] || problem="survivors hung"
    grep -q 'nobody noticed' "$work/log" && problem="nobody noticed"
    grep -qE 'Riffle: .*lost (node|sender|receiver)' "$work/log" || problem="${problem:+$problem, }no word of the loss"
    verdict "loss of a rank, $way, $how ($took s in all)" "$problem" "$work/log"
  done
done
exit $((failures > 0))
