# SPDX-License-Identifier: Apache-2.0
"""What the measuring programs share: running a program, and telling figures with their spread. Standard library only."""
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

BUSY = 0.5  # a load average above it is worth a warning


class Failed(Exception):
    """A program did not do what it was run for; the text is for the user."""


class Ran(NamedTuple):
    said: str  # on stdout
    complained: str  # on stderr
    seconds: float
    peak: int  # bytes in memory at most, mapped pages of files included


def run(command):
    """Runs a program that must succeed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as e:
            raise Failed(f"cannot run {command[0]}: {e.strerror}")
        _, status, usage = os.wait4(child.pid, 0)  # the only wait that tells the child's memory
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        said, complained = out.read(), err.read()
    if child.returncode != 0:
        raise Failed(f"{shlex.join(command)} ended with {child.returncode}: {complained.strip()[-400:] or 'it said nothing'}")
    return Ran(said, complained, seconds, usage.ru_maxrss * 1024)


def parsed(command, text):
    try:
        return json.loads(text)
    except ValueError:
        raise Failed(f"{shlex.join(command)} printed no JSON but {text[:200]!r}")


def plain(command):
    """-> one line, in which files have their names only: where they lie is nobody's business."""
    return shlex.join(os.path.basename(word) if os.path.isfile(word) else word for word in command)


def warm(path):
    """Reads a file, so that no program is the one that waits for the disk."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


@contextlib.contextmanager
def alone(lock):
    """Holds a lock file meanwhile, if there is one: programs that measure on one machine take turns."""
    if not lock:
        yield
        return
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def series(samples):
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples), "samples": samples}


def ratios(ours, theirs):
    """Of each round's two, so that what the machine does meanwhile meets both."""
    return series([a / b for a, b in zip(ours, theirs)])


def figure(x):
    return f"{x:.4g}" if abs(x) < 10000 else f"{x:.0f}"


def spread(s):
    return f"{figure(s['median'])} ({figure(s['min'])}–{figure(s['max'])})"


def table(rows):
    """Rows of words, names first -> Markdown."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def commit(built_from=None):
    """Of the repository that this file lies in, or the one named."""
    if built_from:
        return {"commit": built_from, "dirty": False}
    here = pathlib.Path(__file__).resolve().parent
    try:
        git = lambda *args: subprocess.run(["git", "-C", here, *args], capture_output=True, text=True, check=True).stdout.strip()
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def cpu():
    """-> the processor's name as the system tells it; a virtual machine's says little, the numbers say more."""
    try:
        with open("/proc/cpuinfo") as file:
            told = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", file.read().split("\n\n")[0], re.M))
        return f"{told['model name']} (family {told['cpu family']}, model {told['model']}, stepping {told['stepping']})"
    except (OSError, KeyError):
        return platform.machine()


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def load():
    """-> the load average; says so when others are at work."""
    average = os.getloadavg()
    if average[0] > BUSY:
        print(f"warning: the load average is {average[0]:.2f}: others are at work on this machine", file=sys.stderr)
    return average


def save(report, path):
    if path:
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_text(json.dumps(report, indent=1) + "\n")
