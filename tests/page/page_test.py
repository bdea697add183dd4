#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The web page in headless Chromium:  page_test.py FUNCTION

Each function is a ctest entry. What happens inside the browser stands in scenes.mjs.
"""
import contextlib
import fcntl
import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

JUNO = os.environ.get("JUNO_PROGRAM", "build/dev/juno")
SOURCE = pathlib.Path(os.environ.get("JUNO_SOURCE_DIR", os.getcwd()))
BUILD = pathlib.Path(os.environ.get("JUNO_WEB_BUILD", "build/dev/web"))
WEB = SOURCE / "web"


class Skip(Exception):
    pass


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"there is no {program} here")


def installed():
    """A copy of web/ with the packages of its lock file, made once for each state of that file."""
    needs("node", "npm")
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (WEB / "package-lock.json").read_text()
        made = BUILD / "made-from"
        if not made.exists() or made.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(WEB / name, BUILD / name)
            npm = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=BUILD, capture_output=True, text=True)
            if npm.returncode:
                raise Skip(f"npm ci failed, is there a registry? {npm.stderr.strip().splitlines()[-1:]}")
            made.write_text(wanted)
    return BUILD


@contextlib.contextmanager
def server(*options):
    """juno serve with the demo model on a free port; yields its address."""
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready"
        env = {k: v for k, v in os.environ.items() if not k.startswith("JUNO_")}
        process = subprocess.Popen([JUNO, "serve", "--port", "0", "--ready-file", ready, "--cpu", *options], env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 60
            while not (ready.exists() and ready.read_text().strip()):
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < until, "the server is not ready after a minute"
                time.sleep(0.05)
            yield json.loads(ready.read_text())["url"]
        finally:
            process.terminate()
            process.communicate(timeout=60)


def scene(name, *options, **env):
    """Plays a function of scenes.mjs before a fresh server."""
    needs("chromium")
    modules = installed()
    with server(*options) as url:
        node = subprocess.run(["node", SOURCE / "tests/page/scenes.mjs", name, url], timeout=150,
                              env=os.environ | {"JUNO_WEB_BUILD": str(modules.resolve())} | env)
    assert node.returncode == 0, f"{name}: see above"


def test_the_bundle_is_what_its_sources_make():
    web = installed()
    shutil.rmtree(web / "src", ignore_errors=True)
    shutil.copytree(WEB / "src", web / "src")
    shutil.copy(WEB / "build.js", web)
    subprocess.run(["npm", "run", "build"], cwd=web, check=True, stdout=subprocess.DEVNULL)
    names = sorted(path.name for path in (WEB / "dist").iterdir())
    assert names == sorted(path.name for path in (web / "dist").iterdir())
    _, differ, errors = filecmp.cmpfiles(WEB / "dist", web / "dist", names, shallow=False)
    assert not differ and not errors, f"cd web && npm ci && npm run build: {differ + errors} differ"


def test_a_reply_streams_and_stops():
    scene("streams_and_stops")


def test_markup_of_a_model_is_cleaned():
    scene("markup_is_cleaned")


def test_reasoning_and_calls_are_shown():
    scene("reasoning_and_calls")


def test_errors_are_told():
    scene("errors_are_told")


def test_a_keyboard_is_enough():
    scene("keyboard")


def test_settings_are_sent():
    scene("settings_are_sent")


def test_the_dashboard_draws():
    scene("dashboard")


def test_the_policy_stands():
    scene("a_breach_is_seen")


def ask(url, **headers):
    """-> (status, headers, body)."""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as reply:
        return reply.code, reply.headers, reply.read()


def test_every_file_comes_with_the_policy():
    policy = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "base-uri 'none'",
              "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify"]
    with server() as url:
        for file in ("index.html", "app.js", "style.css", "icon.svg", "licences.txt"):
            path = "/" if file == "index.html" else f"/page/{file}"
            status, headers, body = ask(url + path)
            assert status == 200 and body == (WEB / "dist" / file).read_bytes(), path
            assert headers["content-security-policy"].split("; ") == policy, path
            assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer", path
            assert ask(url + path, **{"If-None-Match": headers["etag"]})[0] == 304, path
            assert ask(url + path, Origin="http://evil.example")[0] == 403, path
        assert ask(url + "/page/nothing")[0] == 404
        html = ask(url + "/")[2].decode()
        assert not re.search(r"<style|style=|<script>|\son\w+=|https?:", html), "something inline, or from elsewhere"


def test_it_fits_a_phone():
    scene("phone")


def test_axe_finds_nothing():
    scene("accessible")


def test_a_key_opens_it():
    with tempfile.NamedTemporaryFile("w") as keys:
        keys.write("right-key-for-the-page\n")
        keys.flush()
        scene("key", "--api-key-file", keys.name, PAGE_KEY="right-key-for-the-page")


def main():
    try:
        globals()[sys.argv[1]]()
    except Skip as reason:
        print(f"SKIPPED: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
