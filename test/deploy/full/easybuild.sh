#!/usr/bin/env bash
# EasyBuild, as an ordinary user: the easyconfig with the source of what is committed, the module that comes of
# it, and riffle from that module.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages python3-venv lmod libpmix-dev
python_tools easybuild
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
"$root/deploy/source" "$home/sources" >/dev/null
cp "$root"/deploy/easybuild/*.eb "$home"
chown -R nobody: "$home"
chmod 755 "$home"

say "building"
export LMOD_CMD=/usr/share/lmod/lmod/libexec/lmod
as_user() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$home" USER=nobody PATH=/usr/bin:/bin "$@"; }
(cd "$home" && as_user EB_PYTHON="$tools/bin/python" "$tools/bin/eb" --prefix="$home/eb" --sourcepath="$home/sources" --modules-tool=Lmod \
  --parallel="$(nproc)" --tmpdir="$home/tmp" Riffle-"$version".eb) >"$work/easybuild.log" 2>&1 || fail "$(tail -n 30 "$work/easybuild.log")"

say "using it"
as_user env -i HOME="$home" PATH=/usr/bin:/bin bash -euo pipefail -s "$home/eb/modules/all" "$version" "$export_variables" "$doctor" <<'INSIDE'
fail() {
  echo "failed: $1" >&2
  exit 1
}
set +u
source /usr/share/lmod/lmod/init/bash
module use "$1"
module load Riffle/"$2"
set -u
[[ $(riffle --version) == "riffle $2" ]] || fail "riffle --version"
! env | grep ^NCCL_ || fail "the module sets variables of NCCL"
(eval "$3" && $4) | sed "s,$HOME/,," || fail "riffle doctor"
INSIDE
echo "EasyBuild: built, loaded, used"
