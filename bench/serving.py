# SPDX-License-Identifier: Apache-2.0
"""Servers as programs that are measured, and a client that costs little beside them: what it receives is kept as it came and
looked at when the reply is complete. Standard library only."""
import asyncio
import bisect
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
from typing import NamedTuple

from measuring import Failed

LAST = b"\r\n0\r\n\r\n"  # of a chunked body; no JSON text holds it
TOKEN = b"data: {"  # begins an event


class Reply(NamedTuple):
    status: int
    headers: dict  # names in small letters
    body: bytes  # without its framing
    begun: float  # when it was asked for
    stamps: list  # (when, events that came)

    def json(self):
        return json.loads(self.body)

    def events(self):
        return [json.loads(line[6:]) for line in self.body.split(b"\n") if line.startswith(TOKEN)]

    def whole(self):
        """A stream that ended as it should."""
        return self.status == 200 and self.body.endswith(b"data: [DONE]\n\n")

    def texts(self):
        """Of each event, in their order: what must be the same whoever else is served."""
        return [c["text"] for e in self.events() for c in e.get("choices", ())]

    def gaps(self):
        """Seconds between two events; those that came together are 0 apart."""
        out, before = [], None
        for when, count in self.stamps:
            if before is not None:
                out.append(when - before)
            out += [0.0] * (count - 1)
            before = when
        return out


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, on_events=None):
        self.on_events = on_events  # called with how many have come
        self.waiting = self.transport = None

    def connection_made(self, transport):
        self.transport = transport

    def ask(self, request):
        """-> a future of the Reply; a connection that breaks before its end gives a ConnectionError."""
        self.pieces, self.stamps, self.tail, self.head, self.length = [], [], b"", None, None
        self.begun = time.monotonic()
        self.waiting = asyncio.get_running_loop().create_future()
        if self.transport.is_closing():
            self.waiting.set_exception(ConnectionError("closed"))
        else:
            self.transport.write(request)
        return self.waiting

    def data_received(self, data):
        self.pieces.append(data)
        if self.head is None and not self._read_head():
            return
        events = data.count(TOKEN)
        if events:
            self.stamps.append((time.monotonic(), events))
            if self.on_events:
                self.on_events(events)
        if self.length is None:
            self.tail = (self.tail + data)[-len(LAST):]
            complete = self.tail == LAST
        else:
            complete = sum(map(len, self.pieces)) >= self.start + self.length
        if complete and self.waiting and not self.waiting.done():
            self.waiting.set_result(self._reply())

    def connection_lost(self, why):
        if self.waiting and not self.waiting.done():
            self.waiting.set_exception(ConnectionError(f"broken off after {sum(map(len, self.pieces))} bytes"))

    def close(self):
        self.transport.abort()

    def _read_head(self):
        data = b"".join(self.pieces)
        self.start = data.find(b"\r\n\r\n") + 4
        if self.start < 4:
            return False
        first, *lines = data[:self.start - 4].decode("latin-1").split("\r\n")
        self.head = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        self.status = int(first.split()[1])
        self.length = None if "chunked" in self.head.get("transfer-encoding", "") else int(self.head.get("content-length", 0))
        return True

    def _reply(self):
        body = b"".join(self.pieces)[self.start:]
        return Reply(self.status, self.head, body if self.length is not None else unchunked(body), self.begun, self.stamps)


def unchunked(body):
    out, at = [], 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        if size == 0:
            return b"".join(out)
        out.append(body[end + 2:end + 2 + size])
        at = end + 4 + size


def post(path, body, key=None):
    """-> the bytes of a request."""
    data = json.dumps(body).encode()
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{auth}Content-Length: {len(data)}\r\n\r\n".encode() + data


GET_HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def connect(port, on_events=None):
    _, client = await asyncio.get_running_loop().create_connection(lambda: Client(on_events), "127.0.0.1", port)
    return client


async def ask_once(port, request, on_events=None):
    client = await connect(port, on_events)
    try:
        return await client.ask(request)
    finally:
        client.close()


async def read_slowly(port, request, until):
    """A client that takes 64 bytes four times a second, and closes."""
    loop = asyncio.get_running_loop()
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.setblocking(False)
        await loop.sock_connect(s, ("127.0.0.1", port))
        await loop.sock_sendall(s, request)
        while time.monotonic() < until and await loop.sock_recv(s, 64):
            await asyncio.sleep(0.25)


async def vanish(port, request):
    """A client that closes when the first event has come."""
    loop = asyncio.get_running_loop()
    come = loop.create_future()
    client = await connect(port, lambda n: come.done() or come.set_result(n))
    asked = client.ask(request)
    asked.add_done_callback(lambda f: f.cancelled() or f.exception())
    await asyncio.wait((come, asked), return_when=asyncio.FIRST_COMPLETED)
    client.close()


def share(values, part):
    """The value that `part` of them do not exceed."""
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else None


def memory(pid):
    """-> bytes: resident, and of its own (anonymous, resident or swapped out)."""
    told = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    of = lambda name: int(told[name].split()[0]) * 1024
    return {"resident": of("VmRSS"), "own": of("RssAnon") + of("VmSwap")}


def waited(pid):
    """-> seconds that the process's threads ran, and waited for a processor."""
    ran = late = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        a, b, _ = (task / "schedstat").read_text().split()
        ran, late = ran + int(a), late + int(b)
    return {"ran": ran / 1e9, "waited": late / 1e9}


class Probe:
    """Asks /health from a process of its own until the block ends: `seconds` of each, and how late its own sleeps were, which
    is what the machine adds."""

    def __init__(self, port, every=0.05):
        self.command = ["python3", __file__, str(port), str(every)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGTERM)
        told = json.loads(self.process.communicate(timeout=30)[0])
        self.seconds, self.late, self.failed = told["seconds"], told["late"], told["failed"]

    def figures(self):
        ms = lambda values, part: round(1000 * share(values, part), 3) if values else None
        return {"asked": len(self.seconds), "failed": self.failed, **{f"p{round(100 * p)}_ms": ms(self.seconds, p) for p in (0.5, 0.9, 0.99, 1.0)},
                "sleep_late_p99_ms": ms(self.late, 0.99)}


def probe(port, every):
    seconds, late, failed, stop = [], [], 0, []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    s = None
    while not stop:
        due = time.monotonic() + every
        time.sleep(every)
        begun = time.monotonic()
        late.append(begun - due)
        try:
            s = s or socket.create_connection(("127.0.0.1", port), 10)
            s.sendall(GET_HEALTH)
            good = s.recv(65536).startswith(b"HTTP/1.1 200")
        except OSError:
            good = False
        seconds.append(time.monotonic() - begun)
        if not good:
            failed, s = failed + 1, None
    print(json.dumps({"seconds": seconds, "late": late, "failed": failed}))


class Server:
    """A server on a port of its own until the block ends. Requests go to its model `name`."""

    def __init__(self, command, name, title):
        self.command, self.name, self.title = command, name, title
        self.folder = self.port = None

    def __enter__(self):
        self.begin()
        return self

    def __exit__(self, *unused):
        self.end()
        self.folder.cleanup()
        self.folder = self.port = None

    def begin(self):
        """Starts it and waits until /health says 200."""
        self.folder = self.folder or tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "log")
        self.port = self.port or free_port()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("JUNO_", "LLAMA_"))}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.command, "--port", str(self.port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + 120
        while not self.healthy():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Failed(f"{self.title} does not answer: {self.logged()[-400:]}")
            time.sleep(0.01)

    def healthy(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as s:
                s.sendall(GET_HEALTH)
                return s.recv(4096).split()[1:2] == [b"200"]
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """As one ends a server, so that a sanitizer looks for what it leaves behind."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def health(self):
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(GET_HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            return json.loads(b"".join(iter(lambda: s.recv(65536), b"")).partition(b"\r\n\r\n")[2])

    def logged(self):
        return pathlib.Path(self.log).read_text(errors="replace")

    def metric(self, name, key=None, **labels):
        """The sum of a metric over the rows that carry these labels."""
        auth = f"Authorization: Bearer {key}\r\n" if key else ""
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{auth}\r\n".encode())
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        rows = (line.rpartition(" ") for line in text.splitlines() if line.split("{")[0].split(" ")[0] == name)
        return sum(float(value) for head, _, value in rows if all(f'{k}="{v}"' in head for k, v in labels.items()))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def juno(program, *args, model=None, gpu=False):
    """model: a GGUF file; without it, the demo model."""
    more = ["--model", f"m={model}"] if model else []
    return Server([program, "serve", "--gpu" if gpu else "--cpu", "--quiet", *more, *args], "m" if model else "juno-demo", "juno")


def llama(program, model, clients, context, threads, gpu=False, more=()):
    # At level 4 its log says how many layers lie on the GPU.
    device = ["-ngl", "99", "-fa", "on", "-lv", "4"] if gpu else ["-ngl", "0"]
    return Server([program, "-m", model, "-t", str(threads), "-tb", str(threads), "-np", str(clients), "-c", str(clients * context), *device, *more],
                  "m", "llama-server")


class Pace:
    """How many events have come, and when: for rates within a window."""

    def __init__(self):
        self.when, self.sums, self.sum = [], [], 0

    def __call__(self, count):
        self.sum += count
        self.when.append(time.monotonic())
        self.sums.append(self.sum)

    def within(self, start, end):
        before = bisect.bisect_left(self.when, start)
        after = bisect.bisect_left(self.when, end)
        at = lambda i: self.sums[i - 1] if i else 0
        return at(after) - at(before)


if __name__ == "__main__":
    import sys
    probe(int(sys.argv[1]), float(sys.argv[2]))
