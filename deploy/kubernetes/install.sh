#!/bin/sh
# Puts an installation of Riffle into a folder of the host, beside those that are there, and lets the link
# `current` there lead to it:
#
#   riffle-install [SOURCE [TARGET]]      /opt/riffle and /host/opt/riffle unless given
#
# Whatever happens meanwhile, `current` leads to a whole installation: the copy gets its name when it is
# complete, and the link is replaced in one step. Links stay links: as copies, the plugin's tables would share
# no state. The same installation again changes nothing. Others stay, for jobs that run with them.
set -eu

source=${1:-/opt/riffle}
target=${2:-/host/opt/riffle}

fail() {
  echo "riffle-install: $1" >&2
  exit 1
}

# Of all names, contents, links and what may be executed.
digest() {
  (
    cd "$1"
    find . -type f -exec sha256sum {} + | sort -k 2
    find . -type l -exec sh -c 'for link; do echo "$link -> $(readlink "$link")"; done' sh {} + | sort
    find . -type f -perm -100 | sort
  ) | sha256sum | cut -c 1-12
}

[ -f "$source/lib/libnccl-net-riffle.so" ] || fail "$source is no installation: it has no lib/libnccl-net-riffle.so"
mkdir -p "$target" || fail "$target cannot be written"
sum=$(digest "$source")
version=$("$source/bin/riffle" --version) || fail "$source/bin/riffle does not run"
if [ -e "$target/current" ] && [ "$(digest "$target/current")" = "$sum" ]; then
  echo "riffle-install: $target/current is $(readlink "$target/current") already"
  exit
fi

# Under its name there may be one that was damaged since, and that jobs run with.
name=${version#riffle }-$sum
if [ -e "$target/$name" ] && [ "$(digest "$target/$name")" != "$sum" ]; then
  echo "riffle-install: $target/$name is damaged"
  name=$name-$$
fi
half="$target/.half-$name-$$"
link="$target/.link-$$"
trap 'rm -rf "$half" "$link"' EXIT
find "$target" -maxdepth 1 -name '.half-*' -mmin +60 -exec rm -rf {} + # of installers that were killed
if [ ! -e "$target/$name" ]; then
  cp -a "$source" "$half" || fail "$source cannot be copied to $target"
  [ "$(digest "$half")" = "$sum" ] || fail "the copy in $target is not what it was made from"
  sync -f "$half"
  mv -T "$half" "$target/$name" || fail "$target/$name cannot be made"
fi
ln -s "$name" "$link"
mv -T "$link" "$target/current" || fail "$target/current cannot be replaced: is it a folder?"
echo "riffle-install: $target/current is $name"
