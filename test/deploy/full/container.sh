#!/usr/bin/env bash
# The image, by buildah on a Debian that mmdebstrap made, and the installer of Kubernetes out of it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages buildah mmdebstrap
# Neither overlay mounts nor namespaces: those are not to be had in every container that tests run in.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
buildah() { command buildah --root "$work/images" --runroot "$work/images-run" "$@"; }

fresh_debian "$work/base.tar" ca-certificates
base=$(buildah from scratch)
buildah add --quiet "$base" "$work/base.tar" / >/dev/null
buildah commit --quiet "$base" riffle-base >/dev/null
buildah rm "$base" >/dev/null

say "building"
source=$("$root/deploy/source" "$work")
tree=${source%.tar.gz}
rm -rf "$tree"
tar -xf "$source" -C "$work"
buildah build --pull-never --build-arg BASE=localhost/riffle-base -t riffle -f "$tree/deploy/container/Containerfile" "$tree" \
  >"$work/container.log" 2>&1 || fail "$(tail -n 30 "$work/container.log")"

say "using it"
container=$(buildah from --pull-never localhost/riffle)
mount=$(buildah mount "$container")
! buildah inspect "$container" | grep -q '"NCCL_' || fail "the image sets variables of NCCL"
[[ $(readlink "$mount/opt/riffle/lib/libnccl-tuner-riffle.so") == libnccl-net-riffle.so ]] || fail "links were followed"
host=$work/host
rm -rf "$host"
mkdir "$host"
for _ in first second; do
  buildah run --volume "$host:/host/opt/riffle" "$container" -- /usr/local/bin/riffle-install
done
[[ $(readlink "$host"/current/lib/libnccl-tuner-riffle.so) == libnccl-net-riffle.so ]] || fail "the installer followed links"
buildah run --volume "$host:/opt/host" "$container" -- bash -euc "PATH=/opt/host/current/bin:\$PATH; $export_variables; $doctor" ||
  fail "riffle doctor"
grep -q '^libsodium: ' "$mount/opt/riffle/share/doc/riffle/THIRD-PARTY-NOTICES" || fail "no notices"
buildah rm "$container" >/dev/null
echo "container: built, installed twice, used"
