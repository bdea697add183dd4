# SPDX-License-Identifier: Apache-2.0
"""What the suites of clients share: a server with a template that knows tools, and skipping aloud."""
import os
import sys

SOURCE = os.environ.get("JUNO_SOURCE_DIR", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "server"))
from serving import KEY, Server  # noqa: E402

MODEL = "juno-demo"
TOOLS_TEMPLATE = os.path.join(SOURCE, "tests", "data", "templates", "Qwen-Qwen2.5-7B-Instruct.jinja")
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def serve(*args):
    return Server("--chat-template", TOOLS_TEMPLATE, "--embeddings", "--store-responses", *args, JUNO_API_KEY=KEY)


def idle(server):
    """Whether nothing runs within ten seconds: what a client has left must not go on."""
    import time
    until = time.monotonic() + 10
    while server.metric("juno_requests_running"):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def run(server, tests):
    for name, test in list(tests.items()):
        if name.startswith("test_"):
            test(server)
            print(f"ok {name}", flush=True)
