#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every damaged or unusual file does as the manifest of make_bad_gguf.py says:  run_bad_gguf.py JUNO FOLDER [--measure]

FOLDER receives the files. JUNO may be a program with sanitizers; --measure, for one without, also holds memory to the
file's size and 32 MiB, and time to two seconds.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MAKER = pathlib.Path(__file__).with_name("make_bad_gguf.py")
BAD_DATA, NO_INPUT = 65, 66
NOT_FINITE = ("blk.", "layer", "token_embd", "output")  # what the error of a weight that is not finite names


def run(juno, *arguments):
    """(exit status, stderr, peak MiB, seconds) of one child."""
    with tempfile.TemporaryFile() as err:
        child = subprocess.Popen(["timeout", "20", juno, *arguments], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)  # the only wait that tells the child's memory
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        text = err.read().decode(errors="replace")
    return child.returncode, text, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def complete(juno, path):
    return run(juno, "local", "--model-path", str(path), "--no-chat", "--prompt", "a", "--max-tokens", "1",
               "--temperature", "0", "--threads", "1")


def chat(juno, path):
    return run(juno, "local", "--model-path", str(path), "--prompt", "a", "--max-tokens", "1", "--threads", "1")


def faults(row, juno, folder, limits):
    """Sentences on what this file did and should not have done."""
    path = folder / row["file"]
    status, text, memory, seconds = complete(juno, path)
    must, word = row["must"], row["expect_substring"]
    if row["kind"] == "weights":
        if status != 1 or not any(name in text for name in NOT_FINITE):
            yield "the first forward pass must end with 1 and name the layer or tensor"
    elif must == "reject" and status not in (BAD_DATA, NO_INPUT):
        yield f"must end with {BAD_DATA}"
    elif must != "reject" and status != 0:
        yield "must load"
    if word.lower() not in text.lower():
        yield f"stderr must hold '{word}'"
    if must == "load" and row["kind"] not in ("weights", "template", "missing") and text.strip():
        yield "must load without a word"
    if "chat request" in row.get("then", ""):
        status, said, _, seconds = chat(juno, path)
        if status not in (1, BAD_DATA) or "chat_template" not in said:
            yield f"a chat must fail and name chat_template; it ended with {status}: {said.strip()[:300]}"
    if limits:
        size = path.stat().st_size / 2**20 if path.is_file() else 0
        if memory > limits["MiB"] + size + 32:
            yield f"took {memory:.0f} MiB"
        if seconds > 2:
            yield f"took {seconds:.1f} s"


def main():
    juno, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    subprocess.run([sys.executable, str(MAKER), str(folder)], check=True, stdout=subprocess.DEVNULL)
    rows = json.loads((folder / "manifest.json").read_text())
    limits = {"MiB": run(juno, "--version")[2]} if "--measure" in sys.argv else None
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda row: list(faults(row, juno, folder, limits)), rows))
    bad = 0
    for row, sentences in zip(rows, found):
        for sentence in sentences:
            print(f"{row['file']} ({row['why']}): {sentence}")
        bad += bool(sentences)
        if sentences:
            print("    it said:", complete(juno, folder / row["file"])[:2])
    print(f"{len(rows) - bad} of {len(rows)} files do as they must")
    return 1 if bad or len(rows) < 205 else 0


if __name__ == "__main__":
    sys.exit(main())
