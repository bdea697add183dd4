#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./juno with stand-ins for the package manager and the build: what it asks, says, builds and runs."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALL = [p for line in (ROOT / "tools/packages").read_text().splitlines() if line.startswith("build:") for p in line.split()[1:]]


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        for name in ("juno", "tools/setup.sh", "tools/packages"):
            shutil.copy(ROOT / name, self.root / name)
        self.installed(ALL)
        self.stand_in("apt-get", f'echo "apt-get $*" >> {self.root}/calls')
        self.stand_in("sudo", 'exec "$@"')
        self.stand_in("cmake", "mkdir -p build/release && touch build/release/build.ninja")
        self.stand_in("ninja", """echo '[1/2] Building CXX object a.o'
printf '#!/bin/sh\\necho "[$*] in $(pwd)"; exit 7\\n' > build/release/juno; chmod +x build/release/juno""")

    def stand_in(self, name, script):
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def installed(self, packages):
        self.stand_in("dpkg-query", "".join(f"echo 'installed {p}'\n" for p in packages))

    def juno(self, *arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if k != "CI"} | variables
        environment["PATH"] = f"{self.root}/bin:{environment['PATH']}"
        return subprocess.run([self.root / "juno", *arguments], env=environment, cwd="/", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)

    def calls(self):
        return (self.root / "calls").read_text() if (self.root / "calls").exists() else ""

    def test_without_a_terminal_it_says_what_to_type_and_installs_nothing(self):
        self.installed(ALL[1:])
        run = self.juno("local", "--quiet")
        self.assertEqual((run.returncode, run.stdout, self.calls()), (1, "", ""))
        self.assertIn(f"not installed: {ALL[0]}\n", run.stderr)
        self.assertIn("Type: ./juno --yes local --quiet\n", run.stderr)

    def test_yes_or_ci_installs_just_what_is_missing(self):
        for arguments, variables in ((["--yes", "local"], {}), (["local"], {"CI": "true"})):
            self.installed(ALL[2:])
            (self.root / "calls").unlink(missing_ok=True)
            run = self.juno(*arguments, **variables)
            self.assertEqual(run.returncode, 7, run.stderr)
            self.assertEqual(self.calls().splitlines()[-1],
                             f"apt-get install -y --no-install-recommends {' '.join(sorted(ALL[:2]))}")

    def test_the_program_gets_the_arguments_and_alone_writes_to_stdout(self):
        run = self.juno("--yes", "local", "--prompt", "Who are you?", "--yes")
        self.assertEqual(run.stdout, "[local --prompt Who are you? --yes] in /\n")
        self.assertEqual(run.returncode, 7)
        self.assertIn("Built release", run.stderr)

    def test_nothing_to_build_is_silent(self):
        self.juno("local")
        self.stand_in("ninja", "echo '[0/2] Re-checking globbed directories...'; echo 'ninja: no work to do.'")
        self.assertEqual(self.juno("local").stderr, "")

    def test_a_failed_build_shows_what_failed_and_runs_nothing(self):
        self.juno("local")
        self.stand_in("ninja", "echo '[1/9] Building CXX object a.o'; echo 'FAILED: a.o'; echo 'a.cc:1: error'; exit 1")
        run = self.juno("local")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("FAILED: a.o\na.cc:1: error", run.stderr)
        self.assertNotIn("Built", run.stderr)

    def test_packages_that_cannot_be_had_end_it(self):
        self.installed([])
        self.stand_in("apt-get", "echo 'E: no network'; exit 100")
        run = self.juno("--yes", "local")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("E: no network", run.stderr)


if __name__ == "__main__":
    unittest.main()
