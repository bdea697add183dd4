#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The web page in headless Chromium:  page_test.py FUNCTION

Each function is a ctest entry. What happens inside the browser stands in page_scenes.mjs.
"""
import fcntl
import filecmp
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from serving import JUNO, KEY, SOURCE, Server

BUILD = pathlib.Path(JUNO).parent / "web"  # where packages are installed
WEB = pathlib.Path(SOURCE) / "web"


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


def scene(name, *options, **env):
    """Plays a function of page_scenes.mjs before a fresh server."""
    needs("chromium")
    modules = installed()
    with Server(*options) as server:
        node = subprocess.run(["node", pathlib.Path(SOURCE) / "tests/server/page_scenes.mjs", name, server.url], timeout=150,
                              env=os.environ | {"PAGE_MODULES": str(modules.resolve())} | env)
    assert node.returncode == 0, f"{name}: see above"


def test_page_is_what_its_sources_make():
    web = installed()
    shutil.rmtree(web / "src", ignore_errors=True)
    shutil.copytree(WEB / "src", web / "src")
    shutil.copy(WEB / "build.js", web)
    subprocess.run(["npm", "run", "build"], cwd=web, check=True, stdout=subprocess.DEVNULL)
    names = sorted(path.name for path in (WEB / "dist").iterdir())
    assert names == sorted(path.name for path in (web / "dist").iterdir())
    _, differ, errors = filecmp.cmpfiles(WEB / "dist", web / "dist", names, shallow=False)
    assert not differ and not errors, f"cd web && npm ci && npm run build: {differ + errors} differ"


def test_page_a_reply_streams_and_stops():
    scene("streams_and_stops")


def test_page_markup_of_a_model_is_cleaned():
    scene("markup_is_cleaned")


def test_page_reasoning_and_calls_are_shown():
    scene("reasoning_and_calls")


def test_page_errors_are_told():
    scene("errors_are_told")


def test_page_a_keyboard_is_enough():
    scene("keyboard")


def test_page_settings_are_sent():
    scene("settings_are_sent")


def test_page_the_dashboard_draws():
    scene("dashboard")


def test_page_the_policy_stands():
    scene("a_breach_is_seen")


def test_page_every_file_comes_with_the_policy():
    policy = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "base-uri 'none'",
              "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types dompurify"]
    with Server() as server:
        for file in ("index.html", "app.js", "style.css", "icon.svg", "licences.txt"):
            path = "/" if file == "index.html" else f"/page/{file}"
            reply = server.request("GET", path)
            assert reply.status == 200 and reply.body == (WEB / "dist" / file).read_bytes(), path
            assert reply.headers["content-security-policy"].split("; ") == policy, path
            assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["referrer-policy"] == "no-referrer", path
            again = server.request("GET", path, If_None_Match=reply.headers["etag"])
            assert again.status == 304 and again.body == b"", path
            assert server.request("GET", path, Origin="http://evil.example").status == 403, path
            if file == "index.html":
                assert not re.search(rb"<style|style=|<script>|\son\w+=|https?:", reply.body), "something inline, or from elsewhere"
        assert server.request("GET", "/page/nothing").error()["code"] == "unknown_url"


def test_page_it_fits_a_phone():
    scene("phone")


def test_page_axe_finds_nothing():
    scene("accessible")


def test_page_a_key_opens_it():
    with tempfile.NamedTemporaryFile("w") as keys:
        keys.write(KEY)
        keys.flush()
        scene("key", "--api-key-file", keys.name, PAGE_KEY=KEY)


def main():
    try:
        globals()[sys.argv[1]]()
    except Skip as reason:
        print(f"SKIPPED: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
