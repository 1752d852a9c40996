#!/usr/bin/env bash
# Debian's packages: built from what is committed, read by lintian, installed in a fresh Debian, used there,
# purged.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages debhelper lintian mmdebstrap libpmix-dev
out=$work/debian

say "building"
# What else it would do is to make packages of debug information.
DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)" DEB_CXXFLAGS_STRIP=-g DEB_CFLAGS_STRIP=-g \
  "$root/deploy/debian/build" "$out" >"$work/debian.log" 2>&1 || fail "$(tail -n 30 "$work/debian.log")"
say "lintian"
lintian --allow-root --fail-on error --info "$out"/*.changes

chroot=$work/chroot
fresh_debian "$chroot" bash-completion fish zsh man-db
cp "$out"/*.deb "$chroot/"
say "installing"
inside "$chroot" bash -euc 'apt-get -qq update; apt-get install -qq -y --no-install-recommends /*.deb >/dev/null; rm /*.deb'

say "using it"
inside "$chroot" bash -euo pipefail -s "$version" "$export_variables" "$doctor" <<'INSIDE'
fail() {
  echo "failed: $1" >&2
  exit 1
}
[[ $(riffle --version) == "riffle $1" ]] || fail "riffle --version"
lib=$(dirname /usr/lib/*/libnccl-net-riffle.so)
for kind in tuner profiler env; do
  [[ $(readlink "$lib/libnccl-$kind-riffle.so") == libnccl-net-riffle.so ]] || fail "libnccl-$kind-riffle.so is no link"
done
# The loader finds it by itself; a folder of the system in front of all others would hide others' libraries.
[[ $(riffle env) != *LD_LIBRARY_PATH* ]] || fail "riffle env sets LD_LIBRARY_PATH"
(eval "$2" && $3) || fail "riffle doctor"
! riffle doctor --nccl 2.28.9 >/dev/null || fail "a job without variables uses it: does something set them?"
[[ ! -e /etc/nccl.conf ]] && ! grep -rqs NCCL_ /etc || fail "a file in /etc sets a variable of NCCL"
for library in libsodium spdlog fmt toml++ CLI11 nlohmann-json; do
  zgrep -q "^$library: " /usr/share/doc/riffle/THIRD-PARTY-NOTICES.gz || fail "no notice of $library"
done
man -w riffle riffle.conf >/dev/null || fail "manual pages"
riffle plan --profile racks8 >/dev/null || fail "profiles"
for peer in gloo mpi; do
  [[ $(ldd /usr/libexec/riffle/riffle_bench_$peer) != *"not found"* ]] || fail "riffle_bench_$peer lacks libraries"
done

# Every shell finds its completion by itself.
[[ $(bash -c 'source /usr/share/bash-completion/bash_completion; __load_completion riffle; complete -p riffle') == *_riffle* ]] ||
  fail "completion for bash"
fish -c "complete -C 'riffle comp'" | grep -q ^completion || fail "completion for fish"
cat >/type.zsh <<'ZSH'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -Uz compinit; compinit -u'
sleep 3
zpty -n -w shell $'riffle comp\t'
sleep 3
while zpty -r -t shell part; do shown+=$part; done
[[ $shown == *letion* ]]
ZSH
zsh -f /type.zsh || fail "completion for zsh"
rm /type.zsh
INSIDE

say "purging"
inside "$chroot" apt-get purge -qq -y riffle riffle-bench >/dev/null
left=$(cd "$chroot" && find . -xdev -iname '*riffle*' ! -path './var/cache/*' ! -path './proc/*' ! -path './sys/*')
[[ -z $left ]] || fail "purge leaves $left"
rm -rf --one-file-system "$chroot"
echo "Debian packages: built, installed, used, purged"
