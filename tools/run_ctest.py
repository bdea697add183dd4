#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest and says why tests did not run, before ctest's own closing lines:  run_ctest.py BUILD_DIR [CTEST ARGUMENT...]

A test that cannot run says "[  SKIPPED ] reason" (scripts) or GTEST_SKIP() << "reason"; a reason is demanded.
"""
import collections
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

CLOSING = re.compile(r"\d+% tests passed|No tests were found")


def reasons(report):
    """The tests of a JUnit report that did not run, grouped by the reason they gave: {reason: [name]}."""
    groups = collections.defaultdict(list)
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.get("status") in ("run", "fail"):
            continue
        output = case.findtext("system-out") or ""
        found = re.search(r"Skipped\n(.+)", output) or re.search(r"\[  SKIPPED \] (?!\S+\.\S+ \(\d+ ms\))(.+)", output)
        why = found[1].strip() if found else "no reason given: " + (case.get("status") or "")
        groups[why].append(case.get("name"))
    return groups


def announce(groups):
    for why, names in sorted(groups.items()):
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        print(f"Not run: {len(names)} – {why} ({shown})")


def main():
    build = pathlib.Path(sys.argv[1])
    report = build / "Testing" / "report.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--output-on-failure", "--no-tests=error", "--output-junit", str(report.resolve()),
               "--test-output-size-passed", "100000", *sys.argv[2:]]
    closing = []
    with subprocess.Popen(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as ctest:
        for line in ctest.stdout:
            if closing or CLOSING.search(line):
                closing.append(line)
            else:
                print(line, end="", flush=True)
    if report.exists():
        announce(reasons(report))
    print("".join(closing), end="", flush=True)
    return ctest.returncode


if __name__ == "__main__":
    sys.exit(main())
