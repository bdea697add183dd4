# SPDX-License-Identifier: Apache-2.0
"""What the tests of `juno serve` share: the program as a server, requests to it, raw sockets."""
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

JUNO = os.environ.get("JUNO_PROGRAM", "build/dev/juno")
SANITIZER = os.environ.get("JUNO_SANITIZER")  # that JUNO is built with; its reports are the business of tests/tools/from_build
SOURCE = os.environ.get("JUNO_SOURCE_DIR", os.getcwd())
KEY = "sk-right-0123456789abcdef"


def environment(**extra):
    """Without the caller's JUNO_ variables."""
    return {k: v for k, v in os.environ.items() if not k.startswith("JUNO_")} | {"LC_ALL": "C.UTF-8"} | extra


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def error(self):
        """Its error object, which must be all that it holds."""
        value = self.json()
        assert list(value) == ["error"] and sorted(value["error"]) == ["code", "message", "param", "type"], value
        assert self.headers["Content-Type"] == "application/json" and self.headers["x-request-id"]
        return value["error"]


class Server:
    """juno serve on a free port, until the block ends."""

    def __init__(self, *args, tls=None, **env):
        self.args, self.env, self.tls = args, env, tls

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        ready = os.path.join(self.folder.name, "ready.json")
        self.log = os.path.join(self.folder.name, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([JUNO, "serve", "--cpu", "--port", "0", "--ready-file", ready, *self.args],
                                            stdout=log, stderr=log, env=environment(**self.env))
        until = time.monotonic() + 60
        while not os.path.exists(ready):
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.logged()}"
            assert time.monotonic() < until, self.logged()
            time.sleep(0.02)
        with open(ready) as f:
            ready = json.load(f)
        self.port, self.url = ready["port"], ready["url"]
        assert ready["pid"] == self.process.pid
        return self

    def __exit__(self, failed, *unused):
        if self.process.poll() is None and SANITIZER and not failed:
            self.end()  # a sanitizer looks then for what is left behind
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def logged(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def end(self, timeout=60):
        """SIGTERM -> the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def request(self, method, path, body=None, timeout=60, **headers):
        """headers: Host="x", Content_Type="y". A body that is no text or bytes is sent as JSON."""
        kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
        connection = kind("127.0.0.1", self.port, timeout=timeout, **({"context": self.tls} if self.tls else {}))
        sent = {k.replace("_", "-"): v for k, v in headers.items()}
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
            sent = {"Content-Type": "application/json"} | sent
        try:
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def ending(self):
        """Whether it has heard that it shall end."""
        return self.request("GET", "/health").status == 503

    def cancelled(self, count):
        """Waits until so many requests have ended because their clients left, and nothing runs or waits."""
        work = lambda: self.metric("juno_requests_running") + self.metric("juno_requests_waiting")
        until(lambda: self.metric("juno_requests_total", outcome="cancelled") == count and work() == 0, f"{count} were cancelled")

    def metric(self, name, **labels):
        """The sum of a metric over the rows that carry these labels."""
        total = 0.0
        for line in self.request("GET", "/metrics", Authorization=f"Bearer {KEY}").body.decode().splitlines():
            head, _, value = line.rpartition(" ")
            if head.split("{")[0] == name and all(f'{k}="{v}"' in head for k, v in labels.items()):
                total += float(value)
        return total


def refused(*args, **env):
    """-> (status, what it said) of a server that does not start."""
    p = subprocess.run([JUNO, "serve", "--cpu", "--port", "0", *args], capture_output=True, timeout=60, env=environment(**env))
    return p.returncode, p.stderr.decode()


def until(holds, why, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.01)


def read_all(s):
    data = b""
    while True:
        try:
            piece = s.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def certificates(folder):
    """A CA, and certificates of it for 127.0.0.1 and for a client; -> paths by name."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=folder)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test ca",
            "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("server", "client"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")
        with open(os.path.join(folder, "ext"), "w") as f:
            f.write("subjectAltName=IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "ext", "-out", f"{name}.pem")
    return {n: os.path.join(folder, n) for n in os.listdir(folder)}


def trusting(paths, client=False):
    context = ssl.create_default_context(cafile=paths["ca.pem"])
    if client:
        context.load_cert_chain(paths["client.pem"], paths["client.key"])
    return context


def main(tests):
    """Runs the named functions, or all."""
    wanted = sys.argv[1:] or [n for n, f in tests.items() if n.startswith("test_") and f.__module__ == "__main__"]
    for name in wanted:
        tests[name]()
        print(f"ok {name}", flush=True)
