#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server under strain: short forms of bench/serve_load. What depends on the machine's speed is measured there, not here. Under
a sanitizer, which is slow and keeps what was freed, neither memory nor shares are measured, and the forms are shorter still."""
import json
import os
import signal
import subprocess
import sys
import tempfile

from serving import JUNO, SANITIZER, SOURCE, environment, main


def verdicts(*args):
    """-> {what: value} of all that holds whatever the machine; fails where something does not."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.json")
        p = subprocess.Popen([sys.executable, os.path.join(SOURCE, "bench", "serve_load"), *args, "--juno", JUNO, "--out", out],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), start_new_session=True)
        try:
            said, _ = p.communicate(timeout=600 if SANITIZER else 170)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)  # its servers too
            raise
        assert os.path.exists(out), said
        with open(out) as f:
            (report,) = json.load(f)["runs"]
    measured = lambda name, v: v.get("timed") or SANITIZER and ("memory" in name or "shares" in name)
    told = {name: v for name, v in report["verdicts"].items() if not measured(name, v)}
    assert all(v["holds"] for v in told.values()), (told, report["figures"].get("errors"), report["figures"].get("wrong"))
    return {name: v["value"] for name, v in told.items()}


def test_C52_texts_are_the_same_in_a_crowd_that_has_too_little_room():
    told = verdicts("streams", "--streams", "60", "--sequences", "40", "--seconds", "6", "--tokens", "60", "--tenants", "3", "--differ", "8", "--juno-args", "--kv-positions 2048")
    assert told["sequences that gave way"] > 0


def test_shares_of_tenants_are_equal_however_much_they_ask():
    verdicts("shares", "--seconds", "6", "--tokens", "8", "--differ", "8")


def test_a_full_queue_says_when_to_come_again():
    verdicts("full", "--tokens", "20")


def test_C71_slow_and_vanished_readers_change_nothing_for_others():
    verdicts("readers", "--rounds", "1", "--seconds", "1", "--tokens", "20", "--differ", "8", "--juno-args", "--kv-positions 32768")


def test_C72_C74_short_requests_leave_nothing_behind():
    verdicts("short", "--requests", "400" if SANITIZER else "2000", "--juno-args", "--kv-positions 2048 --sequences 8")


def test_a_killed_server_comes_back_as_it_was():
    verdicts("kill", "--times", "1" if SANITIZER else "3")


if __name__ == "__main__":
    main(globals())
