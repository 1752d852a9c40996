"""How long builds and tests take. The compiler cache is off."""
from table import Area, Before, Figure, Run, at_most, seconds

REBUILD = "CCACHE_DISABLE=1 cmake --build build"


def touched(name, words, file, limit):
    return Run(name, REBUILD, [Figure(f"everything again after touching {words}, s", seconds(), at_most(limit),
                                      digits=0)],
               prepare=f"cmake --preset release >/dev/null && cmake --build build >/dev/null && touch {file}", repeat=3)


def minutes(out):
    return out.seconds / 60


AREA = Area(
    title="Builds", minutes=15, targets=(),
    about="Compiler cache off.",
    runs=[
        Run("fresh", "cmake --preset release -B {tmp}/build >/dev/null && CCACHE_DISABLE=1 cmake --build {tmp}/build", [
            Figure("full build of everything, minutes", minutes, digits=1, before=Before("4.3 to 4.8"))]),
        Run("plugin-only", "cmake --preset plugin -B {tmp}/build >/dev/null && CCACHE_DISABLE=1 cmake --build {tmp}/build", [
            Figure("the shared object alone, minutes", minutes, digits=1)]),
        touched("touch-engine", "engine.cc", "plugin/collective/engine/engine.cc", 20),
        touched("touch-mesh", "mesh.h", "plugin/transport/base/mesh.h", 90),
        Run("fresh-clone", "git clone -q . {tmp}/riffle && CCACHE_DISABLE=1 {tmp}/riffle/scripts/test", [
            Figure("`scripts/test` from a fresh clone, minutes", minutes, at_most(12), digits=1,
                   before=Before("16.1 (limit 15 then)", "2026-11-23"))], is_long=True, limit_s=7200),
        Run("fresh-demo", "git clone -q . {tmp}/riffle && CCACHE_DISABLE=1 {tmp}/riffle/scripts/demo", [
            Figure("`scripts/demo` from a fresh clone, minutes", minutes, at_most(10), digits=1,
                   before=Before("6.4"))], is_long=True)])
