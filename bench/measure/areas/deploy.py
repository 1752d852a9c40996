"""Packages and recipes of deploy/: built, checked by their own tools, installed and used. As root on Debian."""
from table import Area, Figure, Run, passes


def part(name, claim, script=None):
    return Run(name, f"test/deploy/full/{script or name + '.sh'}", [Figure(claim, passes(), unit="passes")], limit_s=3600)


AREA = Area(
    title="Packages", minutes=60, targets=("riffle", "riffle_plugin"),
    runs=[
        Run("recipes", "ctest --test-dir build -L deploy --no-tests=error",
            [Figure("recipes: syntax, versions, notices; installer, Slurm prolog", passes(), unit="passes")]),
        part("debian", "Debian packages: lintian; fresh Debian: doctor --loop, completions; purge leaves nothing"),
        part("rpm", "RPM: rpmlint without errors; under /usr and another prefix: doctor; no file left once erased"),
        part("wheel", "wheel x86_64: manylinux_2_28, one shared object; virtual environment: doctor", "wheel.sh x86_64"),
        part("wheel-aarch64", "wheel aarch64: manylinux_2_28, one shared object; tables and command under qemu-user", "wheel.sh aarch64"),
        part("easybuild", "EasyBuild as an ordinary user: module, doctor"),
        part("container", "image by buildah; its installer twice: doctor --loop"),
        part("modules", "Lmod and Environment Modules: doctor, unload leaves nothing, refused beside another plugin"),
        part("slurm", "Slurm, four nodes on one machine: prolog, srun riffle doctor, the example of a job"),
        part("kubernetes", "Kubernetes objects against its schemas"),
        part("ssh", "a real sshd, hosts on one machine: riffle doctor --hosts, riffle probe"),
        part("monitoring", "promtool; Prometheus beside a job; top in tmux while a link slows; a job's trace")])
