import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
except ImportError:
    pass  # Spack before 1.0: both are part of spack.package


class Riffle(CMakePackage):
    """Exact all-reduce in groups that avoid slow links, as an NCCL plugin. Installed, it changes no job:
    riffle env prints the variables that a job exports."""

    # A tarball that deploy/source made, in the folder where spack runs; or spack dev-build in a checkout.
    manual_download = True
    url = f"file://{os.getcwd()}/riffle-0.2.0.tar.gz"

    license("Apache-2.0")

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libsodium")
    depends_on("hwloc@2:")
    depends_on("boost@1.70:", type="build")
    depends_on("cli11", type="build")
    depends_on("fmt", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("spdlog", type="build")
    depends_on("tomlplusplus", type="build")

    conflicts("%gcc@:11", msg="C++20 needs GCC 12 or later")
    conflicts("%clang@:13", msg="C++20 needs Clang 14 or later")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("RIFFLE_TESTS", False),
            self.define("RIFFLE_BENCH", False),
        ]
