#!/usr/bin/env python3
"""deploy/: recipes can be read, name the project's version, carry all notices, and set nothing for jobs."""
import ast
import pathlib
import re
import shutil
import subprocess
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
VERSION = re.search(r'kVersion\[\] = "([^"]+)"', (ROOT / "plugin/version.h").read_text())[1]
PAGES = [page for page in DEPLOY.rglob("*.md")]
RECIPES = [file for file in sorted(DEPLOY.rglob("*"))
           if file.is_file() and "__pycache__" not in file.parts and file not in PAGES]

# What product code includes that is no part of the project, of the system or of C++, by the name of its
# section in the notices. None: only headers that leave no code behind, loaded at run time or not at all.
LIBRARIES = {"sodium": "libsodium", "spdlog": "spdlog", "fmt": "fmt", "toml++": "toml++", "CLI": "CLI11",
             "nlohmann": "nlohmann-json", "hwloc": "hwloc", "boost": "Boost",
             "pmix": None}
SYSTEM = {"arpa", "asm", "linux", "net", "netinet", "netpacket", "sys"}
SYSTEM_HEADERS = set("""arm_acle.h arm_neon.h cpuid.h dirent.h dlfcn.h elf.h fcntl.h ifaddrs.h immintrin.h link.h netdb.h
    nmmintrin.h poll.h pthread.h pwd.h sched.h signal.h string.h strings.h termios.h time.h unistd.h xmmintrin.h""".split())


def shell_of(file):
    """The interpreter of a shell script, or None."""
    first = file.read_text().split("\n", 1)[0]
    shell = re.match(r"#! ?(?:/usr/bin/env |/bin/)(ba)?sh\b", first)
    return None if not shell else ("bash" if shell[1] else "sh")


class Syntax(unittest.TestCase):
    def test_shell(self):
        scripts = [file for file in RECIPES if shell_of(file)]
        self.assertGreaterEqual(len(scripts), 8)
        for script in scripts:
            with self.subTest(script.name):
                read = subprocess.run([shell_of(script), "-n", script], capture_output=True, text=True, check=False)
                self.assertEqual((read.returncode, read.stderr), (0, ""))
                self.assertIn("set -e", script.read_text() + "set -e" * (script.parent.name == "slurm"))

    def test_python(self):
        files = [f for f in RECIPES if f.suffix in (".py", ".eb")]
        self.assertGreaterEqual(len(files), 4)
        for file in files:
            ast.parse(file.read_text(), str(file))

    def test_yaml(self):
        import yaml
        documents = {file.name: list(yaml.safe_load_all(file.read_text())) for file in RECIPES if file.suffix == ".yaml"}
        self.assertEqual([d["kind"] for d in documents["daemonset.yaml"]], ["DaemonSet"])
        self.assertEqual([d["kind"] for d in documents["job.yaml"]], ["Service", "Job"])
        pod = documents["daemonset.yaml"][0]["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"][0]["hostPath"]["path"], "/opt/riffle")
        self.assertEqual(pod["initContainers"][0]["command"][2], pod["initContainers"][0]["volumeMounts"][0]["mountPath"])
        job = documents["job.yaml"][1]["spec"]["template"]["spec"]
        self.assertTrue(job["containers"][0]["command"][0].startswith(job["containers"][0]["volumeMounts"][0]["mountPath"]))

    @unittest.skipUnless(shutil.which("rpmspec"), "rpmspec is not installed")
    def test_spec(self):
        subprocess.run(["rpmspec", "-q", DEPLOY / "rpm/riffle.spec"], check=True, capture_output=True)

    @unittest.skipIf(sys.version_info < (3, 11), "tomllib came with Python 3.11")
    def test_pyproject(self):
        import tomllib
        project = tomllib.loads((DEPLOY / "wheel/pyproject.toml").read_text())
        for file in project["project"]["license-files"] + project["tool"]["scikit-build"]["wheel"]["packages"]:
            self.assertTrue((ROOT / file).exists(), file)
        # No links: a wheel follows them.
        self.assertEqual(project["tool"]["scikit-build"]["install"]["components"], ["plugin", "command"])


class Easyconfig(unittest.TestCase):
    def test_it_can_be_read(self):
        file, = DEPLOY.glob("easybuild/*.eb")
        values = {"SYSTEM": {"name": "system", "version": "system"}}
        exec(compile(file.read_text(), str(file), "exec"), values)  # as EasyBuild reads it
        self.assertEqual(file.name, f"{values['name']}-{VERSION}.eb")
        self.assertEqual(values["version"], VERSION)
        self.assertFalse({key for key in values if key.startswith("modextra")}, "modules are to set nothing")


class Spack(unittest.TestCase):
    """package.py with stand-ins for Spack's directives, which only note that they were called."""

    def setUp(self):
        self.called = called = []
        module = types.ModuleType("spack.package")
        for name in ("version", "variant", "depends_on", "conflicts", "license", "generator"):
            setattr(module, name, lambda *a, name=name, **k: called.append((name, *a)))
        module.CMakePackage = type("CMakePackage", (), {"define": staticmethod(lambda name, value: (name, value))})
        module.__all__ = [n for n in vars(module) if not n.startswith("_")]
        sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
        self.addCleanup(lambda: [sys.modules.pop(name) for name in ("spack", "spack.package")])
        self.values = {}
        exec(compile((DEPLOY / "spack/packages/riffle/package.py").read_text(), "package.py", "exec"), self.values)

    def test_version_and_options(self):
        self.assertIn(("version", VERSION), self.called)
        self.assertIn(f"riffle-{VERSION}.tar.gz", self.values["Riffle"].url)
        options = (ROOT / "CMakeLists.txt").read_text()
        for name, _ in self.values["Riffle"]().cmake_args():
            self.assertIn(name, options)


class Debian(unittest.TestCase):
    def test_every_folder_that_is_installed_is_in_a_package(self):
        """Else dpkg-buildpackage ends at dh_missing, after all has been built."""
        listed = {line for name in ("riffle.install", "riffle-bench.install", "not-installed")
                  for line in (DEPLOY / "debian" / name).read_text().splitlines()}
        rules = re.findall(r"install\(DIRECTORY ([^)]+?)\s+DESTINATION \$\{CMAKE_INSTALL_DATADIR\}/(\S+)",
                           (ROOT / "tools/CMakeLists.txt").read_text())
        installed = {f"usr/share/{folder}/{pathlib.Path(source).name}" for sources, folder in rules for source in sources.split()}
        self.assertIn("usr/share/riffle/profiles", installed)
        self.assertEqual(installed - listed, set())


class Versions(unittest.TestCase):
    def test_all_are_the_projects(self):
        for name, pattern in {
                "debian/changelog": r"\Ariffle \(([\d.]+)-\d+\) ", "rpm/riffle.spec": r"(?m)^Version: +(\S+)$",
                "easybuild/Riffle-%s.eb" % VERSION: r"(?m)^version = '(.*)'$", "kubernetes/daemonset.yaml": r"riffle:(\S+)",
                "spack/packages/riffle/package.py": r'version\("(.*)"\)', "spack/repo.yaml": r"riffle@(\S+)",
                "container/Containerfile": r"build/riffle-(\S+)"}.items():
            found = re.findall(pattern, (DEPLOY / name).read_text())
            self.assertTrue(found, f"{name}: no version")
            self.assertEqual(set(found), {VERSION}, name)
        spec = (DEPLOY / "rpm/riffle.spec").read_text()
        self.assertEqual(re.search(r"%changelog\n.* - ([\d.]+)-\d+\n", spec)[1], VERSION)
        self.assertIn("kVersion", (DEPLOY / "wheel/pyproject.toml").read_text())


class Notices(unittest.TestCase):
    TEXT = (DEPLOY / "THIRD-PARTY-NOTICES").read_text()

    def test_every_library_that_is_included_has_one(self):
        sections = {section.split(":", 1)[0]: section for section in self.TEXT.split("\n" + "-" * 80 + "\n")[1:]}
        wanted = set()
        for room in ("plugin", "topology", "sparse", "lab", "tools"):
            for file in (ROOT / room).rglob("*"):
                if file.suffix not in (".h", ".cc"):
                    continue
                for header in re.findall(r"(?m)^#include <([^>]+)>", file.read_text()):
                    top = header.split("/")[0].removesuffix(".h")
                    if header in SYSTEM_HEADERS or top in SYSTEM or "." not in header:
                        continue
                    self.assertIn(top, LIBRARIES, f"{file}: <{header}> is of no library whose notice is known")
                    wanted.add(LIBRARIES[top])
        self.assertEqual(wanted - {None}, set(sections))
        for name, section in sections.items():
            self.assertRegex(section, r"\nLicense: \S+", name)
            self.assertRegex(section, r"\nCopyright \(c\) \S+", name)
            self.assertIn("THE SOFTWARE IS PROVIDED" if "BSD" not in section else "Redistributions in binary form", section)

    def test_every_package_has_them(self):
        self.assertRegex((ROOT / "CMakeLists.txt").read_text(),
                         r"install\(FILES LICENSE deploy/THIRD-PARTY-NOTICES .* COMPONENT plugin\)")
        for name in ("debian/riffle.install", "rpm/riffle.spec", "wheel/pyproject.toml", "easybuild/Riffle-%s.eb" % VERSION):
            self.assertIn("THIRD-PARTY-NOTICES", (DEPLOY / name).read_text(), name)


class Jobs(unittest.TestCase):
    """Packages leave jobs alone: the variables of NCCL come from the riffle command, when a job asks it."""
    SETS = re.compile(r"""NCCL_\w*["']?\]?\s*=[^=]|(?:ENV|setenv|set -gx|name:)\s+["']?NCCL_|/etc/nccl\.conf|NCCL_CONF_FILE""")

    def test_the_pattern_finds_what_it_should(self):
        for line in ("export NCCL_ALGO=Ring", "ENV NCCL_ALGO Ring", "- name: NCCL_NET_PLUGIN", "echo x >> /etc/nccl.conf",
                     "setenv('NCCL_ALGO', 'Ring')".replace("('", " "), 'os.environ["NCCL_ALGO"] = "Ring"'):
            self.assertRegex(line, self.SETS)

    def test_no_recipe_sets_a_variable(self):
        for file in RECIPES:
            text = file.read_text()
            if file.suffix == ".py":  # without the words of its documentation
                text = re.sub(r'(?s)""".*?"""', "", text)
            self.assertNotRegex(text, self.SETS, file.name)


if __name__ == "__main__":
    unittest.main()
