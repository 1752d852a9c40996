#!/usr/bin/env bash
# riffle doctor --hosts and riffle probe over a real sshd: hosts on this machine, in namespaces of their own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages openssh-client
build release riffle riffle_plugin
home=$work/ssh
rm -rf "$home"
mkdir -p "$home/etc"
# Installed, it would be a server of this machine.
(cd "$home" && apt-get -qq -o APT::Sandbox::User=root download openssh-server libwrap0)
for package in "$home"/*.deb; do dpkg-deb -x "$package" "$home/unpacked"; done
install_build "$home/riffle"

for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$home/$key"; done
cat >"$home/config" <<CONF
Host *
  IdentityFile $home/user
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
CONF
for n in 1 2 3 4; do
  cat >"$home/n$n.conf" <<CONF
ListenAddress 127.0.0.$n
HostKey $home/host
AuthorizedKeysFile $home/user.pub
StrictModes no
UsePAM no
PidFile none
CONF
done
echo 'SetEnv RIFFLE_STREAMS=4' >>"$home/n4.conf" # as an administrator's file on one host may have it
{
  echo '127.0.0.1 localhost'
  for n in 1 2 3 4 5; do echo "127.0.0.$n n$n"; done
} >"$home/etc/hosts"
echo 'root:x:0:0:root:/root:/bin/bash
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin' >"$home/etc/passwd"
echo 'root:*:19000:0:99999:7:::' >"$home/etc/shadow"

say "asking hosts"
unshare --mount --uts --net --pid --fork --kill-child --mount-proc bash -euo pipefail -s "$home" "$export_variables" <<'INSIDE'
home=$1
fail() {
  echo "failed: $1" >&2
  exit 1
}
ip link set lo up
hostname n1
for file in hosts passwd shadow; do mount --bind "$home/etc/$file" "/etc/$file"; done
mount -t tmpfs none /run
mkdir /run/sshd
libraries=$(dirname "$(find "$home/unpacked" -name libwrap.so.0)")
for n in 1 2 3 4; do
  unshare --uts bash -c "hostname n$n; LD_LIBRARY_PATH=$libraries exec $home/unpacked/usr/sbin/sshd -D -f $home/n$n.conf" &
done
ssh=(ssh -F "$home/config" -o BatchMode=yes -o ConnectTimeout=10 -T)
for n in 1 2 3 4; do
  until [[ $("${ssh[@]}" "n$n" hostname 2>/dev/null </dev/null) == "n$n" ]]; do # standard input is this script
    ((SECONDS < 30)) || fail "no sshd on n$n: $("${ssh[@]}" "n$n" hostname 2>&1 </dev/null)"
    sleep 0.2
  done
done

PATH=$home/riffle/bin:$PATH
eval "$2"
ask() { riffle doctor --nccl 2.28.9 --timeout 20 --ssh "${ssh[*]}" --hosts "$1"; }
said=$(ask n1,n2,n3) || fail "hosts that agree: $said"
echo "$said"
for node in n1 n2 n3; do grep -q "^$node " <<<"$said" || fail "no $node in the table"; done
grep -q "all pairs of 3 hosts connect" <<<"$said" || fail "pairs"
# One with another setting, and one that there is not.
status=0
said=$(ask n1,n2,n4,n5) || status=$?
echo "$said"
[[ $status == 1 ]] || fail "exit code $status"
grep -q "RIFFLE_STREAMS differs: 0 on n1, n2; 4 on n4" <<<"$said" || fail "another setting"
grep -q "n5 takes no part: .*Connection refused" <<<"$said" || fail "no server"
said=$(riffle probe --ssh "${ssh[*]}" n1 n2 n3) || fail "riffle probe: $said"
grep -q "^3 nodes, " <<<"$said" || fail "riffle probe: $said"
INSIDE
echo "ssh: riffle doctor --hosts and riffle probe by a real sshd"
