#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Send the request cases to a running server and check the replies.

    run_requests.py --url http://127.0.0.1:8080 --model NAME [--embed-model NAME] [--key K] [--has tools,embeddings] FILE.json...

FILE is cases/files/bad_requests.json or good_requests.json. A case whose `needs` are not in --has is counted as skipped. A bad_requests
case with a wrong key is skipped without --key. Exit 0: all passed; 1: something failed; 2: something was skipped, nothing failed.
Standard library only; `parses` also wants the package jsonschema.
"""
import argparse
import codecs
import http.client
import json
import re
import sys
from urllib.parse import urlsplit

TYPES = {"string": str, "integer": int, "number": (int, float), "array": list, "object": dict, "boolean": bool}


def send(url, case, names, key, timeout):
    """(status, headers, body bytes) of one case."""
    if "repeat" in case:
        r = case["repeat"]
        body = r["before"] + r["unit"] * r["times"] + r["after"]
    else:
        body = case["raw"] if "raw" in case else json.dumps(case["body"]) if "body" in case else ""
    for name, value in names.items():
        body = body.replace(name, value)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {}) | case.get("headers", {})
    u = urlsplit(url)
    conn = (http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection)(u.hostname, u.port, timeout=timeout)
    try:
        try:
            conn.request(case.get("method", "POST"), u.path.rstrip("/") + case["endpoint"], body.encode(), headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server may answer 413 before it has read everything
        reply = conn.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        conn.close()


def assemble(raw):
    """One object from an event stream: what good_requests.json calls text, done, usage_chunks …"""
    out = {"text": "", "done": False, "usage_chunks": 0, "usage_choices": None, "usage": None, "finish_reason": None,
           "role_chunks": 0, "bad_utf8": 0}
    for event in raw.split(b"\n\n"):
        if not event.startswith(b"data: "):
            continue
        data = event[6:]
        if data == b"[DONE]":
            out["done"] = True
            continue
        try:
            text = codecs.decode(data, "utf-8")
        except UnicodeDecodeError:
            out["bad_utf8"] += 1
            continue
        chunk = json.loads(text)
        if "error" in chunk:
            out["error"] = chunk["error"]
            continue
        if chunk.get("usage"):
            out["usage_chunks"] += 1
            out["usage"], out["usage_choices"] = chunk["usage"], chunk["choices"]
        for c in chunk["choices"]:
            delta = c.get("delta", {})
            out["role_chunks"] += "role" in delta
            out["text"] += delta.get("content") or ""
            out["finish_reason"] = c.get("finish_reason") or out["finish_reason"]
    out["bad_utf8"] += out["text"].count("\ufffd")
    return out


def get(obj, path):
    """(found, value) at a dotted path."""
    for step in path.split("."):
        if isinstance(obj, list) and step.isdigit() and int(step) < len(obj):
            obj = obj[int(step)]
        elif isinstance(obj, dict) and step in obj:
            obj = obj[step]
        else:
            return False, None
    return True, obj


def other(path, reply, replies):
    """A value of this reply, or with "G01:path" of an earlier one."""
    case, _, rest = path.rpartition(":")
    return get(replies.get(case) if case else reply, rest)[1]


def fits(text, schema):
    import jsonschema
    try:
        jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)
        return True
    except (ValueError, jsonschema.ValidationError):
        return False


def holds(check, reply, replies, names):
    """Whether one check of a good case holds."""
    found, v = get(reply, check["at"])
    verb, want = next((k, x) for k, x in check.items() if k != "at")
    if verb == "absent":
        return not found
    tests = {
        "is": lambda: v == names.get(want, want) if isinstance(want, str) else v == want, "in": lambda: v in want,
        "type": lambda: isinstance(v, TYPES[want]) and (want == "boolean" or not isinstance(v, bool)),
        "length": lambda: len(v) == want, "length_of": lambda: len(v) == other(want, reply, replies),
        "min": lambda: v >= want and v <= check.get("max", v), "max": lambda: v <= want and v >= check.get("min", v),
        "sum": lambda: v == sum(other(p, reply, replies) for p in want), "matches": lambda: re.search(want, v) is not None,
        "starts": lambda: v.startswith(want), "without": lambda: want not in v, "equals": lambda: v == other(want, reply, replies),
        "parses": lambda: fits(v, want),
        "parses_if_stop": lambda: get(reply, "choices.0.finish_reason")[1] != "stop" or fits(v, want)}
    return found and tests[verb]()


def judge_bad(case, status, headers, raw):
    want = case["expect"]
    if status != want["status"]:
        return [f"status {status}, not {want['status']}"]
    try:
        error = json.loads(raw)["error"]
        got = {k: error[k] for k in ("type", "param", "code")}
        message = error["message"]
    except (ValueError, KeyError, TypeError):
        return [f"not an error object: {raw[:120]!r}"]
    faults = [f"{k} {got[k]!r}, not {want[k]!r}" for k in got if got[k] != want[k]]
    if want.get("message_contains", "") not in message:
        faults.append(f"message lacks {want['message_contains']!r}: {message}")
    faults += [f"header {k} is {headers.get(k)!r}" for k, v in want.get("header", {}).items() if v not in (headers.get(k) or "")]
    return faults


def judge_good(case, status, raw, replies, names):
    if status != 200:
        return [f"status {status}: {raw[:200]!r}"]
    reply = assemble(raw) if case["body"].get("stream") else json.loads(raw)
    replies[case["id"]] = reply
    faults = []
    for check in case["must"]:
        try:
            ok = holds(check, reply, replies, names)
        except TypeError:
            ok = False
        if not ok:
            faults.append(f"{json.dumps(check)} but there is {get(reply, check['at'])[1]!r:.120}")
    return faults


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+")
    p.add_argument("--url", default="http://127.0.0.1:8080")
    p.add_argument("--model", required=True)
    p.add_argument("--embed-model")
    p.add_argument("--key")
    p.add_argument("--has", default="")
    p.add_argument("--long", type=int, default=400000, help="words in $LONG, more than the context holds")
    p.add_argument("--timeout", type=float, default=120)
    a = p.parse_args()
    names = {"$EMBED_MODEL": a.embed_model or a.model, "$MODEL": a.model, "$LONG": "word " * a.long}
    replies, count = {}, {"passed": 0, "failed": 0, "skipped": 0}
    for file in a.files:
        with open(file) as f:
            cases = json.load(f)
        for case in cases:
            faults, verdict = [], "skipped"
            lacks = set(case.get("needs", [])) - set(a.has.split(","))
            if not lacks and not ("Authorization" in case.get("headers", {}) and not a.key):
                try:
                    status, headers, raw = send(a.url, case, names, a.key, a.timeout)
                    faults = judge_bad(case, status, headers, raw) if "expect" in case else judge_good(case, status, raw, replies, names)
                except (OSError, http.client.HTTPException, ValueError) as e:
                    faults = [f"no reply: {e!r}"]
                verdict = "failed" if faults else "passed"
            count[verdict] += 1
            if verdict != "passed":
                print(f"{verdict} {case['id']} {case['why']}" + "".join("\n    " + x for x in faults or [f"needs {sorted(lacks) or '--key'}"]))
    print(", ".join(f"{n} {k}" for k, n in count.items()))
    sys.exit(1 if count["failed"] else 2 if count["skipped"] else 0)


if __name__ == "__main__":
    main()
