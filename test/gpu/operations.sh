#!/bin/bash
# PyTorch's collectives through the plugin: exact results, and the loss of a rank.
# Untested on a GPU so far. Needs a GPU and PyTorch; settings: common.sh.
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

# Rank 1 is killed; the others must end by themselves, with an error, soon after the peer timeout.
# (PyTorch's watchdog looks at NCCL's asynchronous errors; a hang would run into launch's limit.)
peer_timeout_s=5
for way in collnet plugin; do
  declare -n settings=$way
  SECONDS=0 problem=
  LIMIT_S=90 launch env "${settings[@]}" RIFFLE_PEER_TIMEOUT=$peer_timeout_s \
    TORCH_NCCL_ASYNC_ERROR_HANDLING=1 NCCL_ASYNC_ERROR_HANDLING=1 "$PYTHON" "$here/operations.py" --lose
  took=$SECONDS
  cat "$work"/rank.* >"$work/log"
  [ "$took" -lt 85 ] || problem="survivors hung"
  grep -q 'nobody noticed' "$work/log" && problem="nobody noticed"
  verdict "loss of a rank, $way ($took s in all)" "$problem" "$work/log"
done
exit $((failures > 0))
