#!/bin/bash
# The training of ddp.py once over NCCL's own sockets and once through the plugin: the same losses
# (up to the order of summation), and the same weights on all ranks.
# Untested on a GPU so far. Needs a GPU and PyTorch; settings: common.sh.
# shellcheck source=test/gpu/common.sh
source "$(dirname "$0")/common.sh"
need_gpu
need_torch

train() {  # NAME SETTING...
  local name=$1 problem=
  shift
  launch env "$@" "$PYTHON" "$here/ddp.py" || problem="exit status $?"
  cat "$work"/rank.* >"$work/$name.log"
  grep -q 'weights equal on all ranks: True' "$work/rank.0" ||
    problem="${problem:+$problem, }weights differ between ranks"
  awk '$1 == "step" {print $4}' "$work/rank.0" >"$work/$name.loss"
  verdict "training, $name" "$problem" "$work/$name.log"
}
train sockets NCCL_NET_PLUGIN=none NCCL_COLLNET_ENABLE=0
train plugin "${collnet[@]}"

problem=
grep -qE 'Algo (COLLNET|NVLS|[234] )' "$work/plugin.log" || problem="CollNet was not used"
result=$(paste "$work/sockets.loss" "$work/plugin.loss" | awk '
  NR == 1 {first = $2}
  {d = $1 - $2; if (d < 0) d = -d; if (d > far) far = d; last = $2}
  END {printf "%d steps, loss %.4f to %.4f, largest difference %.6f", NR, first, last, far
       exit !(NR == 200 && last < first / 2 && far < 1e-3)}') || problem="${problem:+$problem, }losses"
verdict "losses with and without the plugin: $result" "$problem" "$work/plugin.log"
exit $((failures > 0))
