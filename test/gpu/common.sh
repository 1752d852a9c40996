# shellcheck shell=bash disable=SC2034  # the arrays of settings are used where this is sourced
# Sourced by the checks of this folder: finds what they need, starts ranks, tells the verdict.
#
#   RIFFLE_LIB_DIR  folder of libnccl-net-riffle.so and its links (default: build/plugin)
#   NCCL_LIB_DIR    folder of libnccl.so.2, if the loader does not find the wanted one by itself
#   NCCL_TESTS_DIR  folder of nccl-tests' programs, built with MPI=1 (default: where PATH has them)
#   RANKS           number of ranks (default 3); all may share one GPU
#   PYTHON          interpreter with a CUDA build of PyTorch (default python3)
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${RIFFLE_LIB_DIR:=$here/../../build/plugin}" "${RANKS:=3}" "${PYTHON:=python3}"
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
failures=0

# 77: the exit status by which CTest and Automake know a skipped test.
skip() { echo "SKIPPED: $*"; exit 77; }

need_gpu() {
  nvidia-smi -L 2>/dev/null | grep -q '^GPU' || skip "no NVIDIA GPU (nvidia-smi -L lists none)"
  [ -e "$RIFFLE_LIB_DIR/libnccl-net-riffle.so" ] ||
    skip "no libnccl-net-riffle.so in $RIFFLE_LIB_DIR: set RIFFLE_LIB_DIR to the folder that has it"
  RIFFLE_LIB_DIR=$(cd "$RIFFLE_LIB_DIR" && pwd)
  export LD_LIBRARY_PATH="$RIFFLE_LIB_DIR${NCCL_LIB_DIR:+:$NCCL_LIB_DIR}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

need_torch() {
  "$PYTHON" -c 'import torch; assert torch.cuda.is_available() and torch.distributed.is_nccl_available()' \
    2>/dev/null || skip "$PYTHON has no PyTorch with CUDA and NCCL"
}

# All ranks run on this machine; the network between them is the loopback interface.
export NCCL_SOCKET_IFNAME=lo RIFFLE_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MNNVL_ENABLE=0
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING,ENV
# RIFFLE_COLLNET=on: `auto` would be right to step aside on one machine. The reference count works
# around a defect of NCCL 2.28.3 to 2.29.7 and is harmless elsewhere.
plugin=(NCCL_NET_PLUGIN=riffle NCCL_TUNER_PLUGIN=riffle NCCL_PROFILER_PLUGIN=riffle
        NCCL_NET_PLUGIN_REF_COUNT=1 RIFFLE_COLLNET=on)
collnet=("${plugin[@]}" NCCL_COLLNET_ENABLE=1)

# launch COMMAND...: RANKS processes with the variables of torch.distributed; NCCL_HOSTID makes each
# of them a node of its own, also on one GPU. Output in $work/rank.N; fails if any rank fails.
launch() {
  local pids=() status=0 r
  export MASTER_ADDR=127.0.0.1 WORLD_SIZE=$RANKS
  MASTER_PORT=$((20000 + RANDOM % 10000)) && export MASTER_PORT
  for ((r = 0; r < RANKS; r++)); do
    (
      RANK=$r LOCAL_RANK=$r NCCL_HOSTID=node$r timeout -k 5 "${LIMIT_S:-300}" "$@" >"$work/rank.$r" 2>&1
      status=$?
      echo $SECONDS >"$work/ended.$r"
      exit $status
    ) & pids+=($!)
  done
  for r in "${pids[@]}"; do wait "$r" || status=$?; done
  return "$status"
}

# verdict NAME PROBLEM LOG: an empty problem is success.
verdict() {
  if [ -z "$2" ]; then echo "OK      $1"; return; fi
  echo "FAILED  $1: $2"
  failures=$((failures + 1))
  tail -n "${LOG_LINES:-15}" "$3" | sed 's/^/        /'
}
