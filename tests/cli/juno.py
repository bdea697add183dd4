# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: the program, a run of it, a terminal with it inside."""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

JUNO = os.environ.get("JUNO_PROGRAM", "build/dev/juno")
SOURCE = os.environ.get("JUNO_SOURCE_DIR", os.getcwd())
GREEDY = ["--temperature", "0"]


def environment(state, **extra):
    """Without the caller's JUNO_ variables, with a state folder of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JUNO_")}
    return kept | {"XDG_STATE_HOME": state, "TERM": "xterm", "LC_ALL": "C.UTF-8"} | extra


def run(*args, stdin=b"", timeout=120, **env):
    """-> (status, stdout, stderr), bytes."""
    with tempfile.TemporaryDirectory() as state:
        p = subprocess.run([JUNO, *args], input=stdin, capture_output=True, timeout=timeout, env=environment(state, **env))
        return p.returncode, p.stdout, p.stderr


class Terminal:
    """The program under a pseudo-terminal."""

    def __init__(self, *args, state=None, columns=100, lines=40):
        self.state = state or tempfile.mkdtemp()
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(JUNO, [JUNO, *args], environment(self.state, COLUMNS=str(columns), LINES=str(lines)))

    def send(self, data):
        os.write(self.fd, data if isinstance(data, bytes) else data.encode())

    def read(self, timeout):
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data
        return bool(data)

    def expect(self, pattern, timeout=60):
        """Waits for a match in what came since the last match; returns what came up to its end."""
        until = time.monotonic() + timeout
        while True:
            found = re.search(pattern, self.seen, re.DOTALL)
            if found:
                before, self.seen = self.seen[:found.end()], self.seen[found.end():]
                return before
            left = until - time.monotonic()
            if left <= 0 or (not self.read(left) and time.monotonic() < until):
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")

    def quiet(self, seconds):
        """Collects until nothing comes for so long."""
        while self.read(seconds):
            pass
        seen, self.seen = self.seen, b""
        return seen

    def leave(self):
        """Ctrl-D at the prompt, until it is heard: while lines are read by the terminal itself it is no key."""
        for _ in range(30):
            self.quiet(0.3)
            self.send(b"\x04")
            status = self.ended(2)
            if status is not None:
                break
        assert (self.status(0) if status is None else status) == 0

    def ended(self, timeout):
        """The exit status, -signal after one; None while it runs."""
        until = time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= until:
                return None
            self.read(0.05)

    def status(self, timeout=60):
        """The exit status."""
        status = self.ended(timeout)
        if status is not None:
            return status
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"still running; last seen {self.seen[-500:]!r}")


def test_model(name):
    """A model that is too large for the repository; the test is skipped when it is not there."""
    for folder in (os.environ.get("JUNO_TEST_MODELS"), os.path.join(SOURCE, "../shared/data/models")):
        if folder and os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    print(f"[  SKIPPED ] {name} is not in JUNO_TEST_MODELS")
    sys.exit(77)


def main(tests):
    """Runs the named functions, or all: `commands_test.py test_help`."""
    wanted = sys.argv[1:] or [n for n, f in tests.items() if n.startswith("test_") and f.__module__ == "__main__"]
    for name in wanted:
        tests[name]()
        print(f"ok {name}", flush=True)
