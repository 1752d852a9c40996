# What the tests of whole packages share. Sourced; they need root, Debian's packages and some minutes each, and
# leave what they built in build/deploy, so that the next run is quicker.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
source "$root/scripts/common.sh"
unset $(compgen -e RIFFLE_ || true) $(compgen -e NCCL_ || true)
work=$root/build/deploy
mkdir -p "$work"
version=$(sed -n 's/.*kVersion\[\] = "\(.*\)";/\1/p' "$root/plugin/version.h")
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=${CCACHE_DIR:-$work/ccache} # debhelper has a home of its own

fail() {
  echo "failed: $1" >&2
  exit 1
}

# fresh_debian [OPTION...] TARGET PACKAGE...: a Debian of its own, with these packages, from where this one has its
# own; a folder, or an archive for a name that ends in .tar. Options are mmdebstrap's, in place of --variant=apt.
fresh_debian() {
  local options=() target
  while [[ $1 == --* ]]; do
    options+=("$1")
    shift
  done
  target=$1
  shift
  say "a fresh Debian"
  sources() { apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | sort -u; }
  [[ -n $(sources) ]] || apt-get -qq update
  rm -rf --one-file-system "$target"
  mmdebstrap --quiet "${options[@]:---variant=apt}" --include="$(IFS=,; echo "$*")" bookworm "$target" - < <(sources)
  [[ ! -d $target ]] || cp /etc/resolv.conf "$target/etc/"
}

# inside FOLDER COMMAND...: in that Debian, with nothing of this environment.
inside() {
  unshare --mount bash -euc '
    mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount --rbind /dev "$0/dev"
    exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"' "$@"
}

# install_build PREFIX: what `build release riffle riffle_plugin` built, without manual pages.
install_build() {
  local component
  for component in plugin links command modulefiles; do
    cmake --install "$root/build" --prefix "$1" --component $component >/dev/null
  done
}

# python_tools PACKAGE...: programs from PyPI, in $tools/bin.
python_tools() {
  tools=$work/tools
  [[ -d $tools ]] || /usr/bin/python3 -m venv --system-site-packages "$tools"
  "$tools/bin/pip" install --quiet "$@"
}

# Would NCCL find, load and use what is installed, and does an all-reduce by it come out right? Over loopback, as
# what else there is differs by machine.
# For `bash -c` elsewhere, after the variables are set.
doctor='riffle doctor --loop --nccl 2.28.9'
export_variables='export RIFFLE_SOCKET_IFNAME==lo; eval "$(riffle env --nccl 2.28.9)"'
