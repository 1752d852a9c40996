# deploy/container/98-riffle.sh, as enroot runs its hooks: what it asks to be mounted, and that it sets nothing.
set -euo pipefail
hook=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/deploy/container/98-riffle.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "enroot_test: $1"
  exit 1
}
mkdir "$folder/rootfs"
# The hook, with another folder of the host; prints the table of mounts.
mounts() {
  : >"$folder/mounts"
  : >"$folder/environ"
  sed "s,^riffle=/opt/riffle$,riffle=$folder/opt/riffle," "$hook" >"$folder/hook.sh"
  ! cmp -s "$hook" "$folder/hook.sh" || fail "the hook names no folder"
  ENROOT_ROOTFS=$folder/rootfs ENROOT_MOUNTS=$folder/mounts ENROOT_ENVIRON=$folder/environ bash "$folder/hook.sh" || fail "the hook fails"
  [[ ! -s $folder/environ ]] || fail "it sets $(cat "$folder/environ")"
  cat "$folder/mounts"
}

[[ -z $(mounts) ]] || fail "a host without Riffle: $(mounts)"
mkdir -p "$folder/opt/riffle"
[[ $(mounts) == "$folder/opt/riffle x-create=dir,bind,ro,nosuid,nodev,private" ]] || fail "$(mounts)"
mkdir -p "$folder/rootfs$folder/opt/riffle"
[[ -z $(mounts) ]] || fail "a container with its own: $(mounts)"
echo ok
