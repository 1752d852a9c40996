# deploy/kubernetes/install.sh on a folder: twice, beside an older installation, over a damaged one, with a
# full disk, killed in the middle.
#
# usage: installer_test.sh RIFFLE PLUGIN
set -euo pipefail
install=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/deploy/kubernetes/install.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
image=$folder/image host=$folder/host
fail() {
  echo "installer_test: $1"
  exit 1
}

mkdir -p "$image/bin" "$image/lib"
cp "$1" "$image/bin/riffle"
cp "$2" "$image/lib/libnccl-net-riffle.so"
for kind in tuner profiler env; do ln -s libnccl-net-riffle.so "$image/lib/libnccl-$kind-riffle.so"; done

# works: `current` leads to what the image has: links are links, one inode, and the command finds them.
works() {
  diff -r --no-dereference "$image/" "$host/current/" || fail "$1: not what the image has"
  [[ $(stat -Lc %i "$host"/current/lib/*.so | sort -u | wc -l) == 1 ]] || fail "$1: several files of one"
  [[ $("$host/current/bin/riffle" env) == *"LD_LIBRARY_PATH=$(readlink -f "$host/current")/lib"* ]] || fail "$1: env"
  [[ -z $(find "$host" -name '.*' ! -path "$host") ]] || fail "$1: left something half done"
}

sh "$install" "$image" "$host" >"$folder/said" || fail "does not install"
works "the first time"
first=$(readlink "$host/current")
before=$(stat -c '%i %Y' "$host/$first" "$host/current")
said=$(sh "$install" "$image" "$host")
works "the second time"
[[ $said == *" already" && $(stat -c '%i %Y' "$host/$first" "$host/current") == "$before" ]] ||
  fail "the second time it changed something: $said"

# Another release comes beside it; the old one stays whole for jobs that run with it, and can come back.
echo more >"$image/NOTES"
sh "$install" "$image" "$host" >/dev/null
works "another release"
[[ $(readlink "$host/current") != "$first" && ! -e $host/$first/NOTES ]] || fail "the older one did not stay as it was"
rm "$image/NOTES"
sh "$install" "$image" "$host" >/dev/null
works "the old release again"
[[ $(readlink "$host/current") == "$first" && $(ls "$host" | wc -l) == 3 ]] || fail "the old one was made again"

# Damage is noticed: a file that lacks its end, a link that was followed.
truncate -s 1000 "$host/current/lib/libnccl-net-riffle.so"
said=$(sh "$install" "$image" "$host")
works "after damage"
[[ $said == *"$first is damaged"* ]] || fail "damage is not said: $said"
rm "$host/current/lib/libnccl-env-riffle.so"
cp "$image/lib/libnccl-net-riffle.so" "$host/current/lib/libnccl-env-riffle.so"
sh "$install" "$image" "$host" >/dev/null
works "after a link was followed"

# An installer that cannot finish leaves `current` as it is: cp fails, or is killed.
good=$(readlink "$host/current")
echo "yet more" >"$image/NOTES"
mkdir "$folder/bin"
for end in 'exit 1' 'kill -9 $PPID'; do
  printf '#!/bin/sh\nmkdir "$3"\n%s\n' "$end" >"$folder/bin/cp"
  chmod +x "$folder/bin/cp"
  ! PATH=$folder/bin:$PATH sh "$install" "$image" "$host" >/dev/null 2>&1 || fail "a copy that failed is not said"
  [[ $(readlink "$host/current") == "$good" ]] || fail "half of an installation became current"
done
touch -d '2 hours ago' "$host"/.half-* # what the killed one left goes, in time
sh "$install" "$image" "$host" >/dev/null
works "after installers that failed"

# Errors name what is wrong.
says() {
  local said
  said=$(sh "$install" "$2" "$3" 2>&1) && fail "$1: installs"
  [[ $said == *"$4"* ]] || fail "$1: $said"
}
says "no installation" "$folder/bin" "$host" "$folder/bin is no installation"
mkdir -p "$folder/other/current"
says "a folder in the link's place" "$image" "$folder/other" "is it a folder?"
echo ok
