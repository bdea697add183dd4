#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/v1/responses, /v1/messages, /v1/inference and /openapi.json of a running server, without any client's help."""
import json
import os

from serving import KEY, SOURCE, Server, main

TEMPLATES = os.path.join(SOURCE, "tests", "data", "templates")
TOOLS_TEMPLATE = os.path.join(TEMPLATES, "Qwen-Qwen2.5-7B-Instruct.jinja")
THINKING_TEMPLATE = os.path.join(TEMPLATES, "Qwen-Qwen3-0.6B.jinja")
MODEL = "juno-demo"
HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "Say something about rivers."}], "max_tokens": 16, "temperature": 0}
ITEM = {"model": MODEL, "input": "Say something about rivers.", "max_output_tokens": 16, "temperature": 0}


def ask(server, path, body):
    reply = server.request("POST", path, body)
    assert reply.status == 200, (reply.status, reply.body[:500])
    return reply.json()


def events(server, path, body):
    """[(event, data)]"""
    reply = server.request("POST", path, body)
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/event-stream"), reply.body[:500]
    out = []
    for block in reply.body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in lines:
            out.append((lines.get("event"), lines["data"] if lines["data"] == "[DONE]" else json.loads(lines["data"])))
    return out


def refused(server, path, body):
    reply = server.request("POST", path, body)
    error = reply.error()
    return reply.status, error["code"], error["param"]


def refused_message(server, **fields):
    """-> (status, type, message), of an error spelled as Anthropic's."""
    reply = server.request("POST", "/v1/messages", HELLO | fields)
    value = reply.json()
    assert list(value) == ["type", "error", "request_id"] and value["type"] == "error" and list(value["error"]) == ["type", "message"], value
    assert value["request_id"] == reply.headers["x-request-id"]
    return reply.status, value["error"]["type"], value["error"]["message"]


def test_responses_refuse_what_they_do_not_do():
    with Server() as server:
        call = {"type": "function_call_output", "call_id": "c", "output": "x"}
        for fields, want in {
                '{"colour": 1}': ("unknown_parameter", "colour"),
                '{"store": true}': ("unsupported_value", "store"),
                '{"previous_response_id": "resp_a"}': ("unsupported_parameter", "previous_response_id"),
                '{"conversation": "c"}': ("unsupported_parameter", "conversation"),
                '{"truncation": "auto"}': ("unsupported_value", "truncation"),
                '{"background": true}': ("unsupported_value", "background"),
                '{"max_output_tokens": 0}': ("integer_below_min_value", "max_output_tokens"),
                '{"max_tool_calls": 1}': ("unsupported_parameter", "max_tool_calls"),
                '{"top_logprobs": 2}': ("invalid_value", "top_logprobs"),
                '{"include": ["reasoning.encrypted_content"]}': ("unsupported_value", "include[0]"),
                '{"include": ["colour"]}': ("invalid_value", "include[0]"),
                '{"context_management": [{"type": "compaction"}]}': ("unsupported_parameter", "context_management"),
                '{"reasoning": {"summary": "auto"}}': ("unsupported_parameter", "reasoning.summary"),
                '{"text": {"verbosity": "low"}}': ("unsupported_value", "text.verbosity"),
                '{"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "colour"}}}}':
                    ("invalid_json_schema", "text.format.schema"),
                '{"tools": [{"type": "web_search"}]}': ("unsupported_value", "tools[0].type"),
                '{"tool_choice": "required"}': ("invalid_value", "tool_choice"),
                '{"parallel_tool_calls": true}': ("invalid_value", "parallel_tool_calls"),
                '{"stream_options": {"include_obfuscation": false}}': ("invalid_value", "stream_options"),
                '{"input": []}': ("empty_array", "input"),
                '{"input": [{"type": "item_reference", "id": "x"}]}': ("unsupported_value", "input[0].type"),
                '{"input": [{"role": "user", "content": [{"type": "input_image"}]}]}': ("unsupported_value", "input[0].content[0].type"),
                json.dumps({"input": [call]}): ("invalid_value", "input[0].call_id"),
                json.dumps({"metadata": {"a" * 65: "b"}}): ("string_above_max_length", "metadata." + "a" * 65),
                json.dumps({"metadata": {"a": "b" * 513}}): ("string_above_max_length", "metadata.a"),
                json.dumps({"metadata": {str(i): "b" for i in range(17)}}): ("array_above_max_length", "metadata"),
                json.dumps({"input": "word " * 3000}): ("context_length_exceeded", "input")}.items():
            assert refused(server, "/v1/responses", ITEM | json.loads(fields)) == (400, *want), fields
        no_input = {k: v for k, v in ITEM.items() if k != "input"}
        assert refused(server, "/v1/responses", no_input) == (400, "missing_required_parameter", "input")
        assert ask(server, "/v1/responses", ITEM | {"store": False, "background": False})["store"] is False


def test_responses_stream_what_they_say():
    with Server() as server:
        fields = ITEM | {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "metadata": {"a": "b"}}
        plain = ask(server, "/v1/responses", fields)
        assert plain["status"] == "incomplete" and plain["incomplete_details"] == {"reason": "max_output_tokens"}
        assert plain["usage"]["output_tokens"] == 16 and plain["metadata"] == {"a": "b"} and plain["temperature"] == 0
        content = plain["output"][0]["content"][0]
        assert len(content["logprobs"]) == 16 and len(content["logprobs"][0]["top_logprobs"]) == 2
        told = events(server, "/v1/responses", fields | {"stream": True})
        assert all(event == data["type"] for event, data in told)
        assert [data["sequence_number"] for _, data in told] == list(range(len(told)))
        names = [event for event, _ in told if not event.endswith(".delta")]
        assert names == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                         "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete"], names
        assert "".join(d["delta"] for e, d in told if e.endswith("text.delta")) == content["text"]
        assert sum((d["logprobs"] for e, d in told if e.endswith("text.delta")), []) == content["logprobs"]
        last = told[-1][1]["response"]
        assert last["output"][0]["content"] == plain["output"][0]["content"] and last["usage"]["output_tokens"] == 16
        assert "logprobs" not in json.dumps(ask(server, "/v1/responses", ITEM)["output"]).replace('"logprobs": []', "")


def test_C61_stored_responses_belong_to_their_key():
    with Server("--store-responses", JUNO_API_KEY=f"{KEY} sk-other-0123456789") as server:
        def asked(key, **fields):
            return server.request("POST", "/v1/responses", ITEM | fields, Authorization=f"Bearer {key}")
        first = asked(KEY, instructions="Be brief.").json()
        assert first["store"] is True
        second = asked(KEY, input="Go on.", previous_response_id=first["id"]).json()
        assert second["previous_response_id"] == first["id"]
        text = first["output"][0]["content"][0]["text"]
        spelled = [{"role": "user", "content": ITEM["input"]}, {"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}]
        same = asked(KEY, input=spelled).json()
        assert same["usage"]["input_tokens"] == second["usage"]["input_tokens"] and same["output"][0]["content"] == second["output"][0]["content"]
        for key, wanted in (("sk-other-0123456789", first["id"]), (KEY, "resp_none")):
            error = asked(key, previous_response_id=wanted).error()
            assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")
        unkept = asked(KEY, store=False).json()
        assert unkept["store"] is False
        assert asked(KEY, previous_response_id=unkept["id"]).error()["code"] == "previous_response_not_found"


def test_messages_refuse_what_they_do_not_do():
    with Server() as server:
        tool = {"name": "f", "input_schema": {"type": "object"}}
        block = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]
        thought = [{"role": "user", "content": [{"type": "thinking", "thinking": "x"}]}]
        for fields, said in (({"colour": 1}, "'colour'"), ({"temperature": 1.5}, "'temperature'"), ({"max_tokens": 0}, "'max_tokens'"),
                             ({"messages": block}, "'messages[0].content[0].tool_use_id'"), ({"messages": thought}, "'messages[0].content[0].type'"),
                             ({"messages": [{"role": "system", "content": "x"}]}, "'messages[0].role'"), ({"messages": []}, "'messages'"),
                             ({"tools": [tool, tool]}, "'tools[1].name'"), ({"tools": [tool]}, "'tools'"),
                             ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, "'tools[0].type'"),
                             ({"tool_choice": {"type": "any"}}, "'tool_choice'"), ({"mcp_servers": []}, "'mcp_servers'"),
                             ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "'thinking.budget_tokens'"),
                             ({"thinking": {"type": "adaptive"}}, "'thinking'"), ({"output_config": {"effort": "max"}}, "'output_config.effort'"),
                             ({"stop_sequences": [""]}, "'stop_sequences[0]'"), ({"system": [{"type": "image"}]}, "'system[0].type'"),
                             ({"messages": [{"role": "user", "content": "word " * 3000}]}, "the context takes 1024")):
            status, kind, message = refused_message(server, **fields)
            assert (status, kind) == (400, "invalid_request_error") and said in message, (fields, message)
        assert refused_message(server, model="none")[:2] == (404, "not_found_error")
        missing = server.request("POST", "/v1/messages", {k: v for k, v in HELLO.items() if k != "max_tokens"}).json()
        assert "'max_tokens' is required" in missing["error"]["message"]
        ask(server, "/v1/messages", HELLO | {"thinking": {"type": "disabled"}, "service_tier": "auto", "container": None})


def test_messages_think_where_the_template_does():
    with Server("--chat-template", THINKING_TEMPLATE) as server:
        def prompt(**fields):
            return ask(server, "/v1/messages/count_tokens", {k: v for k, v in HELLO.items() if k in ("model", "messages")} | fields)["input_tokens"]
        assert prompt(thinking={"type": "disabled"}) > prompt()  # the template writes an empty thought
        assert prompt(thinking={"type": "enabled", "budget_tokens": 2048}) == prompt()
        reply = ask(server, "/v1/messages", HELLO)
        told = events(server, "/v1/messages", HELLO | {"stream": True})
        assert [e for e, _ in told] == [d["type"] for _, d in told]
        said = {"text": "", "thinking": ""}
        for event, data in told:
            if event == "content_block_delta":
                kind = data["delta"]["type"].removesuffix("_delta")
                said[kind] += data["delta"][kind]
        for kind in said:
            assert said[kind] == "".join(b[kind] for b in reply["content"] if b["type"] == kind)


def test_a_message_stops_as_it_says():
    with Server() as server:
        whole = ask(server, "/v1/messages", HELLO)
        assert (whole["stop_reason"], whole["usage"]["output_tokens"]) == ("max_tokens", 16)
        filled = ask(server, "/v1/messages", HELLO | {"max_tokens": 5000, "messages": [{"role": "user", "content": "word " * 990}]})
        assert filled["stop_reason"] in ("model_context_window_exceeded", "end_turn")
        text = whole["content"][0]["text"]
        cut = ask(server, "/v1/messages", HELLO | {"stop_sequences": [text[3:8]]})
        assert (cut["stop_reason"], cut["stop_sequence"], cut["content"][0]["text"]) == ("stop_sequence", text[3:8], text[:text.index(text[3:8])])
        lines = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
        turns = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
        counts = [ask(server, "/v1/messages/count_tokens", {"model": MODEL, "messages": m})["input_tokens"] for m in (lines, turns)]
        assert counts[0] == counts[1]


def test_inference_says_the_same_in_pieces():
    with Server() as server:
        for fields in ({"prompt": "Once upon a time"}, {"messages": HELLO["messages"]}):
            fields |= {"max_tokens": 12, "temperature": 0, "priority": "HIGH"}
            plain = ask(server, "/v1/inference", fields)
            assert (plain["model"], plain["finish_reason"], plain["completion_tokens"]) == (MODEL, "length", 12)
            told = events(server, "/v1/inference/stream", fields)
            assert told[-1][1] == "[DONE]" and told[-2][1]["finish_reason"] == "length"
            assert "".join(d["text"] for _, d in told[:-2]) == plain["text"]
        for fields, want in (({}, ("missing_required_parameter", "prompt")), ({"prompt": "a", "messages": HELLO["messages"]}, ("invalid_value", "prompt")),
                             ({"prompt": "a", "priority": "high"}, ("invalid_value", "priority")), ({"prompt": "a", "colour": 1}, ("unknown_parameter", "colour")),
                             ({"prompt": "word " * 3000}, ("context_length_exceeded", "prompt"))):
            assert refused(server, "/v1/inference", fields) == (400, *want), fields


def test_openapi_is_served():
    with Server() as server:
        document = server.request("GET", "/openapi.json").json()
        assert document["openapi"] == "3.1.0" and "/v1/messages" in document["paths"]
        for path, methods in document["paths"].items():
            for method in methods:
                reply = server.request(method.upper(), path.replace("{id}", "none").replace("{file}", "app.js"), {} if method == "post" else None)
                unknown = reply.status == 404 and reply.json()["error"]["code"] == "unknown_url"
                assert reply.status < 500 and reply.status != 405 and (not unknown or path == "/page/{file}"), (method, path, reply.status)


if __name__ == "__main__":
    main(globals())
