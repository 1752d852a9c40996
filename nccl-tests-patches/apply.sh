#!/bin/bash
# Adds Riffle's columns, data and checks to a checkout of NVIDIA/nccl-tests, or takes them out again.
#
# usage: apply.sh [--dry-run] [--reverse] NCCL_TESTS
#
# Nothing is changed unless the checkout is, byte by byte, a release that there is a patch for: the
# patches have no context lines, so a checksum stands in for them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
patches=${RIFFLE_PATCHES:-$here/patches}  # other ones: for the test of this script

usage() { sed -n 's/^# usage: /usage: /p' "${BASH_SOURCE[0]}" >&2; exit 2; }
fail() { echo "apply.sh: $*" >&2; exit 1; }
checksum() { sha256sum "$1" | cut -d' ' -f1; }
in_head() { sed -n "s/^# $2 *//p" "$1"; }  # PATCH before|after

dry=false reverse=false root=
for argument in "$@"; do
  case $argument in
    --dry-run) dry=true ;;
    --reverse) reverse=true ;;
    -*) usage ;;
    *) [ -z "$root" ] || usage; root=$argument ;;
  esac
done
[ -n "$root" ] || usage
file=$root/src/common.cu
[ -f "$file" ] || fail "$root is no checkout of nccl-tests: it has no src/common.cu"
command -v patch >/dev/null || fail "the program patch is missing"

# Releases from 2.17.4 on say their version; the checksum alone tells the earlier ones.
version=$(sed -n 's/^#define NCCL_TESTS_VERSION "\(.*\)"$/\1/p' "$root/src/common.h" 2>/dev/null || true)
have=$(checksum "$file")
if $reverse; then from=after to=before; else from=before to=after; fi
candidates=("$patches"/*.patch)
if [ -n "$version" ]; then
  candidates=("$patches/$version.patch")
  [ -f "${candidates[0]}" ] ||
    fail "no patch for nccl-tests $version; there are patches for $(cd "$patches" && ls -v -- *.patch | sed 's/[.]patch$//' | xargs)"
fi
patch= opposite=
for candidate in "${candidates[@]}"; do
  [ "$(in_head "$candidate" $from)" != "$have" ] || patch=$candidate
  [ "$(in_head "$candidate" $to)" != "$have" ] || opposite=$candidate
done
if [ -z "$patch" ]; then
  [ -z "$opposite" ] || fail "$file is $($reverse && echo not || echo already) patched"
  fail "$file is not that of a release${version:+ ($version)}: its checksum $have is in no patch. Take an unchanged checkout"
fi
version=$(basename "$patch" .patch)

# On a copy first, so that the checkout is either as before or as it should be.
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cp "$file" "$work/common.cu"
direction=$($reverse && echo --reverse || echo --forward)
patch --quiet --no-backup-if-mismatch "$direction" --fuzz=0 "$work/common.cu" "$patch" ||
  fail "$(basename "$patch") does not fit $file; nothing was changed"
[ "$(checksum "$work/common.cu")" = "$(in_head "$patch" $to)" ] ||
  fail "$(basename "$patch") made another file than it should; nothing was changed"
if $dry; then
  echo "nccl-tests $version: src/common.cu $($reverse && echo "would lose Riffle's lines" || echo "would get Riffle's lines")"
  exit 0
fi
for header in "$here"/src/*.h; do
  if $reverse; then rm -f "$root/src/$(basename "$header")"; else cp "$header" "$root/src/"; fi
done
cat "$work/common.cu" >"$file"  # keeps its owner and mode
echo "nccl-tests $version: $($reverse && echo "as released again" || echo "patched; build as before")"
