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
FAILED, USAGE, BAD_DATA, NO_INPUT, CONFIG = 1, 2, 65, 66, 78
NOT_FINITE = ("blk.", "layer", "token_embd", "output")  # what the error of a weight that is not finite names
OTHER_MODELS = ("number-block_count-1.gguf", "missing-output.weight.gguf")  # load, but are another model than valid.gguf


def run(juno, *arguments):
    """(exit status, stderr, peak MiB, seconds, stdout) of one child."""
    with tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as out:
        child = subprocess.Popen(["timeout", "20", juno, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)  # the only wait that tells the child's memory
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0), out.seek(0)
        said, printed = (f.read().decode(errors="replace") for f in (err, out))
    return child.returncode, said, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, printed


def complete(juno, path, *arguments):
    return run(juno, "local", "--model-path", str(path), "--no-chat", "--prompt", "a", "--max-tokens", "1",
               "--temperature", "0", "--threads", "1", "--quiet", *arguments)


def chat(juno, path):
    return run(juno, "local", "--model-path", str(path), "--prompt", "a", "--max-tokens", "1", "--threads", "1", "--quiet")


def logits(juno, path):
    return run(juno, "logits", "--model-path", str(path), "--ids", "1,2,3,104,200", "--positions", "all", "--hash")[4]


def loading(row, juno, path, outcome):
    status, said, _, _, printed = outcome
    must, kind = row["must"], row["kind"]
    if kind == "weights":
        if status != FAILED or printed.strip() or not any(name in said for name in NOT_FINITE):
            yield f"the first forward pass must end with {FAILED}, name the layer or tensor and print no token"
        return
    if must == "reject":
        if status not in (BAD_DATA, NO_INPUT):
            yield f"must end with {BAD_DATA}"
        return
    if status != 0:
        yield "must load"
    if must == "load" and kind not in ("template", "missing") and said.strip():
        yield "must load without a word"
    if row["file"] not in OTHER_MODELS and logits(juno, path) != logits(juno, path.with_name("valid.gguf")):
        yield "must give the logits of valid.gguf"


def faults(row, juno, folder, limits):
    """Sentences on what this file did and should not have done."""
    path = folder / row["file"]
    outcome = complete(juno, path)
    _, said, memory, seconds, _ = outcome
    word, then = row["expect_substring"], row.get("then", "")
    yield from loading(row, juno, path, outcome)
    if word.lower() not in said.lower():
        yield f"stderr must hold '{word}'"
    if "chat request" in then:
        status, said, _, seconds, printed = chat(juno, path)
        if status not in (BAD_DATA, CONFIG) or "chat_template" not in said or printed:
            yield f"a chat must fail and name chat_template; it ended with {status}: {said.strip()[:300]}"
    if "never sampled" in then:
        # The strongest wish there is: refused, or without effect.
        status, said, _, _, printed = complete(juno, path, "--logit-bias", "299=100", "--json")
        if status != USAGE and (status != 0 or 299 in json.loads(printed)["ids"]):
            yield f"299 must never be sampled; it ended with {status}: {printed.strip()[:300]} {said.strip()[:300]}"
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
