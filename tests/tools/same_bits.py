#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `juno logits --hash` to tests/golden/logits.txt:  same_bits.py JUNO [--once] [--write]

Every line of the golden file is run with several numbers of threads, chunks and contexts (with --once: one of each);
all must give the line's hash. --write puts the hashes of this program into the file, for docs/numerics.md §11.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/logits.txt"
THREADS, CHUNKS, CONTEXTS = (1, 2, 5), (1, 7, 32, 512), (64, 512)


def logits_hash(juno, model, profile, ids, threads, chunk, context):
    command = [juno, "logits", "--model-path", str(ROOT / model), "--ids", ids, "--positions", "all", "--activations", profile,
               "--threads", str(threads), "--chunk", str(chunk), "--context", str(context), "--hash"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def ways(once):
    if once:
        return [(2, 32, 64)]
    return [(t, 32, 64) for t in THREADS] + [(2, c, 64) for c in CHUNKS] + [(2, 512, c) for c in CONTEXTS]


def main():
    juno, once = sys.argv[1], "--once" in sys.argv
    lines, faults = [], 0
    for line in GOLDEN.read_text().splitlines():
        if not line or line.startswith("#"):
            lines.append(line)
            continue
        model, profile, ids, golden = line.split()
        if "--write" in sys.argv:
            golden = logits_hash(juno, model, profile, ids, *ways(True)[0])
        lines.append(f"{model} {profile} {ids} {golden}")
        for way in ways(once):
            found = logits_hash(juno, model, profile, ids, *way)
            if found != golden:
                faults += 1
                print(f"{model} {profile}: threads, chunk, context {way} give {found}, the golden file says {golden}")
    if "--write" in sys.argv:
        GOLDEN.write_text("\n".join(lines) + "\n")
    print(f"{faults} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
