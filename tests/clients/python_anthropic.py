#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Python client of Anthropic: messages, streams, tools, structured output, counting, errors, cancelling."""
import json

from client import CITY, KEY, MODEL, idle, run, serve, skip

try:
    import anthropic
except ImportError as e:
    skip(f"the package anthropic is not installed: {e}")

RIVERS = [{"role": "user", "content": "Say something about rivers."}]
TOOL = {"name": "weather", "description": "The weather.", "input_schema": CITY}


def client(server, key=KEY):
    return anthropic.Anthropic(base_url=server.url, api_key=key, max_retries=0, _strict_response_validation=True)


def sampled(fields):
    """Some versions of the client have no parameters for sampling; their names then go beside the others."""
    beside = {name: fields.pop(name) for name in ("temperature", "top_k", "top_p") if name in fields}
    return fields | {"extra_body": fields.get("extra_body", {}) | beside}


def ask(server, **fields):
    return client(server).messages.create(**sampled({"model": MODEL, "messages": RIVERS, "max_tokens": 12} | fields))


def test_messages(server):
    reply = ask(server, temperature=0, system="Be brief.")
    assert reply.type == "message" and reply.role == "assistant" and reply.stop_reason in ("end_turn", "max_tokens")
    assert reply._request_id
    assert reply.content[0].type == "text" and 0 < reply.usage.output_tokens <= 12
    text = reply.content[0].text
    cut = ask(server, temperature=0, system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
              stop_sequences=[text[4:7]])
    assert (cut.stop_reason, cut.stop_sequence, cut.content[0].text) == ("stop_sequence", text[4:7], text[:text.index(text[4:7])])
    assert cut.usage.cache_read_input_tokens > 0
    turns = RIVERS + [{"role": "assistant", "content": reply.content}, {"role": "user", "content": [{"type": "text", "text": "Go on."}]}]
    ask(server, messages=turns, top_k=5, top_p=0.9, metadata={"user_id": "ada"})
    going = ask(server, messages=RIVERS + [{"role": "assistant", "content": "Rivers are"}], temperature=0)
    assert going.content[0].text


def test_streams_equal_plain_replies(server):
    plain = ask(server, temperature=0)
    events = list(ask(server, temperature=0, stream=True))
    assert [e.type for e in events[:2]] == ["message_start", "content_block_start"]
    assert [e.type for e in events[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
    assert "".join(e.delta.text for e in events if e.type == "content_block_delta") == plain.content[0].text
    assert events[-2].delta.stop_reason == plain.stop_reason and events[-2].usage.output_tokens == plain.usage.output_tokens
    with client(server).messages.stream(**sampled({"model": MODEL, "messages": RIVERS, "max_tokens": 12, "temperature": 0})) as stream:
        assert "".join(stream.text_stream) == plain.content[0].text
        assert stream.get_final_message().stop_reason == plain.stop_reason


def test_tools(server):
    fields = {"tools": [TOOL], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "max_tokens": 100, "temperature": 0}
    reply = ask(server, **fields)
    call = next(b for b in reply.content if b.type == "tool_use")
    assert reply.stop_reason == "tool_use" and call.name == "weather" and isinstance(call.input["city"], str)
    with client(server).messages.stream(**sampled({"model": MODEL, "messages": RIVERS} | fields)) as stream:
        same = next(b for b in stream.get_final_message().content if b.type == "tool_use")
    assert same.input == call.input
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    turns = RIVERS + [{"role": "assistant", "content": reply.content}, {"role": "user", "content": [result, {"type": "text", "text": "So?"}]}]
    ask(server, messages=turns, tools=[TOOL])
    named = ask(server, tools=[TOOL], tool_choice={"type": "tool", "name": "weather"}, max_tokens=100, temperature=0)
    assert named.content[-1].type == "tool_use"
    assert all(b.type != "tool_use" for b in ask(server, tools=[TOOL], tool_choice={"type": "none"}).content)


def test_structured_output(server):
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}
    reply = ask(server, output_config={"format": {"type": "json_schema", "schema": schema}}, max_tokens=100, temperature=0)
    assert reply.stop_reason != "end_turn" or list(json.loads(reply.content[0].text)) == ["a"]


def test_counting(server):
    count = client(server).messages.count_tokens(model=MODEL, messages=RIVERS, system="Be brief.").input_tokens
    usage = ask(server, system="Be brief.").usage
    assert count == usage.input_tokens + usage.cache_read_input_tokens
    assert client(server).messages.count_tokens(model=MODEL, messages=RIVERS, tools=[TOOL]).input_tokens > count


def expect(kind, said, call):
    try:
        call()
    except kind as e:
        assert e.body["type"] == "error" and said in e.body["error"]["message"], e.body
        return
    raise AssertionError(f"no {kind.__name__}")


def test_errors(server):
    try:
        client(server, "sk-wrong").messages.create(model=MODEL, messages=RIVERS, max_tokens=1)
        raise AssertionError("a wrong key")
    except anthropic.AuthenticationError:
        pass
    expect(anthropic.NotFoundError, "none", lambda: ask(server, model="none"))
    expect(anthropic.BadRequestError, "temperature", lambda: ask(server, temperature=1.5))
    expect(anthropic.BadRequestError, "max_tokens", lambda: ask(server, max_tokens=0))
    expect(anthropic.BadRequestError, "colour", lambda: ask(server, extra_body={"colour": 1}))
    expect(anthropic.BadRequestError, "context", lambda: ask(server, messages=[{"role": "user", "content": "word " * 3000}]))
    expect(anthropic.BadRequestError, "thinking", lambda: ask(server, max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024}))
    expect(anthropic.BadRequestError, "messages[0].content[0].type",
           lambda: ask(server, messages=[{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]))
    expect(anthropic.BadRequestError, "tools[0].input_schema",
           lambda: ask(server, tools=[TOOL | {"input_schema": {"type": "object", "properties": {"a": {"type": "colour"}}}}]))
    expect(anthropic.BadRequestError, "tool_choice.name", lambda: ask(server, tools=[TOOL], tool_choice={"type": "tool", "name": "other"}))


def test_cancel(server):
    with client(server).messages.create(model=MODEL, messages=RIVERS, max_tokens=900, stream=True) as stream:
        next(iter(stream))
    assert idle(server)


if __name__ == "__main__":
    with serve() as running:
        run(running, globals())
