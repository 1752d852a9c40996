#!/bin/bash
# nccl-tests through the plugin: COLLNET and NET, every type and operator, loading, good and bad
# settings; results checked.
# Needs a GPU, nccl-tests built with MPI=1, and mpirun; settings: common.sh.
# shellcheck source=test/gpu/common.sh
source "$(dirname "$0")/common.sh"
need_gpu
command -v mpirun >/dev/null || skip "no mpirun"
all_reduce=$(PATH="${NCCL_TESTS_DIR:+$NCCL_TESTS_DIR:}$PATH" command -v all_reduce_perf) ||
  skip "no all_reduce_perf: build nccl-tests with MPI=1 and set NCCL_TESTS_DIR"
tests=$(dirname "$all_reduce")
[ "$(nvidia-smi -L | grep -c '^GPU')" -ge "$RANKS" ] || export NCCL_TESTS_DEVICE=0  # all ranks on the first GPU

# perf NAME WANT SETTING... -- PROGRAM ARGUMENT...: WANT is the algorithm that all-reduces must
# take, "-" for any. COLLNET stands for all that go through it (NVSwitch systems offer more).
perf() {
  local name=$1 want=$2 settings=() log=$work/log problem=
  shift 2
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  local program=$tests/$2
  shift 2
  [ -x "$program" ] || { echo "SKIPPED $name: no $program"; return; }
  # shellcheck disable=SC2016,SC2086  # the started shell knows the rank; MPIRUN_FLAGS are words
  timeout 300 env "${settings[@]}" mpirun -n "$RANKS" --oversubscribe ${MPIRUN_FLAGS:-} bash -c \
    'export NCCL_HOSTID=node${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?}}; '"${EACH_RANK:-}"' exec "$@"' \
    bash "$program" "$@" -c 1 -g 1 -n 2 -w 1 >"$log" 2>&1 || problem="exit status $?"
  grep -q 'Out of bounds values : 0 OK' "$log" || problem="${problem:+$problem, }no '0 OK'"
  local took
  took=$(grep -oE 'AllReduce: [0-9]+ Bytes -> Algo [A-Z_0-9]+' "$log" | awk '{print $NF}' |
         sed -E 's/^(COLLNET.*|NVLS|2|3|4)$/COLLNET/; s/^1$/RING/; s/^0$/TREE/' | sort -u | xargs)
  [ "$want" = - ] || [ "$took" = "$want" ] || problem="${problem:+$problem, }took '$took', not $want"
  [ -z "${EXPECT:-}" ] || grep -qE "$EXPECT" "$log" || problem="${problem:+$problem, }no /$EXPECT/"
  verdict "$name" "$problem" "$log"
}

chain=("${collnet[@]}" NCCL_ALGO=allreduce:collnetchain)
net=("${plugin[@]}" NCCL_COLLNET_ENABLE=0)
EXPECT='via COLLNET/' perf "collnet, 8 B to 64 MiB" COLLNET "${chain[@]}" -- all_reduce_perf -b 8 -e 64M -f 8
types="int8 uint8 int32 uint32 int64 uint64 half bfloat16 float double"
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -n | head -1)
case $capability in  # NCCL reduces float8 from 9.0 on
  9.* | 1[0-9].*) types="$types f8e4m3 f8e5m2" ;;
esac
for type in $types; do
  perf "collnet, $type, every operator" COLLNET "${chain[@]}" -- all_reduce_perf -b 1000 -e 1M -f 1000 -d "$type" -o all
done
for channels in 1 2 8 12 16 24; do
  perf "collnet, $channels channels" COLLNET "${chain[@]}" "NCCL_MIN_NCHANNELS=$channels" "NCCL_MAX_NCHANNELS=$channels" -- \
    all_reduce_perf -b 256K -e 16M -f 8
done
# Loaded by path rather than by name; a name that is not there leaves NCCL's own sockets.
file=$RIFFLE_LIB_DIR/libnccl-net-riffle.so
EXPECT='via COLLNET/' perf "loaded by path" COLLNET "${collnet[@]}" NCCL_NET_PLUGIN="$file" NCCL_TUNER_PLUGIN="$file" \
  NCCL_PROFILER_PLUGIN="$file" -- all_reduce_perf -b 1M -e 1M
EXPECT='via NET/Socket' perf "a plugin that is not there" - "${collnet[@]}" NCCL_NET_PLUGIN=riffel NCCL_TUNER_PLUGIN=riffel \
  NCCL_PROFILER_PLUGIN=riffel -- all_reduce_perf -b 1M -e 1M
perf "tuner above its threshold" COLLNET "${collnet[@]}" -- all_reduce_perf -b 64K -e 4M -f 4
perf "tuner below a threshold that is set, ring allowed only" RING "${collnet[@]}" RIFFLE_COLLNET_MIN_BYTES=64K NCCL_ALGO=^tree -- all_reduce_perf -b 1K -e 32K -f 4
perf "tuner's threshold set to 0" COLLNET "${collnet[@]}" RIFFLE_COLLNET_MIN_BYTES=0 -- all_reduce_perf -b 8 -e 8
perf "lengths are known: no threshold (NCCL 2.28 and later, one rank per node)" COLLNET "${collnet[@]}" NCCL_ALGO=^tree -- all_reduce_perf -b 1K -e 32K -f 4
perf "RIFFLE_COLLNET=auto" - "${collnet[@]}" RIFFLE_COLLNET=auto -- all_reduce_perf -b 1M -e 4M -f 4
perf "RIFFLE_COLLNET=off" RING "${collnet[@]}" RIFFLE_COLLNET=off NCCL_ALGO=^tree -- all_reduce_perf -b 1M -e 4M -f 4
for algorithm in RING TREE; do
  EXPECT='via NET/[^SI]' perf "net, $algorithm" "$algorithm" "${net[@]}" "NCCL_ALGO=$algorithm" -- \
    all_reduce_perf -b 8 -e 64M -f 8
done
for program in all_gather reduce_scatter broadcast reduce alltoall sendrecv; do
  perf "net, $program" - "${net[@]}" -- "${program}_perf" -b 1K -e 16M -f 16
done
# Bad settings: one line that names the culprit, and results as ever.
EXPECT='RIFFLE_STREAMS=99' perf "value out of range" COLLNET "${collnet[@]}" RIFFLE_STREAMS=99 -- all_reduce_perf -b 1M -e 1M
EXPECT='RIFFLE_SOCKET_IFNAME=eth77 matches no interface' perf "no such interface: NCCL's sockets" - "${collnet[@]}" RIFFLE_SOCKET_IFNAME=eth77 -- all_reduce_perf -b 1M -e 1M
EXPECT='/nonexistent/fabric.toml' perf "no such fabric file" - "${collnet[@]}" RIFFLE_FABRIC=/nonexistent/fabric.toml -- \
  all_reduce_perf -b 1M -e 1M
# Knobs that differ between nodes: an agreed refusal that names the knob, then the ring.
for knob in "STREAMS 1 2" "CHUNK_BYTES 1M 2M" "COLLNET_MIN_BYTES 64K 8M" "PEER_TIMEOUT 60 5"; do
  read -r name first second <<<"$knob"
  EACH_RANK="if ((OMPI_COMM_WORLD_RANK % 2)); then export RIFFLE_$name=$second; else export RIFFLE_$name=$first; fi;" \
    EXPECT="RIFFLE_$name" perf "RIFFLE_$name differs: falls back to the ring" RING "${collnet[@]}" NCCL_ALGO=^tree -- \
    all_reduce_perf -b 1M -e 1M
done
exit $((failures > 0))
