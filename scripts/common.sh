# What scripts/test, scripts/demo and test/deploy/full share. Sourced, with $root set to the repository.

say() { printf '\n== %s\n' "$*"; }

# need_packages [PACKAGE...]: installs what is missing of packages.txt and of these, or prints the line that
# does and stops.
need_packages() {
  local missing=() package
  while read -r package; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done < <(
    grep -v '^#' "$root/scripts/packages.txt"
    (($# == 0)) || printf '%s\n' "$@"
  )
  ((${#missing[@]})) || return 0
  local install=(apt-get install -y --no-install-recommends "${missing[@]}")
  if ((EUID != 0)); then
    echo "Debian packages are missing. Install them and start again:"
    echo "  sudo ${install[*]}"
    exit 1
  fi
  say "installing ${#missing[@]} Debian packages"
  apt-get update
  DEBIAN_FRONTEND=noninteractive "${install[@]}"
}

# build PRESET [TARGET...]: configures and builds one preset of CMakePresets.json.
build() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  say "building preset $preset"
  (cd "$root" && cmake --preset "$preset" "${launcher[@]}" >"$root/.configure.log") || {
    cat "$root/.configure.log"
    exit 1
  }
  rm -f "$root/.configure.log"
  (cd "$root" && cmake --build --preset "$preset" -j"$(nproc)" ${1:+--target "$@"})
}
