#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that are clients of a server: juno chat, juno ps, and juno local with its API beside it."""
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request

from serving import JUNO, KEY, SOURCE, Server, certificates, main, until

sys.path.insert(0, os.path.join(SOURCE, "tests/cli"))
from juno import Terminal, run  # noqa: E402

GREEDY = ["--temperature", "0", "--max-tokens", "30"]


def test_chat_says_what_local_says():
    with Server() as server:
        local = run("local", *GREEDY, "--prompt", "Who are you?", "--quiet")
        chat = run("chat", "--url", server.url, *GREEDY, "--prompt", "Who are you?", "--quiet")
        assert local[0] == chat[0] == 0 and local[1] == chat[1], (local, chat)
        assert run("chat", *GREEDY, "--quiet", stdin=b"Who are you?\n", JUNO_URL=server.url + "/v1/")[1] == local[1]
        raw = run("chat", "--url", server.url, *GREEDY, "--no-chat", "--prompt", "Once upon a time", "--quiet")
        assert raw[0] == 0 and raw[1] == run("local", *GREEDY, "--no-chat", "--prompt", "Once upon a time", "--quiet")[1], raw
        status, out, err = run("chat", "--url", server.url, "--prompt", "Hi", "--max-tokens", "5")
        assert status == 0 and re.search(rb"\d tokens? in .* prompt \d+ tokens", err), err


def test_chat_at_a_terminal():
    with Server() as server:
        t = Terminal("chat", "--url", server.url, "--temperature", "0")
        t.expect(rb"juno-demo at http://127.0.0.1:\d+ .*> ")
        t.send(b"Who are you?\r")
        t.expect(rb"Juno.*\d+ tokens in .*> ")
        t.send(b"/set typical-p 0.5\r")
        t.expect(rb"typical-p: the server's API has no such field")
        t.send(b"/stats\r")
        t.expect(rb"replies +\d+ tokens")
        # Ctrl-C ends an answer, and the server lets go of it.
        t.send(b"/set temperature 2\r/set max-tokens 900\r/set logit-bias 2=-100\r")
        t.expect(rb"logit-bias.*> ")
        t.send(b"Tell me a very long story about the sea.\r")
        t.expect(rb"sea\.\r?\n.{20}")
        t.send(b"\x03")
        t.expect(rb"interrupted")
        server.cancelled(1)
        t.leave()


def test_clients_say_what_is_wrong():
    with Server() as server:
        for args, status, says in [
                (("chat", "--url", "127.0.0.1", "--prompt", "x"), 2, b"is not an address"),
                (("chat", "--url", "http://a@127.0.0.1", "--prompt", "x"), 2, b"is not an address"),
                (("chat", "--url", "http://127.0.0.1:9", "--prompt", "x"), 1, b"cannot reach"),
                (("chat", "--url", "http://[::1", "--prompt", "x"), 2, b"is not an address"),
                (("chat", "--url", server.url, "--model", "none", "--prompt", "x"), 2, b"it has juno-demo"),
                (("chat", "--url", server.url, "--temperature", "3", "--prompt", "x"), 2, b"temperature"),
                (("chat", "--url", server.url, "--prompt", "word " * 2000), 1, b"400"),
                (("ps", "--url", "http://127.0.0.1:9"), 1, b"cannot reach"),
                (("ps", "--url", "ftp://127.0.0.1"), 2, b"is not an address")]:
            got = run(*args)
            assert got[0] == status and says in got[2], (args[:3], got)


def test_ps_shows_what_runs():
    with Server() as server:
        assert run("chat", "--url", server.url, *GREEDY, "--prompt", "Hi", "--quiet")[0] == 0
        until(lambda: server.metric("juno_requests_total", outcome="finished") == 1, "the reply is whole, but the request has not ended")
        status, out, err = run("ps", "--url", server.url)
        assert status == 0 and err == b"", err
        head, columns, row = out.decode().splitlines()
        assert head.startswith(f"{server.url} · ok · juno") and "resident" in head, head
        shown = dict(zip(columns.split(), row.split()))
        assert shown["MODEL"] == "juno-demo" and shown["STATE"] == "loaded" and shown["CONTEXT"] == "1024", shown
        assert shown["RUNNING"] == shown["WAITING"] == shown["FAILED"] == "0" and shown["ENDED"] == "1", shown
        everything = json.loads(run("ps", "--url", server.url, "--json")[1])
        assert everything["status"] == 200 and everything["metrics"]['juno_new_tokens_total{model="juno-demo"}'] > 0


def test_a_key_is_shown_and_never_to_plain_http_elsewhere():
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        with open(keys, "w") as f:
            f.write(f"# ours\n{KEY}\n")
        with Server("--api-key-file", keys) as server:
            for args, env in [(("--key-file", keys), {}), ((), {"JUNO_API_KEY": KEY})]:
                assert run("ps", "--url", server.url, *args, **env)[0] == 0
                assert run("chat", "--url", server.url, *args, *GREEDY, "--prompt", "Hi", **env)[0] == 0
            assert b"401" in run("ps", "--url", server.url)[2]
            assert b"401" in run("chat", "--url", server.url, "--prompt", "x", JUNO_API_KEY="wrong")[2]
        status, _, err = run("chat", "--url", "http://example.invalid", "--key-file", keys, "--prompt", "x")
        assert status == 2 and b"unencrypted" in err and KEY.encode() not in err, err


def test_C70_no_redirect_is_followed():
    seen = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.server.server_port, self.headers["Authorization"]))
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{other.server_port}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *unused):
            pass

    first, other = (http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) for _ in range(2))
    for server in (first, other):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    status, _, err = run("ps", "--url", f"http://127.0.0.1:{first.server_port}", JUNO_API_KEY=KEY)
    assert status == 1 and b"307" in err, err
    assert seen == [(first.server_port, f"Bearer {KEY}")], seen


def test_strange_servers_are_named():
    answers = {"/v1/models": b'{"data": [{"id": "m"}]}', "/v1/chat/completions": b'data: {"error": 5}\n\n', "/health": b'{"models": [3], "status": 7}',
               "/metrics": b"x 1\n"}

    class Strange(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = answers[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *unused):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Strange)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    chat = ("chat", "--url", url, "--prompt", "x")
    for body, says in [(b'data: {"error": 5}\n\n', b"is not that of"), (b'data: {"choices": [{"delta": 3}]}\n\n', b"broke off"), (b"data: nothing\n\n", b"no JSON object"),
                       (b"", b"broke off"), (b'data: {"choices": {"a": 1}}\n\n', b"is not that of")]:
        answers["/v1/chat/completions"] = body
        status, _, err = run(*chat)
        assert status == 1 and says in err and b"json.exception" not in err, (body, status, err)
    status, _, err = run("ps", "--url", url)
    assert status == 1 and b"no server of ours" in err, err


def test_chat_over_tls_trusts_whom_it_is_told_to():
    with tempfile.TemporaryDirectory() as folder:
        paths = certificates(folder)
        with Server("--tls-cert", paths["server.pem"], "--tls-key", paths["server.key"], tls=True) as server:
            asked = ("chat", "--url", server.url, *GREEDY, "--prompt", "Hi")
            assert run(*asked, "--ca-file", paths["ca.pem"])[0] == 0
            status, _, err = run(*asked)
            assert status == 1 and b"no trust in" in err, err
            status, _, err = run(*(a.replace("127.0.0.1", "localhost") for a in asked), "--ca-file", paths["ca.pem"])
            assert status == 1 and b"no trust in" in err, err


def test_local_serves_beside_its_chat():
    t = Terminal("local", "--cpu", "--api-port", "0", "--temperature", "0")
    seen = t.expect(rb"juno-demo at http://127.0.0.1:\d+ .*> ")
    url = re.search(rb"http://127.0.0.1:\d+", seen)[0].decode()
    body = json.dumps({"model": "juno-demo", "messages": [{"role": "user", "content": "Who are you?"}], "temperature": 0, "max_completion_tokens": 30}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body, {"Content-Type": "application/json"}), timeout=60) as reply:
        said = json.load(reply)["choices"][0]["message"]["content"]
    assert "Juno" in said
    t.send(b"Who are you?\r")
    t.expect(rb"Juno.*cached.*> ")
    with urllib.request.urlopen(f"{url}/", timeout=60) as page:
        assert b"<title>Juno</title>" in page.read()
    t.leave()


def test_local_serves_without_a_terminal_until_it_is_ended():
    p = subprocess.Popen([JUNO, "local", "--cpu", "--api-port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = p.stderr.readline()
    url = re.search(rb"listening on (http://\S+);", line)[1].decode()
    with urllib.request.urlopen(f"{url}/health", timeout=60) as health:
        assert json.load(health)["status"] == "ok"
    p.send_signal(signal.SIGTERM)
    assert p.wait(60) == 0


def test_local_refuses_what_does_not_go_with_serving():
    for args, says in [(("--prompt", "x"), b"--prompt does not go"), (("--json",), b"--json does not go"), (("--api-host", "0.0.0.0"), b"0.0.0.0")]:
        status, _, err = run("local", "--api-port", "0", *args)
        assert status in (2, 78) and says in err, (args, status, err)


if __name__ == "__main__":
    main(globals())
