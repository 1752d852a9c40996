#!/usr/bin/env bash
# The Slurm files on a Slurm of four nodes on this machine, in namespaces of their own: the prolog for jobs that
# ask and those that do not, `srun riffle doctor`, and the example of a job, where only torchrun is a stand-in.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages slurm-wlm
build release riffle riffle_plugin
home=$work/slurm
rm -rf "$home"
mkdir -p "$home"/{state,bin,etc}
install_build "$home/riffle"

cat >"$home/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=n0
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/state/%n
SlurmctldPidFile=$home/state/slurmctld.pid
SlurmdPidFile=$home/state/%n.pid
SlurmctldLogFile=$home/slurmctld.log
SlurmdLogFile=$home/%n.log
SlurmdParameters=config_overrides
TaskProlog=$root/deploy/slurm/task_prolog.sh
GresTypes=gpu
NodeName=n[1-4] Port=17001-17004 CPUs=64 Gres=gpu:8
PartitionName=all Nodes=ALL Default=YES
CONF
touch "$home"/gpu{0..7}
printf 'AutoDetect=off\nName=gpu File=%s/gpu[0-7]\n' "$home" >"$home/gres.conf"
printf '127.0.0.1 localhost n0 n1 n2 n3 n4\n' >"$home/etc/hosts"
cat >"$home/bin/torchrun" <<'TORCHRUN'
#!/bin/sh
echo "torchrun on $(hostname): $NCCL_NET_PLUGIN $*"
TORCHRUN
chmod +x "$home/bin/torchrun"

say "running jobs"
unshare --mount --uts --net --pid --fork --kill-child --mount-proc bash -euo pipefail -s "$home" "$root/deploy/slurm" <<'INSIDE'
home=$1 slurm=$2
fail() {
  echo "failed: $1" >&2
  tail -n 5 "$home"/*.log >&2
  exit 1
}
ip link set lo up
ip link add eth0 type veth peer eth1 # Slurm does not listen where there is only loopback
ip address add 10.0.0.1/24 dev eth0
ip link set eth0 up
hostname n0
mount --bind "$home/etc/hosts" /etc/hosts
mount -t tmpfs none /opt
mkdir /opt/riffle
mount --bind "$home/riffle" /opt/riffle
export SLURM_CONF=$home/slurm.conf PATH=$home/bin:$PATH RIFFLE_SOCKET_IFNAME==lo
slurmctld -D &
for node in n1 n2 n3 n4; do
  unshare --uts bash -c "hostname $node; exec slurmd -D -N $node" &
done
srun() { command srun --input=none "$@"; } # this script comes by standard input
idle() { sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$' || true; }
until [[ $(idle) == 4 ]]; do
  ((SECONDS < 60)) || fail "no four nodes: $(sinfo -N 2>&1)"
  sleep 1
done

# A job that does not ask stays as it is; one that asks has the variables; a wish that cannot be met is said.
[[ $(srun -N 4 hostname | sort | tr '\n' ' ') == "n1 n2 n3 n4 " ]] || fail "srun"
said=$(srun -N 4 env)
[[ $said != *NCCL_* ]] || fail "a job that did not ask has $said"
wanted=$(bash -c 'eval "$(/opt/riffle/bin/riffle env --nccl 2.28.9)"; env' | grep -E '^(NCCL_|LD_LIBRARY_PATH)' | sort)
said=$(USE_RIFFLE=2.28.9 srun -N 1 env | grep -E '^(NCCL_|LD_LIBRARY_PATH)' | sort)
[[ $said == "$wanted" ]] || fail "USE_RIFFLE=2.28.9: $said, not $wanted"
said=$(USE_RIFFLE=9 srun -N 1 env)
[[ $said == *"the job runs without Riffle: riffle: NCCL release \"9\""* && $said != *NCCL_* ]] || fail "USE_RIFFLE=9: $said"

doctor=$(USE_RIFFLE=2.28.9 srun -N 4 /opt/riffle/bin/riffle doctor --nccl 2.28.9) || fail "srun riffle doctor: $doctor"
echo "$doctor"
for node in n1 n2 n3 n4; do grep -q "^$node " <<<"$doctor" || fail "no $node in the table"; done
grep -q "all pairs of 4 hosts connect" <<<"$doctor" || fail "pairs"
! srun -N 4 /opt/riffle/bin/riffle doctor --nccl 2.28.9 >/dev/null 2>&1 || fail "without variables nothing is wrong"

sbatch --quiet --wait -o "$home/job.txt" "$slurm/job.sbatch" || fail "job.sbatch: $(cat "$home/job.txt")"
for node in n1 n2 n3 n4; do
  grep -q "^torchrun on $node: riffle --nnodes=4 .* --rdzv-endpoint=n1:29500 train.py$" "$home/job.txt" || fail "job.sbatch: $(cat "$home/job.txt")"
done
INSIDE
echo "Slurm: prolog, srun riffle doctor, job.sbatch on four nodes"
