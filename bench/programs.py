# SPDX-License-Identifier: Apache-2.0
"""Juno and llama.cpp as programs that measure one test at a time."""
import json
import re
import shlex
from typing import NamedTuple

from measuring import Failed, parsed, run


class Test(NamedTuple):
    kind: str  # prompt or decode
    tokens: int
    depth: int = 0  # tokens in the cache before
    batch: int = 1  # sequences at once

    def __str__(self):
        return f"{self.kind} {self.tokens}" + f" at {self.depth}" * (self.depth > 0) + f" × {self.batch}" * (self.batch > 1)


def test(word):
    """prompt:512, decode:128, decode:128@4096, decode:128x8 -> Test. ValueError for anything else."""
    m = re.fullmatch(r"(prompt|decode):(\d+)(?:@(\d+))?(?:x(\d+))?", word)
    t = m and Test(m[1], int(m[2]), int(m[3] or 0), int(m[4] or 1))
    if not t or t.tokens < 1 or t.batch < 1 or (t.kind == "prompt" and t.batch > 1):
        raise ValueError(word)
    return t


class Program:
    """`threads` of both; `more` are words for every call that measures speed."""

    def __init__(self, paths, threads, more):
        self.paths, self.threads, self.more = paths, threads, more
        self.version = self.machine = None

    def speed(self, model, t):
        """-> tokens a second."""
        command = self.command(model, t)
        return self.read(command, run(command), t)

    def start(self, model):
        """-> seconds of a process that opens the model, evaluates one token and ends."""
        return run(self.one_token(model)).seconds

    def memory(self, model, tokens):
        """-> bytes that a process has at most which processes a prompt."""
        return run(self.one_prompt(model, tokens)).peak

    def hold_threads(self, command, threads):
        if threads != self.threads:
            raise Failed(f"{shlex.join(command)} used {threads} threads, not {self.threads}")


class Llama(Program):
    """paths: (llama-bench, llama-batched-bench or None). It turns weights of some formats into a layout of its own, which it
    does unless told not to; either may be the faster."""

    def __init__(self, *args, repack):
        super().__init__(*args)
        self.name = "llama.cpp" if repack else "llama.cpp without repacking"
        self.as_bench, self.as_batched = ([], []) if repack else (["--repack", "0"], ["--no-repack"])

    def command(self, model, t):
        common = ["-m", model, "-t", str(self.threads), "-ngl", "0", *self.more]
        if t.batch == 1:
            p, n = (t.tokens, 0) if t.kind == "prompt" else (0, t.tokens)
            return [self.paths[0], *common, *self.as_bench, "-r", "1", "-o", "json", "-p", str(p), "-n", str(n), "-d", str(t.depth)]
        prompt = max(t.depth, 1)  # it cannot begin with nothing
        return [self.paths[1], *common, *self.as_batched, "-c", str(t.batch * (prompt + t.tokens)), "-npp", str(prompt), "-ntg", str(t.tokens),
                "-npl", str(t.batch), "--output-format", "jsonl"]

    def one_token(self, model):
        return self.one_prompt(model, 1)

    def one_prompt(self, model, tokens):
        return [self.paths[0], "-m", model, "-t", str(self.threads), "-ngl", "0", *self.more, *self.as_bench, "-p", str(tokens), "-n", "0",
                "-r", "1", "--no-warmup", "-o", "json"]

    def read(self, command, ran, t):
        if t.batch == 1:
            (e,) = parsed(command, ran.said)
            self.version = f'{e["build_commit"]} ({e["build_number"]})'
            self.machine = e["cpu_info"]
            speed = e["avg_ts"]
        else:
            (e,) = [json.loads(line) for line in (ran.said + "\n" + ran.complained).splitlines() if line.startswith('{"n_kv_max"')]
            speed = e["speed_tg"]
        self.hold_threads(command, e["n_threads"])
        return speed


class Juno(Program):
    """paths: (juno,). Keeps what the reports tell of files and of shares, one list a (model, test)."""
    name = "juno"

    def __init__(self, *args):
        super().__init__(*args)
        self.models, self.shares, self.limits = {}, {}, []

    def command(self, model, t):
        p, n = (t.tokens, 0) if t.kind == "prompt" else (0, t.tokens)
        return [self.paths[0], "bench", "--json", "-m", model, "--threads", str(self.threads), "-r", "1", "-p", str(p), "-n", str(n),
                "-d", str(t.depth), "-b", str(t.batch), *self.more]

    def one_token(self, model):
        return self.one_prompt(model, 1)

    def one_prompt(self, model, tokens):
        return [self.paths[0], "logits", "-m", model, "--threads", str(self.threads), "--context", str(max(tokens, 64)),
                "--ids", ",".join(str(1 + i % 250) for i in range(tokens)), "--hash", *self.more]

    def read(self, command, ran, t):
        report = parsed(command, ran.said)
        machine = report["machine"]
        self.hold_threads(command, machine["threads"])
        self.version = report["versions"]
        self.machine = {k: machine[k] for k in machine if k not in ("load_average", "limits")}
        self.limits.append({k: machine["limits"][k] for k in ("read_bytes_per_second", "multiply_adds_per_second")})
        (model,) = report["models"]
        self.models[model["path"]] = {k: model[k] for k in ("sha256", "sha256_of", "quant", "bytes", "parameters")}
        (e,) = model["tests"]
        self.shares.setdefault((model["path"], t), []).append((e["bandwidth_share"], e["multiply_add_share"]))
        return e["tokens_per_second"]["median"]
