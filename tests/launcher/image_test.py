#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/Dockerfile without an engine: the image has the libraries of the program, and its health check asks the server.
    image_test.py PROGRAM"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAST = (ROOT / "packaging/Dockerfile").read_text().rpartition("\nFROM debian:12-slim\n")[2]
ITS_OWN = {"libc6", "libgcc-s1", "libstdc++6"}  # of every debian:12-slim


def test_the_image_has_every_library(program):
    told = lambda *command: subprocess.run([*command, program], capture_output=True, text=True, check=True).stdout
    direct = re.findall(r"NEEDED.*\[(.+)\]", told("readelf", "-d"))
    paths = [path for name, path in re.findall(r"(\S+) => (/\S+)", told("ldd")) if name in direct]
    # /lib is /usr/lib, and a package may know its file by either name.
    both = [root + path.removeprefix("/usr") for path in paths for root in ("", "/usr")]
    owned = dict(line.split(": ")[::-1] for line in subprocess.run(["dpkg-query", "-S", *both], capture_output=True, text=True).stdout.splitlines())
    assert len(owned) == len(direct), (owned, direct)
    packages = {owner.split(":")[0] for owner in owned.values()} - ITS_OWN
    installed = set(re.search(r"--no-install-recommends ([^&]+) &&", LAST)[1].split())
    assert packages == installed, (packages, installed)


def test_the_health_check_tells(program):
    command = json.loads(re.search(r"^HEALTHCHECK .*?CMD (.+)$", LAST, re.M)[1])
    port = int(re.search(r"^EXPOSE (\d+)$", LAST, re.M)[1])
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready"
        server = subprocess.Popen([program, "serve", "--cpu", "--quiet", "--port", "0", "--ready-file", ready])
        try:
            until = time.monotonic() + 60
            while not ready.exists():
                assert server.poll() is None and time.monotonic() < until
                time.sleep(0.02)
            assert f"/{port} " in command[2]
            command[2] = command[2].replace(f"/{port} ", f"/{json.loads(ready.read_text())['port']} ")
            assert subprocess.run(command, timeout=30).returncode == 0
        finally:
            server.kill()
            server.wait()
        assert subprocess.run(command, timeout=30, stderr=subprocess.DEVNULL).returncode != 0


if __name__ == "__main__":
    if "VERSION_ID=\"12\"" not in pathlib.Path("/etc/os-release").read_text():
        print("[  SKIPPED ] the image is of Debian 12, whose libraries have other names than those here")
        sys.exit(77)
    test_the_image_has_every_library(sys.argv[1])
    test_the_health_check_tells(sys.argv[1])
