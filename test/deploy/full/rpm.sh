#!/usr/bin/env bash
# The RPM: built from what is committed, read by rpmlint, installed in a folder as root, once under /usr and
# once under another prefix.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages rpm python3-rpm python3-venv mmdebstrap libpmix-dev
python_tools rpmlint
out=$work/rpm

say "building"
rm -rf "$out"
# Debian's libraries are not in rpm's own database, and its loader does not look in /usr/lib64.
"$root/deploy/rpm/build" "$out" --nodeps --define '_lib lib' --define '_libdir %{_prefix}/lib' >"$work/rpm.log" 2>&1 || fail "$(tail -n 30 "$work/rpm.log")"
package=$(ls "$out"/RPMS/*/riffle-"$version"-*.rpm)
say "rpmlint"
"$tools/bin/rpmlint" -c "$root/deploy/rpm/rpmlint.toml" "$package" "$out"/SRPMS/*.rpm "$root/deploy/rpm/riffle.spec"

chroot=$work/chroot
fresh_debian "$chroot" libstdc++6
# Debian's rpm wants to be told that it is meant.
meant=$(rpm --help | grep -o -- --force-debian | head -n 1 || true)
for prefix in /usr /opt/riffle; do
  say "installing under $prefix"
  rpm --root "$chroot" --prefix "$prefix" --nodeps $meant -i "$package"
  inside "$chroot" bash -euo pipefail -s "$prefix" "$prefix/lib" "$export_variables" "$doctor" <<'INSIDE'
fail() {
  echo "failed: $1" >&2
  exit 1
}
PATH=$1/bin:$PATH
[[ $(readlink "$2/libnccl-tuner-riffle.so") == libnccl-net-riffle.so ]] || fail "links"
(eval "$3" && $4) || fail "riffle doctor"
if [[ $1 == /usr ]]; then
  [[ ! -e /etc/ld.so.conf.d/riffle.conf ]] || fail "/usr needs no ld.so.conf.d"
else
  [[ $(cat /etc/ld.so.conf.d/riffle.conf) == "$2" ]] || fail "ld.so.conf.d"
  # The loader finds it without LD_LIBRARY_PATH.
  ldconfig -p | grep -q "libnccl-net-riffle.so .*=> $2/" || fail "not in the loader's cache"
fi
for library in libsodium spdlog fmt toml++ CLI11 nlohmann-json; do
  grep -q "^$library: " "$1"/share/licenses/riffle*/THIRD-PARTY-NOTICES || fail "no notice of $library"
done
[[ ! -e /etc/nccl.conf ]] && ! grep -rqs NCCL_ /etc || fail "a file in /etc sets a variable of NCCL"
INSIDE
  rpm --root "$chroot" -e riffle
  left=$(cd "$chroot" && find . -xdev ! -type d -path '*riffle*' ! -path './var/*')
  [[ -z $left ]] || fail "left behind: $left"
done
rm -rf --one-file-system "$chroot"
echo "RPM: built, installed under two prefixes, used, erased"
