# SPDX-License-Identifier: Apache-2.0
"""Weights are mapped, not copied: a chat takes the file, the keys and values, and 100 MB at most."""
import json
import os
import subprocess
import tempfile

from juno import GREEDY, JUNO, SOURCE, environment, main, run, test_model

MB = 1_000_000


def peak(*args):
    """Bytes that the program had in memory at most."""
    with tempfile.TemporaryDirectory() as state:
        child = subprocess.Popen([JUNO, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment(state))
        _, status, usage = os.wait4(child.pid, 0)  # the only wait that tells the child's memory
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, child.returncode
    return usage.ru_maxrss * 1024


def holds(path, context, *model):
    report = json.loads(run("inspect", path, "--json")[1])
    kv = report["memory"]["kv_bytes_per_token"] * -(-context // 64) * 64
    most = report["bytes"] + kv + 100 * MB
    took = peak("local", *model, *GREEDY, "--context", str(context), "--max-tokens", "60", "--quiet", "--prompt",
                "Tell me about the sun. " * 20)
    print(f"peak {took / MB:.1f} MB; file {report['bytes'] / MB:.1f} MB, keys and values {kv / MB:.1f} MB")
    assert took <= most, f"{took} bytes, at most {most}"


def test_a_chat_takes_the_file_the_cache_and_little_more():
    demo = os.path.join(SOURCE, "models/juno-demo-23m.Q8_0.gguf")
    holds(demo, 512)
    holds(demo, 1024, "--model-path", demo)


def test_a_chat_with_SmolLM2_takes_the_file_the_cache_and_little_more():
    path = test_model("SmolLM2-135M-Instruct.Q4_1.gguf")
    holds(path, 2048, "--model-path", path)


if __name__ == "__main__":
    main(globals())
