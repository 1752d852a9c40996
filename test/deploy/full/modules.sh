#!/usr/bin/env bash
# Modulefiles of an installation, by Lmod and by Environment Modules: loaded, used, unloaded, and refused beside a
# module of another plugin for NCCL.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages lmod tcl
build release riffle riffle_plugin

# Debian's packages of both tools exclude each other: the second is only unpacked.
unpacked=$work/environment-modules
rm -rf "$unpacked"
mkdir -p "$unpacked"
(cd "$unpacked" && apt-get -qq -o APT::Sandbox::User=root download environment-modules && dpkg-deb -x ./*.deb .)
modulecmd=$(ls "$unpacked"/usr/lib/*/modulecmd.tcl)

prefix=$work/modules/riffle
rm -rf "$work/modules"
install_build "$prefix"
# Modules that know nothing of Riffle, and one for Lmod of the same family.
others=$work/modules/others
mkdir -p "$others"/{aws-ofi-nccl,of-the-family}
echo 'setenv("OTHER_PLUGIN", "1")' >"$others/aws-ofi-nccl/1.0.lua"
printf '#%%Module\nsetenv OTHER_PLUGIN 1\n' >"$others/aws-ofi-nccl/1.0"
echo 'family("nccl_net_plugin")' >"$others/of-the-family/1.0.lua"

# with_modules TOOL START: the test in a shell of its own, where START brings the function `module`.
with_modules() {
  say "$1"
  env -i HOME="$HOME" PATH=/usr/bin:/bin LD_LIBRARY_PATH=/its/own \
    bash -euo pipefail -s "$@" "$prefix" "$others" "$version" "$doctor" <<'INSIDE'
fail() {
  echo "failed: $1" >&2
  exit 1
}
# What the tools note for themselves is theirs.
variables() { env -0 | sort -z | tr '\n\0' ' \n' | grep -Ev '^(_|BASH_FUNC_|FPATH|LMOD|LOADEDMODULES|MANPATH|MODULE)'; }
tool=$1 prefix=$3 others=$4 version=$5 doctor=$6
set +u
eval "$2"
before=$(variables)
module use "$prefix/share/riffle/modulefiles" "$others"
used=$(variables)
[[ $used == "$before" ]] || fail "module use changes $used"

for name in riffle riffle/"$version"; do
  module load "$name"
  [[ $(command -v riffle) == "$prefix/bin/riffle" && $(riffle --version) == "riffle $version" ]] || fail "$name: riffle --version"
  [[ $LD_LIBRARY_PATH == "$prefix/lib"*:/its/own ]] || fail "$name: LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
  wanted=$(env -i LD_LIBRARY_PATH=/its/own bash -c "eval \"\$($prefix/bin/riffle env)\"; env" | grep ^NCCL_ | sort)
  [[ -n $wanted && $(env | grep ^NCCL_ | sort) == "$wanted" ]] || fail "$name: $(env | grep ^NCCL_), but riffle env says $wanted"
  (export RIFFLE_SOCKET_IFNAME==lo && $doctor) || fail "$name: riffle doctor"
  module unload riffle
  [[ $(variables) == "$before" ]] || fail "$name: unload leaves $(diff <(echo "$before") <(variables))"
done

module load riffle
if [[ $tool == Lmod ]]; then # which looks at conflicts of the module that is loaded second alone
  module load of-the-family 2>/dev/null
  ! env | grep ^NCCL_ || fail "another of its family does not take its place"
  module unload of-the-family
else
  ! module load aws-ofi-nccl 2>/dev/null && [[ -z $OTHER_PLUGIN ]] || fail "another plugin loads beside it"
  module unload riffle
fi
module load aws-ofi-nccl
[[ $OTHER_PLUGIN == 1 ]] || fail "the other module does not load: the test shows nothing"
with_other=$(variables)
said=$(module load riffle 2>&1) && fail "loads beside another plugin"
[[ $said == *aws-ofi-nccl* ]] || fail "refused without the other's name: $said"
module load riffle 2>/dev/null || true
[[ $(variables) == "$with_other" ]] || fail "refused, but it changes $(diff <(echo "$with_other") <(variables))"
[[ $(module help riffle 2>&1) == *"the riffle command"* && $(module whatis riffle 2>&1) == *"NCCL plugin"* ]] || fail "help, whatis"
INSIDE
}

with_modules Lmod 'source /usr/share/lmod/lmod/init/bash'
with_modules "Environment Modules" "module() { eval \"\$(tclsh $modulecmd bash \"\$@\")\"; }"
echo "modules: loaded, used, unloaded, refused beside another plugin, by both tools"
