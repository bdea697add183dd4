#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that schemathesis makes from /openapi.json, wrong and right ones: none may give a 5xx or end the server.

fuzz_requests.py [EXAMPLES]: so many in all, by default 300.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from client import KEY, MODEL, serve, skip

beside = os.path.join(os.path.dirname(sys.executable), "schemathesis")
program = beside if os.path.exists(beside) else shutil.which("schemathesis")
if not program:
    skip("schemathesis is not installed")
wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def narrowed(value):
    """With the only model's name for every model, and short replies, so that requests get past both."""
    if isinstance(value, list):
        return [narrowed(v) for v in value]
    if not isinstance(value, dict):
        return value
    out = {k: narrowed(v) for k, v in value.items()}
    for name, schema in (value.get("properties") or {}).items():
        if name == "model" and isinstance(schema, dict):
            out["properties"][name] = {"const": MODEL}
        if name in ("max_tokens", "max_completion_tokens", "max_output_tokens") and isinstance(schema, dict):
            out["properties"][name] = {"type": "integer", "minimum": 1, "maximum": 8}
            required = out.setdefault("required", [])
            older = name == "max_tokens" and "max_completion_tokens" in value["properties"]
            if name not in required and not older:
                required.append(name)
    return out


with serve() as server, tempfile.TemporaryDirectory() as folder:
    document = narrowed(server.request("GET", "/openapi.json", Authorization=f"Bearer {KEY}").json())
    each = -(-wanted // sum(len(methods) for methods in document["paths"].values()))
    path = os.path.join(folder, "openapi.json")
    with open(path, "w") as f:
        json.dump(document, f)
    done = subprocess.run([program, "run", path, "--url", server.url, "--header", f"Authorization: Bearer {KEY}", "--max-examples", str(each),
                           "--phases", "fuzzing", "--mode", "all", "--checks", "not_a_server_error", "--seed", "7", "--generation-database", "none",
                           "--suppress-health-check", "all", "--request-timeout", "60", "--continue-on-failure", "--no-color"], cwd=folder)
    assert server.process.poll() is None, f"the server has ended: {server.logged()[-4000:]}"
    assert server.request("GET", "/health").status == 200
sys.exit(done.returncode)
