#!/usr/bin/env bash
# The wheel: built from what is committed, read by auditwheel, installed in a virtual environment, used there.
#
#   test/deploy/full/wheel.sh [x86_64 | aarch64]      this processor unless given
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_packages python3-venv binutils
python_tools auditwheel
processor=${1:-$(uname -m)}
out=$work/wheel

say "building for $processor"
"$root/deploy/wheel/build" "$out" "$processor" >"$work/wheel.log" 2>&1 || fail "$(tail -n 30 "$work/wheel.log")"
wheel=$(ls "$out"/riffle_nccl-"$version"-*_"$processor".whl)

say "auditwheel"
"$tools/bin/auditwheel" show "$wheel" | tee "$work/auditwheel.txt"
tr '\n' ' ' <"$work/auditwheel.txt" | grep -Eq "consistent with the following platform tag: *\"manylinux_2_(1?[0-9]|2[0-8])_$processor\"" ||
  fail "it needs more than glibc 2.28"
/usr/bin/python3 - "$wheel" <<'PYTHON'
import re, stat, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
objects = [i for i in wheel.infolist() if re.search(r"\.so(\.|$)", i.filename)]
assert [i.filename for i in objects] == ["riffle/lib/libnccl-net-riffle.so"], objects
assert not any(stat.S_ISLNK(i.external_attr >> 16) for i in wheel.infolist())
notices = [n for n in wheel.namelist() if n.endswith("THIRD-PARTY-NOTICES") and ".dist-info/" in n]
text = wheel.read(notices[0]).decode()
missing = {n for n in "libsodium spdlog fmt toml++ CLI11 nlohmann-json".split() if f"\n{n}: " not in text}
assert not missing, missing
wheel.extract(objects[0], sys.argv[1] + ".unpacked")
PYTHON
# glibc 2.28 has its parts in libraries of their own.
/usr/bin/python3 "$root/test/abi/check_symbols.py" "$wheel.unpacked/riffle/lib/libnccl-net-riffle.so" libdl libpthread librt
rm -r "$wheel.unpacked"

if [[ $processor != "$(uname -m)" ]]; then
  say "using it under qemu"
  need_packages qemu-user-static mmdebstrap
  declare -A debian=([aarch64]=arm64 [x86_64]=amd64)
  fresh_debian --variant=extract --architectures="${debian[$processor]}" "$work/system-$processor" libc6 libgcc-s1
  emulated=$work/emulated
  rm -rf "$emulated"
  /usr/bin/python3 -m zipfile -e "$wheel" "$emulated"
  chmod +x "$emulated/riffle/bin/riffle" # zipfile takes no modes from the archive, pip does
  "$out/venv/bin/python" -m ziglang cc -O1 -target "$processor-linux-gnu.2.28" -o "$emulated/load" "$root/test/abi/load.c"
  run() { "qemu-$processor-static" -L "$work/system-$processor" "$@"; }
  RIFFLE_NET=tcp run "$emulated/load" "$emulated/riffle/lib/libnccl-net-riffle.so" || fail "the tables of NCCL"
  [[ $(run "$emulated/riffle/bin/riffle" --version) == "riffle $version" ]] || fail "riffle --version"
  run "$emulated/riffle/bin/riffle" plan --profile racks8 >/dev/null || fail "profiles"
  echo "wheel for $processor: built, its tables and its command run under qemu-user"
  exit
fi
say "using it"
rm -rf "$work/venv"
/usr/bin/python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "$wheel"
env -i PATH="$work/venv/bin:/usr/bin:/bin" HOME="$HOME" bash -euo pipefail -s "$version" "$export_variables" "$doctor" <<'INSIDE'
fail() {
  echo "failed: $1" >&2
  exit 1
}
[[ $(riffle --version) == "riffle $1" ]] || fail "riffle --version"
[[ $(python -m riffle env --nccl 2.28.9) == "$(riffle env --nccl 2.28.9)" ]] || fail "python -m riffle"
path=$(python -c 'import riffle; print(riffle.plugin_path())')
[[ $(riffle env --nccl 2.28.9) == *"export NCCL_NET_PLUGIN=$path "*"export NCCL_TUNER_PLUGIN=$path "* ]] || fail "riffle env"
[[ $(find "$(dirname "$path")/.." -name '*.so') == */lib/libnccl-net-riffle.so ]] || fail "several shared objects"
(eval "$2" && $3) || fail "riffle doctor"
# A set for all releases, and one that finds NET by its name alone.
for release in '' 2.20.5; do
  (export RIFFLE_SOCKET_IFNAME==lo; eval "$(riffle env --nccl "$release")" && riffle doctor ${release:+--nccl "$release"}) ||
    fail "riffle doctor for ${release:-every release}"
done
python - <<'PYTHON'
import ctypes, os
before = dict(os.environ)
import riffle
library = ctypes.CDLL(riffle.plugin_path())
assert library.ncclNetPlugin_v12 and library.ncclTunerPlugin_v6 and library.ncclProfiler_v6
assert dict(os.environ) == before
PYTHON
riffle plan --profile racks8 >/dev/null || fail "profiles"
INSIDE
echo "wheel for $processor: built, installed, used"
