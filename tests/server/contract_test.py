#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server promises beside the fields of its routes: headers, sessions, figures, the watchdog, odd HTTP, the shape of refusals."""
import hashlib
import json
import re
import threading
import time

from openai_test import MODEL, ask, ask_models, chat, events
from serving import KEY, Server, main, read_all, until

ENDLESS = {"stream": True, "ignore_eos": True, "max_completion_tokens": 900}


def open_chat(server, **fields):
    """A connection on which a chat has been asked for."""
    body = json.dumps(chat(**fields)).encode()
    s = server.socket()
    s.settimeout(120)
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    return s


def read_tokens(s, count):
    """What has come once so many events with text have."""
    raw = b""
    while raw.count(b'"delta":{"content"') < count:
        piece = s.recv(65536)
        assert piece, raw[-500:]
        raw += piece
    return raw


def idle(server):
    return server.metric("juno_requests_running") + server.metric("juno_requests_waiting") + server.metric("juno_kv_pages", state="used") == 0


def test_C29_C71_a_stream_ends_early_at_every_phase():
    with Server("--grace", "0", "--sequences", "2") as server:
        for count, tokens in enumerate((0, 1, 50)):
            s = open_chat(server, **ENDLESS)
            read_tokens(s, tokens)
            s.close()
            until(lambda: idle(server) and server.metric("juno_requests_total", outcome="cancelled") == count + 1, f"cancelled after {tokens} tokens")
        one, fifty = open_chat(server, **ENDLESS), open_chat(server, **ENDLESS)
        until(lambda: server.metric("juno_requests_running") == 2, "two run")
        none = open_chat(server, **ENDLESS)
        until(lambda: server.metric("juno_requests_waiting") == 1, "one waits")
        seen = [read_tokens(fifty, 50), read_tokens(one, 1)]
        server.process.terminate()
        before = read_all(none)
        head, _, body = before.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ") and b"application/json" in head and b"Retry-After: " in head, before
        assert json.loads(body)["error"]["code"] == "shutting_down"
        for s, raw in zip((fifty, one), seen):
            raw += read_all(s)
            assert raw.startswith(b"HTTP/1.1 200 ") and b"[DONE]" not in raw
            told = re.findall(rb"data: (.*)\n\n", raw)
            assert [b'"error"' in t for t in told] == [False] * (len(told) - 1) + [True], told[-2:]
            assert json.loads(told[-1]) == {"error": json.loads(told[-1])["error"]} and json.loads(told[-1])["error"]["code"] == "shutting_down"
        assert server.process.wait(60) == 0


def test_C34_all_routes_tell_an_overflow_in_one_sentence():
    long = "word " * 3000
    turns = [{"role": "user", "content": long}]
    sentence = re.compile(r"the prompt has (\d+) tokens, the context takes (\d+)")
    with Server("--embeddings") as server:
        limit = server.request("GET", "/health").json()["models"][0]["context"]
        for path, param, fields in (("/v1/chat/completions", "messages", {"messages": turns}), ("/v1/completions", "prompt", {"prompt": long}),
                                    ("/v1/responses", "input", {"input": long}), ("/v1/embeddings", "input", {"input": long}),
                                    ("/v1/messages", None, {"messages": turns, "max_tokens": 4}), ("/v1/messages/count_tokens", None, {"messages": turns}),
                                    ("/v1/inference", "prompt", {"prompt": long}), ("/v1/inference/stream", "messages", {"messages": turns})):
            takes_stream = path.rpartition("/")[2] in ("completions", "responses", "messages")
            for streamed in ((False, True) if takes_stream else (None,)):
                reply = server.request("POST", path, {"model": MODEL} | fields | ({} if streamed is None else {"stream": streamed}))
                error = reply.json()["error"]
                assert reply.status == 400 and error.get("param") == param and error.get("code", "context_length_exceeded") == "context_length_exceeded", (path, error)
                tokens, takes = (int(x) for x in sentence.search(error["message"]).groups())
                assert takes == limit < tokens, error
                assert (reply.headers["x-juno-prompt-tokens"], reply.headers["x-juno-context-length"]) == (str(tokens), str(limit)), path


def test_C35_the_limit_that_is_told_is_what_each_request_gets():
    with Server("--context", "192", "--sequences", "4") as server:
        ask(server, "/v1/completions", prompt="a", max_tokens=1)
        limit = ask_models(server)
        assert limit == 192 == server.request("GET", "/health").json()["models"][0]["context"]
        replies = [None] * 4

        def fill(i):
            replies[i] = ask(server, "/v1/completions", prompt=[10 + i] * 150, max_tokens=limit, ignore_eos=True, seed=i)

        threads = [threading.Thread(target=fill, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for reply in replies:
            assert reply["usage"]["total_tokens"] == limit and reply["choices"][0]["finish_reason"] == "length", reply
        assert server.request("POST", "/v1/completions", {"model": MODEL, "prompt": [7] * (limit + 1)}).error()["code"] == "context_length_exceeded"


def test_C72_the_watchdog_tells_health():
    with Server("--watchdog", "0.001", "--sequences", "1") as server:
        ask(server)
        until(lambda: server.request("GET", "/health").status == 200, "healthy when nothing is left to do")
        s = open_chat(server, **ENDLESS | {"messages": [{"role": "user", "content": "word " * 800}]})
        stalled = []

        def seen():  # a step takes longer than the millisecond that this watchdog grants
            reply = server.request("GET", "/health")
            if reply.status == 503:
                stalled.append(reply)
            return stalled

        until(seen, "health never told of it")
        error = stalled[0].error()
        assert (error["type"], error["code"]) == ("server_error", "server_overloaded") and MODEL in error["message"] and stalled[0].headers["Retry-After"]
        s.close()
        until(lambda: idle(server) and server.request("GET", "/health").status == 200, "idle and healthy")
        assert server.metric("juno_stalled_seconds") == 0


def test_C73_a_stream_that_waits_begins_all_the_same():
    with Server("--sequences", "1") as server:
        first = open_chat(server, n=16, **ENDLESS)
        read_tokens(first, 1)
        second = open_chat(server, **ENDLESS)
        assert second.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert server.metric("juno_requests_waiting") == 1, "it was answered because it ran"
        first.close()
        read_tokens(second, 1)
        second.close()
        until(lambda: idle(server), "idle")


def test_sessions_are_listed_to_their_owner():
    keys = ("sk-first-0123456789", "sk-other-0123456789")
    with Server(JUNO_API_KEY=",".join(keys)) as server:
        def listed(key):
            reply = server.request("GET", "/v1/sessions", Authorization=f"Bearer {key}").json()
            assert list(reply) == ["object", "data"] and reply["object"] == "list"
            return {s["id"]: s for s in reply["data"]}
        assert listed(keys[0]) == {}
        for key, name in ((keys[0], "a"), (keys[0], "b"), (keys[1], "c")):
            usage = server.request("POST", "/v1/chat/completions", chat(session_id=name), Authorization=f"Bearer {key}").json()["usage"]
        assert sorted(listed(keys[0])) == ["a", "b"] and sorted(listed(keys[1])) == ["c"]
        session = listed(keys[1])["c"]
        assert list(session) == ["object", "id", "model", "tokens", "idle_seconds"] and session["model"] == MODEL
        # The last token of a reply is not computed.
        assert session["tokens"] == usage["total_tokens"] - 1 and 0 <= session["idle_seconds"] < 600, (session, usage)
        assert server.request("DELETE", "/v1/sessions/a", Authorization=f"Bearer {keys[1]}").status == 404
        assert server.request("DELETE", "/v1/sessions/a", Authorization=f"Bearer {keys[0]}").status == 200
        assert sorted(listed(keys[0])) == ["b"]


def test_every_promised_header_and_figure_is_there():
    with Server("--max-queue", "1", "--sequences", "1", "--unknown-fields", "warn") as server:
        assert server.request("GET", "/health", x_request_id="mine-7").headers["x-request-id"] == "mine-7"
        for strange in ("", "x" * 129, "a b"):
            assert server.request("GET", "/health", x_request_id=strange).headers["x-request-id"] not in ("", strange)
        for reply in (server.request("POST", "/v1/chat/completions", chat(colour=1)), server.request("GET", "/nowhere"),
                      server.request("POST", "/v1/chat/completions", chat(stream=True))):
            assert float(reply.headers["X-Juno-Latency-Ms"]) >= 0 and reply.headers["x-request-id"]
        server.request("POST", "/v1/chat/completions", chat(user="ada", safety_identifier="eve"))
        hashes = ",".join(hashlib.sha256(name).hexdigest()[:32] for name in (b"ada", b"eve"))
        until(lambda: f" user={hashes}" in server.logged(), "both stand in the log, hashed")
        first = open_chat(server, n=16, **ENDLESS)
        read_tokens(first, 1)
        until(lambda: server.metric("juno_requests_running") == 1, "one runs")
        second = open_chat(server, **ENDLESS)
        until(lambda: server.metric("juno_requests_waiting") == 1, "one waits")
        for streamed in (False, True):
            full = server.request("POST", "/v1/chat/completions", chat(stream=streamed))
            assert (full.status, full.error()["type"], full.error()["code"]) == (429, "rate_limit_error", "rate_limit_exceeded")
            assert int(full.headers["Retry-After"]) > 0
        full = server.request("POST", "/v1/embeddings", {"model": MODEL, "input": "a"})
        assert full.status in (400, 429), full.body  # this model gives no embeddings
        full = server.request("POST", "/v1/messages", {"model": MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": "a"}]})
        assert full.status == 429 and full.json()["error"]["type"] == "rate_limit_error" and full.headers["Retry-After"]
        first.close(), second.close()
        page = server.request("GET", "/metrics").body.decode()
        for name in ("juno_first_token_seconds_bucket", "juno_inter_token_seconds_bucket", "juno_queue_seconds_bucket", "juno_http_request_seconds_bucket",
                     "juno_http_requests_total", "juno_requests_waiting", "juno_requests_running", "juno_kv_pages", "juno_sessions",
                     "juno_stalled_seconds", "juno_requests_total", "juno_prompt_tokens_total", "juno_cached_tokens_total", "juno_new_tokens_total",
                     "juno_preempted_total", "juno_drafted_tokens_total", "juno_accepted_tokens_total", "juno_operations_total",
                     "juno_operation_weight_bytes_total", "juno_declined_unlisted_total", "juno_submitted_total", "juno_ignored_fields_total",
                     "juno_connections", "process_resident_memory_bytes"):
            assert re.search(rf"^{name}[ {{]", page, re.M), name
        assert server.metric("juno_ignored_fields_total") == 1 and server.metric("juno_operations_total") > 0
        props = server.request("GET", "/props").json()
        assert (props["unknown_fields"], props["models"][0]["name"], props["models"][0]["chat"]) == ("warn", MODEL, True)
        assert props["models"][0]["context"] == ask_models(server)


def test_messages_are_refused_as_anthropics_clients_read_it():
    large = json.dumps({"model": "x" * 3000})
    with Server("--max-body", "2000", JUNO_API_KEY=KEY) as server:
        for method, path, body, headers, status, kind in (
                ("POST", "/v1/messages", "{}", {"x_api_key": "sk-wrong"}, 401, "authentication_error"),
                ("POST", "/v1/messages", "{}", {"x_api_key": KEY, "Origin": "http://evil.example"}, 403, "permission_error"),
                ("POST", "/v1/messages/nowhere", "{}", {"x_api_key": KEY}, 404, "not_found_error"),
                ("GET", "/v1/messages", None, {"x_api_key": KEY}, 405, "invalid_request_error"),
                ("POST", "/v1/messages", "{}", {"x_api_key": KEY, "Content_Type": "text/plain"}, 415, "invalid_request_error"),
                ("POST", "/v1/messages/count_tokens", large, {"x_api_key": KEY}, 413, "request_too_large"),
                ("POST", "/v1/messages", "{", {"x_api_key": KEY}, 400, "invalid_request_error")):
            reply = server.request(method, path, body, **headers)
            value = reply.json()
            assert (reply.status, value["error"]["type"]) == (status, kind), (path, status, reply.body)
            assert list(value) == ["type", "error", "request_id"] and value["type"] == "error" and list(value["error"]) == ["type", "message"], value
            assert value["request_id"] == reply.headers["x-request-id"] == reply.headers["request-id"]
        assert server.request("GET", "/v1/messages", x_api_key=KEY).headers["Allow"] == "POST"
        chunked = server.socket()
        chunked.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nx-api-key: %s\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" % KEY.encode() + b" " * 0xfff)
        assert b'"request_too_large"' in read_all(chunked)


def test_odd_http_is_refused_or_understood():
    body = json.dumps(chat(max_completion_tokens=2)).encode()
    post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in (body[:1], body[1:9], body[9:])) + b"0\r\nX: y\r\n\r\n"
    close = b"Connection: close\r\n"
    with Server() as server:
        for sent, status, said in (
                (post + close + b"Transfer-Encoding: chunked\r\n\r\n" + chunks, 200, b'"choices"'),
                (post + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks, 400, b"Transfer-Encoding"),
                (post + b"Transfer-Encoding: identity\r\n\r\n" + body, 400, b"Transfer-Encoding"),
                (post + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + chunks, 400, b"Content-Length"),
                (post + b"Host: evil.example\r\n\r\n", 400, b"Host"),
                (post + b"Content-Type: text/plain\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 400, b"Content-Type"),
                (post + close + b"Content-Length: 0\r\n\r\n", 400, b"invalid_json"),
                (b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n" + close + b"\r\n", 404, b"no path"),
                (b"OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n" + close + b"\r\n", 405, b"Allow: GET, HEAD"),
                (b"HEAD /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + close + b"\r\n", 405, b"Allow: POST"),
                (b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n", 400, b"version"),
                (b"GET /health HTTP/1.1\r\n" + close + b"\r\n", 400, b"Host")):
            s = server.socket()
            s.sendall(sent)
            raw = read_all(s)  # whoever is refused is also closed, so that the rest is not taken for a request
            assert raw.startswith(b"HTTP/1.1 %d " % status) and said in raw and raw.count(b"HTTP/1.1 ") == 1, (sent[:120], raw[:400])
        s = server.socket()
        one = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + post + one + b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + post + close + one)
        assert re.findall(rb"HTTP/1.1 (\d+)", read_all(s)) == [b"200"] * 4, "pipelined requests are answered in their order"


def test_of_two_faults_the_first_of_the_contract_is_told():
    faults = [({"messages": [{"content": "a"}]}, "missing_required_parameter"), ({"temperature": "0"}, "invalid_type"), ({"top_p": 2}, "decimal_above_max_value"),
              ({"top_logprobs": 2}, "invalid_value"), ({"model": "none"}, "model_not_found"), ({"json_schema": {"type": "colour"}}, "invalid_json_schema"),
              ({"reasoning_effort": "high"}, "unsupported_parameter"), ({"messages": [{"role": "user", "content": "word " * 3000}]}, "context_length_exceeded")]
    with Server() as server:
        for i, (early, code) in enumerate(faults):
            for late, _ in faults[i:]:
                got = server.request("POST", "/v1/chat/completions", chat(**late | early)).error()
                assert got["code"] == code, (early, late, got)
        for fields, param in (({"json_schema": True, "response_format": {"type": "text"}}, "json_schema"),
                              ({"json_schema": True, "grammar": 'root ::= "a"'}, "grammar"),
                              ({"x_juno_grammar": 'root ::= "a"', "response_format": {"type": "json_object"}}, "x_juno_grammar"),
                              ({"ignore_eos": True, "max_completion_tokens": None}, "ignore_eos"), ({"min_tokens": 17}, "min_tokens"),
                              ({"max_tokens": 17}, "max_tokens"), ({"logit_bias": {str(i): -100 for i in range(8192)}}, "logit_bias"), ({"tool_choice": "auto"}, "tool_choice")):
            error = server.request("POST", "/v1/chat/completions", chat(**fields)).error()
            assert (error["code"], error["param"]) == ("invalid_value", param), (fields, error)


def test_large_requests_leave_no_memory_behind():
    def resident():
        with open(f"/proc/{server.process.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))

    with Server("--quiet") as server:
        ask(server)
        before = resident()
        body = json.dumps(chat(messages=[{"role": "user", "content": "\n" * 4_000_000}]))
        for _ in range(4):
            assert server.request("POST", "/v1/chat/completions", body).error()["code"] == "context_length_exceeded"
        until(lambda: resident() - before < 32 << 10, "what large requests needed was kept")


def test_C60_odd_json_is_refused_by_name():
    with Server() as server:
        text = json.dumps(chat(max_completion_tokens=2))
        for field, code, param in (
                ('"temperature":NaN', "invalid_json", None), ('"temperature":-Infinity', "invalid_json", None), ('"n":01', "invalid_json", None),
                ('"n":1,"n":1', "invalid_json", None), ('"logit_bias":{"1":1,"1":1}', "invalid_json", None), ('"user":"\\ud800"', "invalid_json", None),
                ('"x":' + "[" * 200 + "]" * 200, "invalid_json", None), ('"seed":1e400', "integer_above_max_value", "seed"),
                ('"seed":-9223372036854775809', "integer_below_min_value", "seed"), ('"repetition_penalty":5e-324', "decimal_below_min_value", "repetition_penalty"),
                ('"logit_bias":{"8192":1}', "invalid_value", "logit_bias"), ('"logit_bias":{"1":null}', "invalid_type", "logit_bias.1"),
                ('"top_logprobs":0.5', "invalid_type", "top_logprobs"), ('"tools":{}', "invalid_type", "tools"), ('"colour":null', "unknown_parameter", "colour")):
            reply = server.request("POST", "/v1/chat/completions", text[:-1] + "," + field + "}")
            error = reply.error()
            assert (reply.status, error["code"], error["param"]) == (400, code, param), (field, error)
            assert "null" not in error["message"] or "null" in field, error
        for raw in (text.encode().replace(b"rivers", b"\xff"), text.encode().replace(b"rivers", b"\xed\xa0\x80"), text.encode("utf-16"), text.encode() + b"{}"):
            assert server.request("POST", "/v1/chat/completions", raw).error()["code"] == "invalid_json", raw
        assert events(server.request("POST", "/v1/chat/completions", text[:-1] + ',"n":2,"stream":true}').body)[-1] == "[DONE]"


if __name__ == "__main__":
    main(globals())
