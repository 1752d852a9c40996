"""Other compilers and processors; presets `clang` and `aarch64`, whose tests run under qemu-user."""
from table import Area, Before, Figure, Run, passes

CLANG = "cmake --preset clang >/dev/null && cmake --build --preset clang"
ARM = "cmake --preset aarch64 >/dev/null && cmake --build --preset aarch64"


def passing(claim, before=None):
    return [Figure(claim, passes(), unit="passes", before=Before(before) if before else None)]


AREA = Area(
    title="Portability", minutes=40, targets=("riffle", "riffle_plugin"),
    runs=[
        Run("so", "ctest --test-dir build -R abi --no-tests=error",
            passing("30 tables, four system libraries, no symbol newer than GLIBC_2.34", "passes")),
        Run("clang-build", CLANG, passing("builds with Clang"), needs=("clang++",), limit_s=7200),
        Run("clang-tests", "ctest --preset clang --no-tests=error", passing("unit, ABI, simulator and fuzz tests, Clang"),
            needs=("clang++",), limit_s=7200),
        Run("aarch64-build", ARM, passing("builds for aarch64"), needs=("aarch64-linux-gnu-g++",), limit_s=7200),
        Run("aarch64-tests", "ctest --preset aarch64 --no-tests=error",
            passing("unit, ABI and simulator tests, aarch64 under qemu-user"),
            needs=("aarch64-linux-gnu-g++", "qemu-aarch64-static"), limit_s=7200)])
