#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, endless, rude or gone, and the server's own beginning and end."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import time

from serving import JUNO, Server, environment, main, read_all, refused, until

CHAT = {"model": "juno-demo", "messages": [{"role": "user", "content": "Tell me a story."}], "temperature": 0}
LONG = {"n": 16, "ignore_eos": True, "max_tokens": 900}  # still runs when all that a test does beside it is done


def post(path, body, extra=""):
    data = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{extra}\r\n".encode() + data


def seconds_of_health(server):
    begun = time.monotonic()
    assert server.request("GET", "/health").status == 200
    return time.monotonic() - begun


def test_C68_large_slow_and_endless_requests_do_not_hold_the_server():
    with Server("--max-body", "100000") as server:
        slow = server.socket()
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n")
        head = server.socket()
        head.sendall(b"GET /health HTTP/1.1\r\nHo")
        stop = threading.Event()

        def drip():
            while not stop.wait(1):
                try:
                    slow.sendall(b" ")
                    head.sendall(b"s")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        large = server.socket()
        try:
            large.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n")
        except ConnectionError:
            pass
        assert read_all(large).startswith(b"HTTP/1.1 431 ")
        endless = server.socket()
        endless.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 20:
                endless.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        except ConnectionError:
            pass
        assert time.monotonic() - begun < 10
        for size in (b"-1", b"ffffffffffffffff", b"80000000"):
            bad = server.socket()
            bad.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n{}\r\n")
            assert read_all(bad).split()[1] in (b"400", b"413"), size
        begun = time.monotonic()
        assert min(seconds_of_health(server) for _ in range(5)) < 1
        for late in (slow, head):
            assert read_all(late).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - begun < 30
        stop.set()
        thread.join()


def test_C35_health_gives_the_limit_of_one_request():
    with Server("--context", "512") as server:
        server.request("POST", "/v1/completions", {"model": "juno-demo", "prompt": "a", "max_tokens": 1})
        health = server.request("GET", "/health").json()
        assert health["status"] == "ok"
        assert [(m["name"], m["context"]) for m in health["models"]] == [("juno-demo", 512)]


def test_C71_work_ends_when_its_client_has_left():
    with Server("--sequences", "1") as server:
        first, second = server.socket(), server.socket()
        first.sendall(post("/v1/chat/completions", CHAT | LONG | {"stream": True}))
        begun = b""
        while b"data: " not in begun:
            piece = first.recv(65536)
            assert piece, begun
            begun += piece
        second.sendall(post("/v1/chat/completions", CHAT | LONG))
        counts = lambda: (server.metric("juno_requests_running"), server.metric("juno_requests_waiting"))
        until(lambda: counts() == (1, 1), "one runs and one waits")
        second.close()
        until(lambda: counts() == (1, 0), "nothing waits")
        first.close()
        server.cancelled(2)
        assert server.metric("juno_kv_pages", state="used") == 0
        assert server.metric("juno_http_requests_total", status="500") == 0, "a client that leaves is no fault of the server"
        until(lambda: "status=0 bytes=0" in server.logged(), "no reply is logged as none")


def test_a_graceful_end_lets_what_runs_finish():
    with Server("--grace", "120") as server:
        s = server.socket()
        s.sendall(post("/v1/chat/completions", CHAT | LONG | {"stream": True, "max_tokens": 200}))
        seen = s.recv(65536)
        idle = server.socket()
        server.process.terminate()
        until(server.ending, "it still says that all is well")
        late = server.request("GET", "/health")
        assert (late.status, late.error()["code"]) == (503, "shutting_down") and late.headers["Retry-After"]
        while b"\r\n0\r\n\r\n" not in seen:
            piece = s.recv(65536)
            assert piece, "broken off"
            seen += piece
        assert b"data: [DONE]" in seen
        s.close()
        assert server.process.wait(60) == 0
        idle.close()


def test_a_second_signal_ends_at_once():
    with Server("--grace", "120") as server:
        s = server.socket()
        s.sendall(post("/v1/chat/completions", CHAT | LONG | {"stream": True}))
        s.recv(65536)
        server.process.terminate()
        until(server.ending, "it still says that all is well")
        server.process.terminate()
        assert server.process.wait(60) == 130
        assert b"data: [DONE]" not in read_all(s)


def test_grace_has_an_end():
    with Server("--grace", "0.5") as server:
        s = server.socket()
        s.sendall(post("/v1/chat/completions", CHAT | LONG | {"stream": True}))
        s.recv(65536)
        assert server.end() == 0
        rest = read_all(s)
        assert b'"shutting_down"' in rest and b"data: [DONE]" not in rest, rest[-500:]


def test_options_come_from_flags_variables_and_a_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "juno.toml")

        def config(text):
            with open(path, "w") as f:
                f.write(text)
            return ("--config", path)

        with Server(*config('alias = ["a=juno-demo"]\nunknown-fields = "warn"\ncontext = 256\nquiet = true\n'), "--context", "512") as server:
            props = server.request("GET", "/props").json()
            assert props["unknown_fields"] == "warn"
            assert props["models"][0]["aliases"] == ["a"] and props["models"][0]["context"] == 512
            assert "GET /props" not in server.logged()
        with Server(*config("context = 256\n"), JUNO_CONTEXT="128") as server:
            assert server.request("GET", "/props").json()["models"][0]["context"] == 128
        for text, said in (("contxt = 1\n", "contxt"), ("\nmax-queue = 'x'\n", ":2:"), ("port = 1\nport = 2\n", ":2:"), ("quiet = 1\n", "quiet"),
                           ("cpu = true\n[host]\na = 1\n", "host"), ("config = 'other.toml'\n", "command line alone"), ("unknown-fields = 'drop'\n", "unknown-fields"), ("x = {\n", ":1:")):
            status, error = refused(*config(text))
            assert status == 78 and said in error and path in error, (text, status, error)
        for path, said in ((os.path.join(folder, "none.toml"), "No such file"), (folder, "Is a directory")):
            status, error = refused("--config", path)
            assert status == 66 and f"cannot read {path}: {said}" in error, (status, error)


def test_what_cannot_be_served_is_said_before_anything_is_loaded():
    assert refused("--model", "x")[0] == 2
    assert refused("--model", "x=/no/such/file.gguf")[0] == 66
    assert refused("--alias", "a=b")[0] == 2
    assert refused("--host", "no such host.invalid")[0] == 2
    status, said = refused("--api-key-file", "/dev/null")
    assert status == 78 and "holds no key" in said
    taken = socket.create_server(("127.0.0.1", 0))
    p = subprocess.run([JUNO, "serve", "--cpu", "--port", str(taken.getsockname()[1])], capture_output=True, timeout=60, env=environment())
    assert p.returncode == 2 and b"cannot listen" in p.stderr


if __name__ == "__main__":
    main(globals())
