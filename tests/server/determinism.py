#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C52, C36: mixed requests say the same, to the last bit of every logprob, alone and in random company, with a cold and a warm cache,
after they had to give way, with guesses from the prompt and from a draft model, and with another number of threads.

determinism.py [REQUESTS [REPORT]]: by default 24 requests and two long ones; REPORT is a JSON file of what was compared. The first run, of every request
alone under a salt of its own, is what the others are held to.
"""
import json
import os
import platform
import random
import sys
import threading
import time

from openai_test import MODEL, TOOLS_TEMPLATE, events
from serving import SOURCE, Server

DRAFT = os.path.join(SOURCE, "models", "juno-demo-23m.Q8_0.gguf")
WORDS = "river stone winter the a of light and quiet boat cold deep green moves slowly under old bridge where children sing".split()
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
          "required": ["name", "age"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}},
                                                                           "required": ["city"], "additionalProperties": False}}}
# What a company must have made happen, beyond equal replies: (metric, at least).
COMPANIES = [
    ("alone, warm cache", ["--sequences", "1"], 1, ("juno_cached_tokens_total", 1)),
    ("random company", ["--sequences", "4"], 24, ("juno_cached_tokens_total", 1)),
    ("giving way", ["--sequences", "16", "--kv-positions", "1152"], 24, ("juno_preempted_total", 1)),
    ("guesses from the prompt", ["--sequences", "8", "--prompt-lookup", "4"], 16, ("juno_accepted_tokens_total", 1)),
    ("guesses of a draft model", ["--sequences", "8", "--draft-model", DRAFT], 16, ("juno_accepted_tokens_total", 1)),
    ("one thread, small chunks", ["--sequences", "16", "--threads", "1", "--chunk", "24"], 24, ("juno_new_tokens_total", 1)),
]


def words(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def sampling(rng):
    """Half of them greedy; the others with a seed and whatever else moves a choice."""
    if rng.random() < 0.4:
        return {"temperature": 0}
    fields = {"temperature": rng.choice([0.3, 1, 2]), "seed": rng.randrange(2**32)}
    for name, values in (("top_p", [0.5, 0.95]), ("top_k", [3, 40]), ("min_p", [0.05]), ("repetition_penalty", [1.3]),
                         ("presence_penalty", [1]), ("frequency_penalty", [0.7]), ("logit_bias", [{"300": 5, "301": -100}])):
        if rng.random() < 0.25:
            fields[name] = rng.choice(values)
    return fields


def requests(count):
    """[(path, body)], the same ones each time; some begin alike, some go on with a session. The first two are long enough to need
    more than the least pool between them, so that while both run one must give way."""
    rng = random.Random(52)
    heads = [words(rng, 150) for _ in range(4)]
    out = []
    for i in range(count):
        text = (rng.choice(heads) + " " if rng.random() < 0.5 else "") + words(rng, rng.choice([1, 5, 40, 130]))
        body = {"model": MODEL, "max_tokens": rng.choice([1, 8, 30, 80])} | sampling(rng)
        if rng.random() < 0.2:
            body["n"] = 2
        if rng.random() < 0.2:
            body["stop"] = [rng.choice(["e", "the", ". "]), "\n\n"]
        if rng.random() < 0.3:
            body["ignore_eos"] = True
        body["x_juno_priority"] = rng.choice(["HIGH", "NORMAL", "LOW"])
        if rng.random() < 0.15:
            body["session_id"] = f"session-{i % 3}"
        if rng.random() < 0.35:
            body |= {"prompt": text, "logprobs": 2}
            if rng.random() < 0.3:
                body["echo"] = True
            path = "/v1/completions"
        else:
            body |= {"messages": [{"role": "user", "content": text}], "logprobs": True, "top_logprobs": 2}
            if rng.random() < 0.3:
                body["messages"] += [{"role": "assistant", "content": words(rng, 20)}, {"role": "user", "content": words(rng, 5)}]
            kind = rng.random()
            if kind < 0.12:
                body |= {"json_schema": SCHEMA}
            elif kind < 0.2:
                body |= {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
            elif kind < 0.26:
                body |= {"grammar": 'root ::= ("yes" | "no" | "may" "be"?) " " [a-z]{3,9}'}
            path = "/v1/chat/completions"
        body["stream"] = rng.random() < 0.4
        out.append((path, body))
    long = {"model": MODEL, "max_tokens": 900, "ignore_eos": True, "logprobs": 1, "stream": True, "temperature": 0}
    return [("/v1/completions", long | {"prompt": words(rng, 5), "x_juno_priority": "LOW"}) for _ in range(2)] + out


def said_plain(reply):
    """{choice: all that it said}, without what may differ: ids, times, what the cache held."""
    said = {}
    for choice in reply["choices"]:
        message = choice.get("message", choice)
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", [])]
        said[choice["index"]] = [message.get("content", message.get("text")) or "", calls, choice["finish_reason"], scores(choice["logprobs"])]
    return said


def scores(found):
    """[(token, logprob, alternatives)], of either route; the numbers as JSON had them."""
    if not found:
        return []
    if "content" in found:
        return [(t["bytes"], t["logprob"], [(o["bytes"], o["logprob"]) for o in t["top_logprobs"]]) for t in found["content"]]
    return list(zip(found["tokens"], found["token_logprobs"], [sorted((t or {}).items()) for t in found["top_logprobs"]]))


def said_stream(chunks):
    said = {}
    for chunk in chunks[:-1]:
        assert "error" not in chunk, chunk
        for choice in chunk["choices"]:
            one = said.setdefault(choice["index"], ["", [], None, []])
            delta = choice.get("delta", choice)
            one[0] += delta.get("content", delta.get("text")) or ""
            for call in delta.get("tool_calls", []):
                while len(one[1]) <= call["index"]:
                    one[1].append(("", ""))
                name, arguments = one[1][call["index"]]
                one[1][call["index"]] = (name + call["function"].get("name", ""), arguments + call["function"].get("arguments", ""))
            assert one[2] is None or not choice["finish_reason"]
            one[2] = one[2] or choice["finish_reason"]
            one[3] += scores(choice["logprobs"])
    return said


def ask(server, path, body):
    reply = server.request("POST", path, body, timeout=600)
    assert reply.status == 200, (path, body, reply.body[:500])
    if not body["stream"]:
        return said_plain(reply.json())
    chunks = events(reply.body)
    assert chunks[-1] == "[DONE]", chunks[-1]
    return said_stream(chunks)


def ask_all(server, todo, clients, seed):
    """The replies, in the order of todo, to requests that come in a random one from so many clients at once, the long ones first."""
    order = list(range(2, len(todo)))
    random.Random(seed).shuffle(order)
    order += [1, 0]
    replies, faults, lock = [None] * len(todo), [], threading.Lock()

    def client():
        while True:
            with lock:
                if not order or faults:
                    return
                i = order.pop()
            try:
                replies[i] = ask(server, *todo[i])
            except BaseException as e:
                with lock:
                    faults.append(f"request {i}: {e!r}")

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]
    return replies


def compare(want, got, todo, company):
    for i, (a, b) in enumerate(zip(want, got)):
        assert a == b, f"{company}: request {i} differs: {json.dumps(todo[i])}\n  alone: {json.dumps(a)[:2000]}\n  here:  {json.dumps(b)[:2000]}"


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} threads"


def main(count, report=None):
    todo = requests(count)
    told = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "requests": len(todo), "runs": []}
    with Server("--quiet", "--chat-template", TOOLS_TEMPLATE, "--sequences", "1") as server:
        cold = [(path, {k: v for k, v in body.items() if k != "session_id"} | {"cache_salt": f"only-{i}"}) for i, (path, body) in enumerate(todo)]
        want = ask_all(server, cold, 1, 0)
        assert server.metric("juno_cached_tokens_total") == 0
        told["program"] = server.request("GET", "/health").json()["version"]
        tokens = sum(len(one[3]) for said in want for one in said.values())
        told |= {"streams": sum(body["stream"] for _, body in todo), "choices": sum(len(said) for said in want), "logprobs_compared": tokens}
    for seed, (company, args, clients, (metric, least)) in enumerate(COMPANIES):
        began = time.monotonic()
        with Server("--quiet", "--chat-template", TOOLS_TEMPLATE, *args) as server:
            server.request("POST", "/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 1})  # until it is loaded others get 503
            for again in range(2 if company == "alone, warm cache" else 1):
                compare(want, ask_all(server, todo, clients, seed + again), todo, company)
            happened = server.metric(metric)
            assert happened >= least, (company, metric, happened)
            run = {"company": company, "options": " ".join(os.path.basename(a) for a in args), "clients": clients, metric: int(happened),
                   "seconds": round(time.monotonic() - began, 1)}
            told["runs"].append(run)
            print(json.dumps(run), flush=True)
    print(f"{len(todo)} requests, {told['choices']} choices, {tokens} logprobs: equal in {len(COMPANIES)} companies")
    if report:
        with open(report, "w") as f:
            json.dump(told, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24, *sys.argv[2:3])
