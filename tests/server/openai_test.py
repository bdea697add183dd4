#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OpenAI routes of a running server, rule by rule of tests/data/cases/CASES.md."""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from serving import KEY, SOURCE, Server, main, read_all

CASES = os.path.join(SOURCE, "tests", "data", "cases")
TEMPLATES = os.path.join(SOURCE, "tests", "data", "templates")
RUNNER = os.path.join(SOURCE, "tests", "server", "run_requests.py")
TOOLS_TEMPLATE = os.path.join(TEMPLATES, "Qwen-Qwen2.5-7B-Instruct.jinja")
MODEL = "juno-demo"
ONE_CALL = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "additionalProperties": False}}}], "tool_choice": "required", "parallel_tool_calls": False}
RIVERS = [{"role": "user", "content": "Say something about rivers."}]


def chat(**fields):
    return {"model": MODEL, "messages": RIVERS, "temperature": 0, "max_completion_tokens": 16} | fields


def ask(server, path="/v1/chat/completions", **fields):
    reply = server.request("POST", path, chat(**fields) if "chat" in path else {"model": MODEL} | fields)
    assert reply.status == 200, (reply.status, reply.body[:500])
    return reply.json()


def events(raw):
    """The JSON of each event, [DONE] as a text; every event must be UTF-8."""
    out = []
    for event in raw.split(b"\n\n"):
        if event.startswith(b"data: "):
            text = event[6:].decode("utf-8")
            out.append(text if text == "[DONE]" else json.loads(text))
        else:
            assert event == b"" or event.startswith(b":"), event
    return out


def stream(server, path="/v1/chat/completions", **fields):
    body = (chat(**fields) if "chat" in path else {"model": MODEL} | fields) | {"stream": True}
    reply = server.request("POST", path, body)
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/event-stream"), reply.body[:500]
    return events(reply.body)


def joined(chunks, choice=0):
    return "".join(c["delta"].get("content") or "" for e in chunks if isinstance(e, dict) for c in e["choices"] if c["index"] == choice)


def refused(server, path="/v1/chat/completions", **fields):
    """-> (status, code, param, message)"""
    reply = server.request("POST", path, chat(**fields) if "chat" in path else {"model": MODEL} | fields)
    error = reply.error()
    return reply.status, error["code"], error["param"], error["message"]


def tokens_of(server, text):
    return server.request("POST", "/tokenize", {"content": text, "with_pieces": True, "parse_special": False}).json()["tokens"]


def byte_tokens(server, count):
    """Ids of tokens whose bytes are no text by themselves."""
    found = {}
    for code in range(0x400, 0x2fff, 7):
        for token in tokens_of(server, chr(code)):
            if isinstance(token["piece"], list):
                found[token["id"]] = bytes(token["piece"])
        if len(found) >= count:
            break
    return found


def corpus(server, *files, has="", key=None):
    command = [sys.executable, RUNNER, "--url", server.url, "--model", MODEL, "--has", has]
    p = subprocess.run(command + (["--key", key] if key else []) + [os.path.join(CASES, f) for f in files], capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def test_C30_every_bad_request_gets_its_error():
    with Server("--embeddings", JUNO_API_KEY=KEY) as server:
        before = server.metric("juno_new_tokens_total")
        status, said = corpus(server, "bad_requests.json", has="embeddings", key=KEY)
        assert status == 0, said
        assert server.metric("juno_new_tokens_total") == before


def test_good_requests_are_honoured():
    with Server("--embeddings", "--chat-template", TOOLS_TEMPLATE) as server:
        status, said = corpus(server, "good_requests.json", has="tools,embeddings,no_developer_role")
        assert status == 0, said


def test_good_requests_with_the_models_own_template():
    with Server("--embeddings") as server:
        status, said = corpus(server, "good_requests.json", has="embeddings,no_developer_role")
        assert status in (0, 2) and " 0 failed" in said, said


def test_C19_every_event_is_utf8():
    with Server() as server:
        emoji = "\U0001f600\u00e9\u4f60\U0010fffd"
        for n in (1, 2):
            fields = {"grammar": f'root ::= "{emoji}" "{emoji}"', "max_completion_tokens": 64, "n": n, "seed": 1, "temperature": 2}
            plain = ask(server, **fields)
            chunks = stream(server, **fields)
            for i in range(n):
                assert plain["choices"][i]["message"]["content"] == emoji * 2
                assert joined(chunks, i) == emoji * 2
            assert sum("\ufffd" in json.dumps(c, ensure_ascii=False) for c in chunks) == 0


def test_C20_bytes_that_are_no_text_become_replacements():
    with Server() as server:
        wild = byte_tokens(server, 12)
        assert wild
        fields = {"logit_bias": {str(i): 100 for i in wild}, "temperature": 2, "seed": 7, "max_completion_tokens": 50, "ignore_eos": True,
                  "logprobs": True, "top_logprobs": 2}
        plain = ask(server, **fields)["choices"][0]
        assert "\ufffd" in plain["message"]["content"]
        listed = b"".join(bytes(t["bytes"]) for t in plain["logprobs"]["content"])
        assert listed.decode("utf-8", "replace") == plain["message"]["content"]
        assert joined(stream(server, **fields)) == plain["message"]["content"]


def test_C21_stop_strings_wherever_tokens_end():
    with Server() as server:
        text = ask(server, max_completion_tokens=24, ignore_eos=True)["choices"][0]["message"]["content"]
        for start in range(0, len(text) - 3, 2):
            for length in (1, 3, 9):
                stop = text[start:start + length]
                want = text[:text.index(stop)]
                stops = [stop, "\U0001f600" * 5, stop + "zz"]
                fields = {"max_completion_tokens": 24, "ignore_eos": True, "stop": stops}
                choice = ask(server, **fields)["choices"][0]
                assert (choice["message"]["content"], choice["finish_reason"]) == (want, "stop"), (stop, choice)
                if start % 8 == 0:
                    assert joined(stream(server, **fields)) == want
        held = ask(server, max_completion_tokens=24, ignore_eos=True, stop=text[-4:] + "never")["choices"][0]
        assert (held["message"]["content"], held["finish_reason"]) == (text, "length")


def test_C22_what_does_not_compile_does_not_run():
    with Server() as server, open(os.path.join(CASES, "json_schemas.json")) as f:
        cases = json.load(f)
        before = server.metric("juno_new_tokens_total")
        for case in cases:
            if case["must"] != "reject":
                continue
            for fields in ({"json_schema": case["schema"]},
                           {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": case["schema"]}}}):
                status, code, _, message = refused(server, **fields)
                assert (status, code) == (400, case["code"]), (case["id"], code, message)
                assert case["keyword"] in message and case["at"] in message, (case["id"], message)
        for grammar in ("root ::= (", 'root ::= "a" other', "", 'root ::= root "a"', "x" * 70000):
            assert refused(server, grammar=grammar)[:3] == (400, "invalid_grammar", "grammar"), grammar[:20]
        assert refused(server, x_juno_grammar="root ::= (")[2] == "x_juno_grammar"
        assert server.metric("juno_new_tokens_total") == before
        import jsonschema
        for case in cases:
            if case["must"] != "support":
                continue
            choice = ask(server, json_schema=case["schema"], temperature=2, seed=3, max_completion_tokens=60)["choices"][0]
            if choice["finish_reason"] == "stop":
                jsonschema.validate(json.loads(choice["message"]["content"]), case["schema"], cls=jsonschema.Draft202012Validator)


def test_C25_usage_only_where_it_is_asked_for():
    with Server() as server:
        for path, fields in (("/v1/chat/completions", {}), ("/v1/completions", {"prompt": "Once", "max_tokens": 8})):
            without = stream(server, path, **fields)
            assert without[-1] == "[DONE]" and all("usage" not in e for e in without[:-1])
            asked = stream(server, path, stream_options={"include_usage": True}, **fields)
            assert asked[-1] == "[DONE]" and asked[-2]["choices"] == [] and asked[-2]["usage"]["completion_tokens"] > 0
            assert all(e["usage"] is None and e["choices"] for e in asked[:-2])


def shape(value):
    """Names and types of all that a value holds; of a list, those of its items."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return {str: "text", bool: "bool", int: "int", float: "float", type(None): None}[type(value)]


def test_C26_fields_are_there_as_the_contract_says():
    usage = {"prompt_tokens": "int", "completion_tokens": "int", "total_tokens": "int", "prompt_tokens_details": {"cached_tokens": "int"},
             "completion_tokens_details": {"reasoning_tokens": "int"}}
    head = {"id": "text", "object": "text", "created": "int", "model": "text", "system_fingerprint": "text"}
    token = {"token": "text", "logprob": "float", "bytes": ["int"]}
    with Server("--chat-template", TOOLS_TEMPLATE) as server:
        message = {"role": "text", "content": "text", "refusal": None}
        choice = {"index": "int", "message": message, "logprobs": None, "finish_reason": "text"}
        whole = head | {"service_tier": "text", "choices": [choice], "usage": usage}
        assert shape(ask(server)) == whole
        scores = {"content": [token | {"top_logprobs": [token]}], "refusal": None}
        assert shape(ask(server, logprobs=True, top_logprobs=2)) == whole | {"choices": [choice | {"logprobs": scores}]}
        called = ask(server, max_completion_tokens=200, **ONE_CALL)
        call = {"id": "text", "type": "text", "function": {"name": "text", "arguments": "text"}}
        assert shape(called["choices"][0]["message"]) == message | {"content": None, "tool_calls": [call]}, called
        chunk = head | {"service_tier": "text", "choices": [{"index": "int", "delta": {}, "logprobs": None, "finish_reason": None}]}
        chunks = stream(server)[:-1]
        for i, one in enumerate(chunks):
            delta = one["choices"][0].pop("delta")
            last = i == len(chunks) - 1
            assert shape(delta) == ({"role": "text", "content": "text", "refusal": None} if i == 0 else {} if last else {"content": "text"}), delta
            one["choices"][0]["delta"] = {}
            want = chunk["choices"][0] | {"finish_reason": "text" if last else None}
            assert shape(one) == chunk | {"choices": [want]}, one
        completion = {"text": "text", "index": "int", "logprobs": None, "finish_reason": "text"}
        assert shape(ask(server, "/v1/completions", prompt="Once")) == head | {"choices": [completion], "usage": usage}


def test_C27_a_reply_ends_for_one_reason():
    with Server("--chat-template", TOOLS_TEMPLATE) as server:
        text = ask(server)["choices"][0]["message"]["content"]
        ways = [({"ignore_eos": True}, "length"), ({"stop": text[3:5]}, "stop"), ({"grammar": 'root ::= "yes"'}, "stop"),
                (ONE_CALL | {"max_completion_tokens": 200}, "tool_calls"), (ONE_CALL | {"max_completion_tokens": 2}, "length"),
                ({"n": 3, "ignore_eos": True}, "length")]
        for fields, reason in ways:
            n = fields.get("n", 1)
            assert [c["finish_reason"] for c in ask(server, **fields)["choices"]] == [reason] * n, fields
            ends = [(c["index"], c["finish_reason"]) for e in stream(server, **fields)[:-1] for c in e["choices"] if c["finish_reason"] is not None]
            assert sorted(ends) == [(i, reason) for i in range(n)], (fields, ends)


def test_C28_content_as_text_parts_or_null():
    with Server("--chat-template", TOOLS_TEMPLATE) as server:
        one = ask(server, messages=[{"role": "user", "content": "first\nsecond"}])
        parts = ask(server, messages=[{"role": "user", "content": [{"type": "text", "text": t} for t in ("first", "second")]}])
        assert one["usage"]["prompt_tokens"] == parts["usage"]["prompt_tokens"]
        assert one["choices"][0]["message"]["content"] == parts["choices"][0]["message"]["content"]
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for content in ({"content": None}, {}):
            ask(server, messages=RIVERS + [{"role": "assistant", "tool_calls": [call]} | content,
                                           {"role": "tool", "tool_call_id": "c1", "content": "x"}])
        assert refused(server, messages=RIVERS + [{"role": "assistant", "content": None}])[1:3] == ("invalid_type", "messages[1].content")


def test_C16_arguments_that_are_no_json_are_text():
    with Server("--chat-template", TOOLS_TEMPLATE) as server:
        for arguments in ('{"city": "Par', "", "x" * 300, "[" * 5000, '{"a": 1, "a": 2}', "\ufffd\u0000"):
            call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
            fields = {"messages": RIVERS + [{"role": "assistant", "content": None, "tool_calls": [call]},
                                            {"role": "tool", "tool_call_id": "c1", "content": "x"}]}
            reply = server.request("POST", "/v1/chat/completions", chat(**fields))
            assert reply.status == 200 or reply.error()["code"] == "context_length_exceeded", reply.body


def test_C29_errors_before_and_inside_a_stream():
    with Server("--grace", "0") as server:
        seen = []

        def read():
            with server.socket() as s:
                body = json.dumps(chat(stream=True, n=4, ignore_eos=True, max_completion_tokens=900)).encode()
                s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                first = s.recv(65536)
                seen.append(first)
                seen.append(first + read_all(s))

        reader = threading.Thread(target=read)
        reader.start()
        while not seen:
            time.sleep(0.01)
        server.end()
        reader.join()
        raw = seen[-1]
        assert b"200 OK" in raw and b"[DONE]" not in raw
        assert re.search(rb'data: \{"error":\{"message":"[^"]+","type":"server_error","param":null,"code":"shutting_down"\}\}\n\n', raw), raw[-500:]
    with Server() as server:
        reply = server.request("POST", "/v1/chat/completions", chat(stream=True, messages=[{"role": "user", "content": "word " * 5000}]))
        assert reply.status == 400 and reply.error()["code"] == "context_length_exceeded"


def test_C31_C32_embeddings_of_any_length_up_to_the_context():
    with Server("--embeddings") as server:
        limit = ask_models(server)
        for count in (1, 511, 512, 513, limit):
            reply = ask(server, "/v1/embeddings", input=[100 + i % 50 for i in range(count)])
            assert reply["usage"]["prompt_tokens"] == count and len(reply["data"][0]["embedding"]) > 0
        assert refused(server, "/v1/embeddings", input=[7] * (limit + 1))[:3] == (400, "context_length_exceeded", "input")
        assert refused(server, "/v1/embeddings", input=[[7], [7] * (limit + 1)])[:3] == (400, "context_length_exceeded", "input[1]")
        short = ask(server, "/v1/embeddings", input="a river", dimensions=8)["data"][0]["embedding"]
        assert len(short) == 8 and abs(sum(x * x for x in short) - 1) < 1e-5


def ask_models(server):
    models = server.request("GET", "/v1/models").json()["data"]
    assert models[0]["id"] == MODEL and models[0]["object"] == "model"
    assert server.request("GET", f"/v1/models/{MODEL}").json() == models[0]
    missing = server.request("GET", "/v1/models/none/such")
    assert (missing.status, missing.error()["code"], missing.error()["param"]) == (404, "model_not_found", "model")
    return models[0]["context_length"]


def test_C32_C33_C34_the_end_of_the_context():
    with Server() as server:
        limit = ask_models(server)
        for n in (1, 2):
            for length in (1, limit // 2, limit - 1, limit):
                fields = {"prompt": [7 + i % 90 for i in range(length)], "max_tokens": 100000, "ignore_eos": True, "n": n}
                reply = ask(server, "/v1/completions", **fields)
                assert [c["finish_reason"] for c in reply["choices"]] == ["length"] * n
                assert reply["usage"]["completion_tokens"] == n * (limit - length), (length, reply["usage"])
        assert stream(server, "/v1/completions", prompt=[7] * (limit - 1), max_tokens=9, ignore_eos=True)[-1] == "[DONE]"
        sentence = re.compile(r"the prompt has (\d+) tokens, the context takes (\d+)")
        for length in (limit + 1, 10 * limit):
            for streamed in (False, True):
                reply = server.request("POST", "/v1/completions", {"model": MODEL, "prompt": [7] * length, "stream": streamed})
                error = reply.error()
                assert (reply.status, error["code"], error["param"]) == (400, "context_length_exceeded", "prompt")
                assert [int(x) for x in sentence.search(error["message"]).groups()] == [length, limit]
                assert reply.headers["x-juno-prompt-tokens"] == str(length) and reply.headers["x-juno-context-length"] == str(limit)
        whole = {"prompt": [7] * limit, "max_tokens": 0, "echo": True}
        assert ask(server, "/v1/completions", **whole)["usage"]["total_tokens"] == limit
        _, code, param, message = refused(server, messages=[{"role": "user", "content": "word " * 3000}])
        assert (code, param) == ("context_length_exceeded", "messages") and sentence.search(message)


def test_completions_echo_and_score_the_prompt():
    with Server() as server:
        fields = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 5, "echo": True, "logprobs": 2}
        choice = ask(server, "/v1/completions", **fields)["choices"][0]
        scores = choice["logprobs"]
        assert "".join(scores["tokens"]) == choice["text"] and scores["token_logprobs"][0] is None
        assert all(x <= 0 for x in scores["token_logprobs"][1:]) and len(scores["top_logprobs"][1]) == 2
        assert scores["text_offset"] == [len("".join(scores["tokens"][:i])) for i in range(len(scores["tokens"]))]
        chunks = [c for e in stream(server, "/v1/completions", **fields)[:-1] for c in e["choices"]]
        assert "".join(c["text"] for c in chunks) == choice["text"]
        assert [t for c in chunks for t in c["logprobs"]["tokens"]] == scores["tokens"]
        assert refused(server, "/v1/completions", prompt="a", suffix="b")[:3] == (400, "unsupported_parameter", "suffix")
        many = ask(server, "/v1/completions", prompt=["a", "b"], n=2, max_tokens=3)
        assert [c["index"] for c in many["choices"]] == [0, 1, 2, 3]


def test_templates_are_asked_what_they_read():
    with Server("--chat-template", os.path.join(TEMPLATES, "Qwen-Qwen3-0.6B.jinja")) as server:
        on = server.request("POST", "/apply-template", {"messages": RIVERS}).json()["prompt"]
        off = server.request("POST", "/apply-template", {"messages": RIVERS, "reasoning_effort": "none"}).json()["prompt"]
        same = server.request("POST", "/apply-template", {"messages": RIVERS, "chat_template_kwargs": {"enable_thinking": False}}).json()
        assert off != on and off == same["prompt"] and "</think>" in off
        assert refused(server, chat_template_kwargs={"colour": 1})[1:3] == ("invalid_value", "chat_template_kwargs")
        assert refused(server, chat_template_kwargs={"messages": []})[1:3] == ("invalid_value", "chat_template_kwargs")
        assert refused(server, messages=[{"role": "user", "content": "a", "name": "b"}])[1:3] == ("unsupported_parameter", "messages[0].name")
        going = RIVERS + [{"role": "assistant", "content": "Rivers are"}]
        text = server.request("POST", "/apply-template", {"messages": going, "continue_final_message": True}).json()["prompt"]
        assert text.endswith("Rivers are")
        assert refused(server, continue_final_message=True)[1:3] == ("invalid_value", "continue_final_message")
    with Server() as server:
        assert refused(server, reasoning_effort="high")[1:3] == ("unsupported_parameter", "reasoning_effort")
        ask(server, reasoning_effort="none")
        tool = {"type": "function", "function": {"name": "f"}}
        assert refused(server, tools=[tool])[1:3] == ("unsupported_parameter", "tools")


def test_unknown_fields_may_be_warned_of():
    with Server("--unknown-fields", "warn") as server:
        reply = server.request("POST", "/v1/chat/completions", chat(colour=1, messages=[RIVERS[0] | {"x": 2}]))
        assert reply.status == 200 and reply.headers["x-juno-ignored-fields"] == "messages[0].x, colour", reply.headers
        reply = server.request("POST", "/v1/completions", {"model": MODEL, "prompt": "a", "response_format": 7})
        assert reply.status == 200 and reply.headers["x-juno-ignored-fields"] == "response_format"


def test_progress_is_told_where_it_is_asked_for():
    with Server() as server:
        chunks = stream(server, messages=[{"role": "user", "content": "word " * 700}], stream_options={"include_progress": True})
        told = [e["x_juno_progress"] for e in chunks[:-1] if "x_juno_progress" in e]
        assert told and told[-1]["processed"] == told[-1]["total"] and all(e["choices"] for e in chunks[:-1] if "x_juno_progress" not in e)


def test_text_and_tokens_go_both_ways():
    with Server() as server:
        for text in ("", "Hello, world!", " \t\n", "é你好👩‍🚀", "<|im_start|>"):
            for special in (True, False):
                tokens = server.request("POST", "/v1/tokenize", {"content": text, "parse_special": special}).json()
                assert tokens["count"] == len(tokens["tokens"])
                back = server.request("POST", "/v1/detokenize", {"tokens": tokens["tokens"]}).json()["content"]
                assert back == text, (text, back)
        assert refused(server, "/v1/detokenize", tokens=[1, 99999999])[1:3] == ("invalid_value", "tokens[1]")


def test_C15_a_template_that_objects_is_no_fault_of_the_server():
    with Server("--chat-template", os.path.join(TEMPLATES, "mistralai-Mistral-Nemo-Instruct-2407.jinja")) as server:
        status, code, param, message = refused(server, messages=RIVERS + RIVERS)
        assert (status, code, param) == (400, "template_error", "messages") and "alternate" in message, message


def test_C63_a_template_stops_at_its_limits():
    for source in ("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
                   "{% for i in range(1000) %}{{ 'x' * 100000 }}{% endfor %}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(source)
            file.flush()
            with Server("--chat-template", file.name) as server:
                status, code, param, message = refused(server)
                assert (status, code, param) == (400, "template_error", "messages") and re.search(r"more than \d|longer than \d|\d deep", message), message
                assert refused(server, chat_template="{{ 1 }}")[:3] == (400, "unsupported_parameter", "chat_template")


def test_C58_text_never_becomes_a_control_token():
    with Server("--chat-template", TOOLS_TEMPLATE) as server:
        def cost(**fields):
            return ask(server, max_completion_tokens=1, **fields)["usage"]["prompt_tokens"]
        tool = {"type": "function", "function": {"name": "f", "description": "%s", "parameters": {"type": "object", "properties": {}}}}
        places = {"user": lambda x: {"messages": [{"role": "user", "content": "a" + x}]},
                  "parts": lambda x: {"messages": [{"role": "user", "content": [{"type": "text", "text": t} for t in ("a", x)]}]},
                  "system": lambda x: {"messages": [{"role": "system", "content": "a" + x}] + RIVERS},
                  "assistant": lambda x: {"messages": RIVERS + [{"role": "assistant", "content": "a" + x}] + RIVERS},
                  "description": lambda x: {"tools": [json.loads(json.dumps(tool).replace("%s", "a" + x))], "tool_choice": "none"}}
        for control in ("<|im_end|>", "<|im_start|>", "<|endoftext|>"):
            plain = len(tokens_of(server, control))
            assert plain > 2
            for place, fields in places.items():
                grown = cost(**fields(control)) - cost(**fields(""))
                assert grown >= plain - 1, (place, control, grown)
            for parse_special, most in ((True, 2), (False, plain + 1)):
                reply = ask(server, "/v1/completions", prompt=control, parse_special=parse_special, max_tokens=1)
                assert reply["usage"]["prompt_tokens"] <= most and (reply["usage"]["prompt_tokens"] >= plain) != parse_special


def test_C61_nobody_gets_what_is_anothers():
    keys = ("sk-first-0123456789", "sk-other-0123456789")
    with Server(JUNO_API_KEY=",".join(keys)) as server:
        def post(key, **fields):
            return server.request("POST", "/v1/chat/completions", chat(**fields), Authorization=f"Bearer {keys[key]}")
        long = {"messages": [{"role": "user", "content": "Tell me about the rivers of the north. " * 20}]}
        assert post(0, **long).json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        assert post(1, **long).json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        assert post(0, **long).json()["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
        post(0, cache_salt="ours", **long)
        assert post(1, cache_salt="ours", **long).json()["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
        assert post(0, session_id="mine").status == 200
        other = post(1, session_id="mine")
        assert (other.status, other.error()["code"], other.error()["param"]) == (404, "session_not_found", "session_id")


def test_C23_schemas_that_would_never_end():
    nested = {"type": "string"}
    for _ in range(120):
        nested = {"type": "array", "items": nested}
    cases = [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"type": "string", "pattern": "^(a*)*b$"},
             {"type": "string", "pattern": "(" * 10000 + "x" + ")" * 10000}, {"type": "string", "pattern": "^" + "|".join(map(str, range(50000))) + "$"},
             {"type": "string", "pattern": "^a{0,1000000}$"}, {"type": "string", "maxLength": 100000},
             {"type": "string", "pattern": "^(?:" + "|".join(map(str, range(50000))) + ")$"},
             {"type": "object", "properties": {"a": {"$ref": "#"}}}, {"anyOf": [{"$ref": "#/anyOf/0"}]}]
    with Server() as server:
        for schema in cases + [nested]:
            began = time.monotonic()
            reply = server.request("POST", "/v1/chat/completions", chat(json_schema=schema, max_completion_tokens=2))
            assert reply.status in (200, 400) and time.monotonic() - began < 20, schema
            if reply.status == 400:
                assert reply.error()["param"] == "json_schema"
                assert reply.error()["code"] in ("invalid_json_schema", "unsupported_json_schema", "invalid_json"), reply.body
        assert ask(server)


def test_tools_of_every_template():
    schema = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
              "required": ["city", "days"], "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": n, "parameters": schema}} for n in ("weather", "forecast")]
    import jsonschema
    held = 0
    for name in sorted(os.listdir(TEMPLATES)):
        if not name.endswith(".jinja"):
            continue
        with Server("--chat-template", os.path.join(TEMPLATES, name)) as server:
            reply = server.request("POST", "/v1/chat/completions", chat(tools=tools, max_completion_tokens=1))
            if reply.status == 400 and reply.error()["code"] in ("unsupported_parameter", "context_length_exceeded"):
                continue
            assert reply.status == 200, (name, reply.body)
            held += 1
            for fields in ({"tool_choice": "required", "parallel_tool_calls": False}, {"tool_choice": {"type": "function", "function": {"name": "forecast"}}}):
                fields |= {"tools": tools, "temperature": 2, "seed": 5, "max_completion_tokens": 250}
                choice = ask(server, **fields)["choices"][0]
                calls = choice["message"].get("tool_calls", [])
                if choice["finish_reason"] == "length":
                    continue  # reasoning has no end that a grammar could promise
                assert choice["finish_reason"] == "tool_calls" and calls, (name, choice)
                for call in calls:
                    assert call["function"]["name"] in ("weather", "forecast"), (name, call)
                    jsonschema.validate(json.loads(call["function"]["arguments"]), schema)
                if isinstance(fields["tool_choice"], dict):
                    assert {c["function"]["name"] for c in calls} == {"forecast"}, (name, calls)
                else:
                    assert len(calls) == 1, (name, calls)
                streamed = {}
                for event in stream(server, **fields)[:-1]:
                    for part in event["choices"][0]["delta"].get("tool_calls", []):
                        one = streamed.setdefault(part["index"], ["", ""])
                        one[0] += part["function"].get("name", "")
                        one[1] += part["function"]["arguments"]
                assert [v for _, v in sorted(streamed.items())] == [[c["function"]["name"], c["function"]["arguments"]] for c in calls], name
    assert held >= 12, held


if __name__ == "__main__":
    main(globals())
