#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that schemathesis makes from /openapi.json, wrong and right ones: none may give a 5xx or end the server.

fuzz_requests.py [EXAMPLES]: so many in all, by default 300.
"""
import os
import shutil
import subprocess
import sys

from client import KEY, serve, skip

beside = os.path.join(os.path.dirname(sys.executable), "schemathesis")
program = beside if os.path.exists(beside) else shutil.which("schemathesis")
if not program:
    skip("schemathesis is not installed")
wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 300
with serve() as server:
    paths = server.request("GET", "/openapi.json", Authorization=f"Bearer {KEY}").json()["paths"]
    each = -(-wanted // sum(len(methods) for methods in paths.values()))
    done = subprocess.run([program, "run", f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {KEY}", "--max-examples", str(each),
                           "--phases", "fuzzing", "--mode", "all", "--checks", "not_a_server_error", "--seed", "7", "--generation-database", "none",
                           "--suppress-health-check", "all", "--request-timeout", "60", "--continue-on-failure", "--no-color"])
    assert server.process.poll() is None, f"the server has ended: {server.logged()[-4000:]}"
    assert server.request("GET", "/health").status == 200
sys.exit(done.returncode)
