#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official Python client of OpenAI: chat, streams, tools, structured output, embeddings, responses, errors, cancelling."""
import json

from client import CITY, KEY, MODEL, idle, run, serve, skip

try:
    import openai
    from pydantic import BaseModel
except ImportError as e:
    skip(f"the package openai is not installed: {e}")

RIVERS = [{"role": "user", "content": "Say something about rivers."}]
TOOL = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": CITY}}


class Place(BaseModel):
    name: str
    size: int


def client(server, key=KEY, strict=True):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0, _strict_response_validation=strict)


def test_models(server):
    assert [m.id for m in client(server).models.list()] == [MODEL]
    assert client(server).models.retrieve(MODEL).id == MODEL


def test_chat(server):
    reply = client(server).chat.completions.create(model=MODEL, messages=RIVERS, max_tokens=12, temperature=0, logprobs=True, top_logprobs=2)
    choice = reply.choices[0]
    assert choice.finish_reason in ("stop", "length") and choice.message.role == "assistant"
    assert len(choice.logprobs.content) == reply.usage.completion_tokens and reply.usage.total_tokens > 12
    two = client(server).chat.completions.create(model=MODEL, messages=RIVERS, max_tokens=6, n=2, seed=4)
    assert [c.index for c in two.choices] == [0, 1]


def test_streams_equal_plain_replies(server):
    fields = {"model": MODEL, "messages": RIVERS, "max_tokens": 20, "temperature": 0}
    plain = client(server).chat.completions.create(**fields)
    chunks = list(client(server).chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == plain.choices[0].message.content
    assert chunks[-1].usage == plain.usage or chunks[-1].usage.completion_tokens == plain.usage.completion_tokens
    with client(server).chat.completions.stream(**fields) as stream:
        assert [e for e in stream if e.type == "chunk"][-1].snapshot.choices[0].message.content == plain.choices[0].message.content


def test_tools(server):
    fields = {"model": MODEL, "messages": RIVERS, "tools": [TOOL], "tool_choice": "required", "max_tokens": 100, "seed": 1}
    reply = client(server).chat.completions.create(**fields, parallel_tool_calls=False)
    call = reply.choices[0].message.tool_calls[0]
    assert reply.choices[0].finish_reason == "tool_calls" and call.function.name == "weather"
    assert isinstance(json.loads(call.function.arguments)["city"], str)
    arguments = ""
    for chunk in client(server).chat.completions.create(**fields, stream=True, parallel_tool_calls=False):
        for part in chunk.choices[0].delta.tool_calls or []:
            arguments += part.function.arguments or ""
    assert json.loads(arguments) == json.loads(call.function.arguments)
    turn = [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    assert client(server).chat.completions.create(model=MODEL, messages=RIVERS + turn, max_tokens=6).choices[0].message.content is not None


def test_structured_output(server):
    for seed in range(8):
        try:
            reply = client(server).chat.completions.parse(model=MODEL, messages=RIVERS, response_format=Place, max_tokens=120, seed=seed)
        except openai.LengthFinishReasonError:
            continue
        assert isinstance(reply.choices[0].message.parsed, Place)
        return
    raise AssertionError("no reply of eight ended")


def test_embeddings(server):
    floats = client(server).embeddings.create(model=MODEL, input=["a river", "the sea"], encoding_format="float")
    # It asks for base64 by itself and decodes that, but only after its own strict mode has refused it.
    packed = client(server, strict=False).embeddings.create(model=MODEL, input=["a river", "the sea"])
    assert [d.index for d in floats.data] == [0, 1] and len(floats.data[0].embedding) > 8
    assert [d.embedding for d in floats.data] == [d.embedding for d in packed.data]


def test_responses(server):
    first = client(server).responses.create(model=MODEL, input="My name is Ada.", instructions="Be brief.", max_output_tokens=10, temperature=0)
    assert first.status in ("completed", "incomplete") and first.usage.output_tokens <= 10
    assert first.status == "completed" or first.incomplete_details.reason == "max_output_tokens"
    second = client(server).responses.create(model=MODEL, input="And yours?", previous_response_id=first.id, max_output_tokens=8)
    assert second.previous_response_id == first.id and second.usage.input_tokens > 8
    items = [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}] + [i for i in first.output] + [{"role": "user", "content": "Go on"}]
    client(server).responses.create(model=MODEL, input=items, max_output_tokens=4)


def test_responses_stream(server):
    fields = {"model": MODEL, "input": "Say something about rivers.", "max_output_tokens": 16, "temperature": 0}
    plain = client(server).responses.create(**fields)
    events = list(client(server).responses.create(**fields, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == plain.output_text == events[-1].response.output_text
    with client(server).responses.stream(**fields) as stream:
        assert [e for e in stream][-1].response.output_text == plain.output_text  # get_final_response() knows no incomplete one


def test_responses_tools_and_formats(server):
    tool = {"type": "function", "name": "weather", "description": "The weather.", "parameters": CITY, "strict": True}
    fields = {"model": MODEL, "input": "How is it in Rome?", "tools": [tool], "tool_choice": "required", "max_output_tokens": 100}
    reply = client(server).responses.create(**fields, parallel_tool_calls=False, temperature=0)
    call = next(i for i in reply.output if i.type == "function_call")
    assert call.name == "weather" and isinstance(json.loads(call.arguments)["city"], str)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    client(server).responses.create(model=MODEL, previous_response_id=reply.id, input=[result], max_output_tokens=4)
    events = list(client(server).responses.create(**fields, parallel_tool_calls=False, temperature=0, stream=True))
    assert "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta") == call.arguments
    form = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}}}
    held = client(server).responses.create(model=MODEL, input="x", text=form, max_output_tokens=60)
    assert held.status == "incomplete" or list(json.loads(held.output_text)) == ["a"]


def expect(kind, code, call):
    try:
        call()
    except kind as e:
        assert e.code == code, (e.code, code)
        return
    raise AssertionError(f"no {kind.__name__}")


def test_errors(server):
    c = client(server)
    chat = c.chat.completions.create
    expect(openai.AuthenticationError, "invalid_api_key", lambda: client(server, "sk-wrong").models.list())
    expect(openai.NotFoundError, "model_not_found", lambda: chat(model="none", messages=RIVERS))
    expect(openai.BadRequestError, "decimal_above_max_value", lambda: chat(model=MODEL, messages=RIVERS, temperature=3))
    expect(openai.BadRequestError, "unknown_parameter", lambda: chat(model=MODEL, messages=RIVERS, extra_body={"colour": 1}))
    expect(openai.BadRequestError, "context_length_exceeded", lambda: chat(model=MODEL, messages=[{"role": "user", "content": "word " * 3000}]))
    expect(openai.BadRequestError, "previous_response_not_found",
           lambda: c.responses.create(model=MODEL, input="a", previous_response_id="resp_none"))
    expect(openai.BadRequestError, "unsupported_value", lambda: c.responses.create(model=MODEL, input="a", truncation="auto"))
    expect(openai.BadRequestError, "unsupported_value", lambda: c.responses.create(model=MODEL, input="a", tools=[{"type": "web_search"}]))


def test_cancel(server):
    before = server.metric("juno_requests_total", outcome="cancelled")
    long = {"max_tokens": 900, "extra_body": {"ignore_eos": True}}
    stream = client(server).chat.completions.create(model=MODEL, messages=RIVERS, stream=True, **long)
    next(iter(stream))
    stream.close()
    server.cancelled(before + 1)
    with client(server).responses.create(model=MODEL, input="Count for ever.", stream=True, max_output_tokens=900) as events:
        next(iter(events))
    assert idle(server)


if __name__ == "__main__":
    with serve() as running:
        run(running, globals())
