#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who gets in: keys, Host and Origin, addresses, certificates; and in which order a request is refused."""
import os
import subprocess
import tempfile

from serving import KEY, Server, certificates, main, refused, trusting

MARKER = "heliotrope-7151"  # of prompts: must be found nowhere
WRONG_KEYS = [{}, {"Authorization": "Bearer sk-wrong"}, {"Authorization": f"Token {KEY}"}, {"Authorization": KEY},
              {"Authorization": f"Basic {KEY}"}, {"Authorization": f"Bearer {KEY}x"}, {"x_api_key": "sk-wrong"}, {"Cookie": f"key={KEY}"}]
ROUTES = [("GET", "/"), ("GET", "/metrics"), ("GET", "/props"), ("GET", "/v1/models"), ("GET", "/v1/models/juno-demo"),
          ("POST", "/v1/chat/completions"), ("POST", "/v1/completions"), ("POST", "/v1/embeddings"), ("POST", "/v1/responses"),
          ("POST", "/v1/messages"), ("POST", "/v1/tokenize"), ("GET", "/v1/sessions"), ("DELETE", "/v1/sessions/a"),
          ("GET", "/openapi.json"), ("GET", "/no/such/route"), ("DELETE", "/v1/models"), ("OPTIONS", "/v1/models")]


def test_C59_every_route_but_health_asks_for_the_key():
    with Server(JUNO_API_KEY=KEY) as server:
        messages = set()
        for method, path in ROUTES:
            for wrong in WRONG_KEYS:
                reply = server.request(method, path, {"prompt": MARKER} if method == "POST" else None, **wrong)
                assert reply.status == 401, (method, path, wrong, reply.status)
                error = reply.json()["error"]
                if path == "/v1/messages":  # Anthropic's clients read another shape
                    assert error["type"] == "authentication_error"
                else:
                    error = reply.error()
                    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, "invalid_api_key")
                assert reply.headers["WWW-Authenticate"].startswith("Bearer")
                messages.add(error["message"])
            in_url = server.request(method, f"{path}?key={KEY}&api_key={KEY}")
            assert in_url.status == 401
            right = server.request(method, path, Authorization=f"Bearer {KEY}")
            assert right.status != 401, (method, path)
        assert len(messages) == 1
        assert server.request("GET", "/health").status == 200
        assert server.request("HEAD", "/health").status == 200
        assert server.request("GET", "/props", x_api_key=KEY).status == 200
        assert KEY not in server.logged() and MARKER not in server.logged()


def test_C59_no_prompt_stands_in_pages_or_logs():
    with Server() as server:
        body = {"model": "juno-demo", "max_tokens": 2, "user": MARKER, "messages": [{"role": "user", "content": MARKER}]}
        server.request("POST", "/v1/chat/completions", body)
        server.request("GET", f"/{MARKER}?{MARKER}")
        for path in ("/health", "/metrics", "/props", "/v1/sessions"):
            assert MARKER not in server.request("GET", path).body.decode()
        assert MARKER not in server.logged()


def test_C69_no_key_is_shown():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys")
        with open(path, "w") as f:
            f.write(f"# keys\n{KEY}\nsk-other-0123456789\n")
        with Server("--api-key-file", path, "--verbose", JUNO_API_KEY="sk-third-0123456789") as server:
            for key in (KEY, "sk-other-0123456789", "sk-third-0123456789"):
                assert server.request("GET", "/props", Authorization=f"Bearer {key}").status == 200
            pages = [server.request("GET", p, Authorization=f"Bearer {KEY}").body.decode() for p in ("/metrics", "/props", "/health")]
            shown = subprocess.run(["ps", "auxeww"], capture_output=True).stdout.decode(errors="replace")
            own = [line for line in shown.splitlines() if f" {server.process.pid} " in line]
            assert own
            with open(f"/proc/{server.process.pid}/environ", errors="replace") as f:
                pages.append(f.read())
            for text in (*own, *pages, server.logged()):
                for key in (KEY, "sk-other", "sk-third"):
                    assert key not in text, text


def test_C65_only_our_own_pages_may_ask():
    with Server() as server:
        own = f"127.0.0.1:{server.port}"
        for host in ("evil.example", f"evil.example:{server.port}", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"):
            for path in ("/health", "/props", "/v1/models"):
                reply = server.request("GET", path, Host=host)
                assert reply.status == 403 and reply.error()["code"] == "origin_not_allowed", (host, path)
        for origin in ("http://evil.example", "null", "http://localhost:1", "https://evil.example"):
            for method, path in (("GET", "/props"), ("POST", "/v1/chat/completions"), ("OPTIONS", "/v1/chat/completions")):
                reply = server.request(method, path, Origin=origin, Access_Control_Request_Method="POST")
                assert reply.status == 403 and reply.error()["code"] == "origin_not_allowed", (origin, path)
                assert not [h for h in reply.headers if h.lower().startswith("access-control")]
        for host in (own, f"localhost:{server.port}", f"[::1]:{server.port}"):
            assert server.request("GET", "/props", Host=host, Origin=f"http://{host}").status == 200


def test_C65_a_listed_origin_gets_its_preflight():
    with Server("--cors-origin", "https://app.example", JUNO_API_KEY=KEY) as server:
        reply = server.request("OPTIONS", "/v1/chat/completions", Origin="https://app.example",
                               Access_Control_Request_Method="POST", Access_Control_Request_Headers="authorization, content-type")
        assert reply.status == 204 and reply.body == b""
        assert reply.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "POST" in reply.headers["Access-Control-Allow-Methods"]
        assert "authorization" in reply.headers["Access-Control-Allow-Headers"]
        reply = server.request("GET", "/props", Origin="https://app.example")
        assert reply.status == 401 and reply.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert server.request("GET", "/props", Origin="https://other.example", Authorization=f"Bearer {KEY}").status == 403


def test_C66_others_get_in_with_key_and_tls_alone():
    for host in ("0.0.0.0", "::", "10.1.2.3"):
        status, said = refused("--host", host)
        assert status == 78 and "--api-key-file" in said, (host, status, said)
        status, said = refused("--host", host, JUNO_API_KEY=KEY)
        assert status == 78 and "--tls-cert" in said and "--insecure-http" in said, (host, status, said)
        status, said = refused("--host", host, "--insecure-http")
        assert status == 78 and "--api-key-file" in said
    with Server("--host", "0.0.0.0", "--insecure-http", JUNO_API_KEY=KEY) as server:
        assert server.request("GET", "/props", Host="llm.example", Authorization=f"Bearer {KEY}").status == 200
        assert server.request("GET", "/props").status == 401
        assert server.request("GET", "/props", Origin="http://evil.example", Authorization=f"Bearer {KEY}").status == 403
    with tempfile.TemporaryDirectory() as folder:
        c = certificates(folder)
        with Server("--host", "0.0.0.0", "--tls-cert", c["server.pem"], "--tls-key", c["server.key"], tls=trusting(c),
                    JUNO_API_KEY=KEY) as server:
            assert server.url.startswith("https://")
            assert server.request("GET", "/props", Authorization=f"Bearer {KEY}").status == 200


def test_clients_show_their_certificate_where_that_is_asked():
    import ssl
    with tempfile.TemporaryDirectory() as folder:
        c = certificates(folder)
        args = ("--tls-cert", c["server.pem"], "--tls-key", c["server.key"])
        with Server(*args, "--tls-client-ca", c["ca.pem"], tls=trusting(c, client=True)) as server:
            for _ in range(3):
                assert server.request("GET", "/health").status == 200
            server.tls = trusting(c)
            try:
                server.request("GET", "/health")
                raise AssertionError("served without a certificate")
            except (ssl.SSLError, ConnectionError):
                pass
            server.tls = trusting(c, client=True)
            server.tls.maximum_version = ssl.TLSVersion.TLSv1_2
            assert server.request("GET", "/health").status == 200
        status, said = refused("--tls-cert", c["server.pem"])
        assert status == 78 and "--tls-key" in said
        status, said = refused("--tls-cert", c["server.pem"], "--tls-key", c["client.key"])
        assert status == 78 and "--tls-key" in said, said
        status, said = refused("--tls-cert", "/no/such.pem", "--tls-key", c["client.key"])
        assert status == 78 and "/no/such.pem" in said, said


def test_a_request_is_refused_for_the_first_reason_of_the_contract():
    large = "x" * 3000
    with Server("--max-body", "2000", JUNO_API_KEY=KEY) as server:
        key = {"Authorization": f"Bearer {KEY}"}
        for path, method, headers, expected in (
                ("/nowhere", "POST", {"Content_Type": "text/plain"}, (401, "invalid_api_key")),
                ("/nowhere", "POST", {"Content_Type": "text/plain"} | key, (404, "unknown_url")),
                ("/health", "PUT", {"Content_Type": "text/plain"} | key, (405, "method_not_allowed")),
                ("/v1/sessions/a", "DELETE", {"Content_Type": "text/plain"} | key, (415, "unsupported_media_type")),
                ("/v1/sessions/a", "DELETE", {"Content_Encoding": "gzip"} | key, (415, "unsupported_media_type")),
                ("/v1/sessions/a", "DELETE", {"Content_Type": "application/json; charset=latin1"} | key, (415, "unsupported_media_type")),
                ("/v1/sessions/a", "DELETE", {"Content_Type": "application/json; charset=UTF-8"} | key, (413, "request_too_large")),
                ("/v1/sessions/a", "DELETE", {} | key, (413, "request_too_large"))):
            reply = server.request(method, path, large, **headers)
            assert (reply.status, reply.error()["code"]) == expected, (method, path, reply.status, reply.body)
        reply = server.request("PUT", "/health", **key)
        assert reply.headers["Allow"] == "GET, HEAD"
        reply = server.request("DELETE", "/v1/sessions/a", **key)
        assert (reply.status, reply.error()["code"]) == (404, "session_not_found")


def test_C64_no_name_of_a_request_becomes_a_path():
    with Server() as server:
        messages = set()
        for name in ("../models/juno-demo-23m.Q8_0.gguf", "/etc/passwd", "/no/such/file", "/dev/null", "..", "%2e%2e%2fx", "a\0b"):
            reply = server.request("POST", "/v1/completions", {"model": name, "prompt": "a", "max_tokens": 1})
            error = reply.error()
            assert (reply.status, error["code"], error["param"]) == (404, "model_not_found", "model"), (name, reply.body)
            messages.add(error["message"].replace(name, "NAME"))
        assert len(messages) == 1, messages  # nothing tells whether a file is there
        for path in ("/v1/models/..%2f..%2fetc%2fpasswd", "/v1/models/%252e%252e%252fetc", "/v1/models//etc/passwd", "/page/..%2fserver.cc",
                     "/page/../etc/passwd", "/../etc/passwd", "/%00", "/%zz", "/v1/sessions/..%2fx"):
            assert server.request("GET", path).status in (404, 405), path


if __name__ == "__main__":
    main(globals())
