#!/usr/bin/env bash
# An installation finds its profiles beside itself: after it was moved, and without the source tree.
#
# usage: moved_test.sh CMAKE BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" --install "$2" --prefix "$folder/first" >/dev/null

# Modulefiles name the installation, and where it was staged for a package, the place it is for.
modules() { cat "$1"/share/riffle/modulefiles/riffle/*; }
DESTDIR=$folder/stage "$1" --install "$2" --prefix /opt/riffle >/dev/null
diff <(modules "$folder/first" | sed "s,$folder/first/,/opt/riffle/,") <(modules "$folder/stage/opt/riffle")
grep -q '^prepend-path LD_LIBRARY_PATH /opt/riffle/lib' <(modules "$folder/stage/opt/riffle")

mv "$folder/first" "$folder/second"
riffle=$folder/second/bin/riffle
"$riffle" plan --profile racks8 >/dev/null

# What there is, and where it is looked for.
answer=$("$riffle" plan --profile none-such 2>&1) && { echo "a profile of no such name was planned"; exit 1; }
[[ $answer == *"$folder/second/share/riffle/profiles/none-such.toml"*racks8* ]] || {
  echo "not looked for in the installation: $answer"
  exit 1
}
if grep -qF "$3/bench" "$riffle"; then
  echo "$riffle names a folder of the source tree:"
  grep -aoF "$3/bench" "$riffle" | head -1
  exit 1
fi
