#!/bin/bash
# The training of ddp.py over NCCL's own sockets and through the plugin: the same losses (up to the
# order of summation), and the same weights on all ranks. Then with each relaxed mode: it begins, the
# loss falls as far, the weights stay together; and with sums in narrower types. Then with a rank that is killed or stopped half-way:
# the others train on.
# Needs a GPU and PyTorch; settings: common.sh. RANKS should be 4 or more for the relaxed modes to have
# groups to average in.
# shellcheck source=test/gpu/common.sh
source "$(dirname "$0")/common.sh"
need_gpu
need_torch

train() {  # NAME SETTING... -- OPTION...: leaves NAME.log and NAME.loss; says what is wrong in $problem
  local name=$1 settings=()
  shift
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  problem=
  LIMIT_S=${LIMIT_S:-200} launch env "${settings[@]}" "$PYTHON" "$here/ddp.py" "$@" || problem="exit status $?"
  cat "$work"/rank.* >"$work/$name.log"
  awk '$1 == "step" {print $4}' "$work/$name.log" >"$work/$name.loss"
}
add() { problem="${problem:+$problem, }$1"; }
equal() {  # NAME RANKS: so many ranks hold the same weights
  [ "$(grep -c 'weights equal on all ranks: True' "$work/$1.log")" = "$2" ] || add "weights differ between ranks"
}

train sockets NCCL_NET_PLUGIN=none NCCL_COLLNET_ENABLE=0 --
equal sockets "$RANKS"
verdict "training, sockets" "$problem" "$work/sockets.log"
train plugin "${collnet[@]}" --
equal plugin "$RANKS"
grep -qE 'Algo (COLLNET|NVLS|[234] )' "$work/plugin.log" || add "CollNet was not used"
verdict "training, plugin" "$problem" "$work/plugin.log"

problem=
result=$(paste "$work/sockets.loss" "$work/plugin.loss" | awk '
  NR == 1 {first = $2}
  {d = $1 - $2; if (d < 0) d = -d; if (d > far) far = d; last = $2}
  END {printf "%d steps, loss %.4f to %.4f, largest difference %.6f", NR, first, last, far
       exit !(NR == 200 && last < first / 2 && far < 1e-3)}') || problem="losses"
verdict "losses with and without the plugin: $result" "$problem" "$work/plugin.log"

# Relaxed modes. The last 20 losses are compared on average: single ones differ, as they should.
late() { tail -n 20 "$work/$1.loss" | awk '{s += $1} END {printf "%.4f", NR ? s / NR : 1e9}'; }
wide=(--width 1024 --steps 400)
train exact "${collnet[@]}" -- "${wide[@]}"
equal exact "$RANKS"
verdict "training, 1024 wide" "$problem" "$work/exact.log"
# Times the exact loss that is let pass. Rounds in the background bring what others did a step late. On one H200
# the modes ended at 1.04, 1.05 and 1.37 to 1.39 times exact.
declare -A worse=([ds_sync]=1.2 [moshpit]=1.2 [shadow_sync]=1.5)
for mode in ds_sync moshpit shadow_sync; do
  train "$mode" "${collnet[@]}" RIFFLE_SYNC=$mode RIFFLE_OPTIMIZER=sgd -- "${wide[@]}"
  grep -q "$mode from call" "$work/$mode.log" || add "the mode did not begin"
  result=$(awk -v a="$(late exact)" -v b="$(late "$mode")" -v worse="${worse[$mode]}" 'BEGIN {
    printf "last losses %s, exact %s", b, a; exit !(b < worse * a)}') || add "losses"
  apart=$(sed -n 's/^rank 0: weights .* \([^ ]*\) of their norm apart$/\1/p' "$work/$mode.log")
  awk -v x="${apart:-1}" 'BEGIN {exit !(x < 0.1)}' || add "weights are apart"
  verdict "$mode: $result, weights $apart of their norm apart" "$problem" "$work/$mode.log"
done
# Narrower sums: the same bits on all ranks, and the loss of exact sums but for the rounding.
for wire in bf16 fp8block; do
  train "$wire" "${collnet[@]}" RIFFLE_WIRE=$wire -- "${wide[@]}"
  equal "$wire" "$RANKS"
  grep -q "narrow from call" "$work/$wire.log" || add "the mode did not begin"
  result=$(awk -v a="$(late exact)" -v b="$(late "$wire")" 'BEGIN {
    printf "last losses %s, exact %s", b, a; exit !(b < 1.02 * a)}') || add "losses"
  verdict "RIFFLE_WIRE=$wire: $result" "$problem" "$work/$wire.log"
done
train refused "${collnet[@]}" RIFFLE_SYNC=ds_sync -- --steps 50
equal refused "$RANKS"
grep -q 'say RIFFLE_OPTIMIZER=sgd' "$work/refused.log" || add "no word about RIFFLE_OPTIMIZER"
verdict "ds_sync without RIFFLE_OPTIMIZER stays exact" "$problem" "$work/refused.log"

# A rank is lost half-way; the others train on. PyTorch must not act on what NCCL's ring says about
# the lost rank. (A stopped rank is still there at the end: launch's time limit ends it.)
for victim in 1 $((RANKS - 1)); do
  for how in kill stop; do
    LIMIT_S=120 train "lost-$how" "${collnet[@]}" RIFFLE_ON_LOSS=continue RIFFLE_PEER_TIMEOUT=5 \
      TORCH_NCCL_ASYNC_ERROR_HANDLING=0 -- --lose $how --victim $victim
    problem=
    for ((r = 0; r < RANKS; r++)); do
      [ "$r" = "$victim" ] && continue
      grep -q "^rank $r: weights equal on all ranks: True" "$work/rank.$r" || add "rank $r did not end, or has other weights"
    done
    grep -q "$((RANKS - 1)) of $RANKS nodes go on" "$work/lost-$how.log" || add "no word of the loss"
    result=$(awk 'NR == 1 {first = $1} {last = $1} END {
      printf "%d steps, loss %.4f to %.4f", NR, first, last; exit !(NR == 200 && last < first / 2)}' "$work/lost-$how.loss") ||
      add "losses"
    verdict "rank $victim lost ($how), the others train on: $result" "$problem" "$work/lost-$how.log"
  done
done
exit $((failures > 0))
