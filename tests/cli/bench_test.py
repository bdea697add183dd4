# SPDX-License-Identifier: Apache-2.0
"""juno bench, and bench/against_llama_cpp with programs that only pretend to measure."""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import xml.dom.minidom

from juno import JUNO, SOURCE, environment, main, run

SCRIPT = os.path.join(SOURCE, "bench/against_llama_cpp")
CONDITIONS = os.path.join(SOURCE, "bench/conditions")
LLAMA = os.path.join(SOURCE, "tests/data/archs/llama-untied-q8_0.gguf")
MOE = os.path.join(SOURCE, "tests/data/archs/qwen3moe.gguf")
TINY = ("-p", "8", "-n", "4", "-d", "0,16", "-b", "1,3", "-r", "2")


def measured(*args):
    status, out, err = run("bench", *args, "--json")
    assert status == 0, err
    return json.loads(out), err


def refused(*args, status=2, says=b""):
    got, out, err = run("bench", *args)
    assert got == status and out == b"" and says in err, (args, got, out, err)


def near(a, b):
    return abs(a - b) <= 1e-9 * abs(b)


def test_bench_measures_the_demo_model():
    report, err = measured(*TINY)
    assert err.count(b"\n") <= 1, err  # where it ran, if nobody said where
    assert report["juno_bench"] == 1 and report["versions"]["numerics"] == 1 and report["date"].endswith("Z")
    machine, model = report["machine"], report["models"][0]
    assert machine["cpu"] and machine["isa"] and machine["threads"] >= 1
    assert len(machine["load_average"]["start"]) == len(machine["load_average"]["end"]) == 3
    limits = machine["limits"]
    assert limits["read_bytes_per_second"] > 1e8 and limits["multiply_adds_per_second"] > 1e8, limits
    assert report["settings"]["activations"] == "int8"
    demo = os.path.join(SOURCE, "models/juno-demo-23m.Q8_0.gguf")
    assert model["sha256"] == subprocess.check_output(["sha256sum", demo], text=True).split()[0]
    assert model["sha256_of"] == "the whole file" and model["declined"] == 0 and model["skipped"] == []
    assert model["peak_memory"]["bytes"] > model["bytes"] * 0.9
    load = model["load"]
    assert 0 < load["open_seconds"]["median"] < load["first_token_seconds"]["median"]
    keys = [(t["test"], t["tokens"], t["depth"], t["batch"]) for t in model["tests"]]
    assert keys == [(n, t, d, b) for d in (0, 16) for n, t, b in (("prompt", 8, 1), ("decode", 4, 1), ("decode", 4, 3))]
    for t in model["tests"]:
        rate = t["tokens_per_second"]
        assert len(rate["samples"]) == 2 and 0 < rate["min"] <= rate["median"] <= rate["max"]
        for seconds, speed in zip(t["seconds"]["samples"], rate["samples"]):
            assert near(speed, t["tokens"] * t["batch"] / seconds)
        assert near(t["bandwidth_share"], t["weight_bytes_per_second"] / limits["read_bytes_per_second"])
        assert near(t["multiply_add_share"], t["multiply_adds_per_second"] / limits["multiply_adds_per_second"])


def test_bench_counts_weights_and_products():
    """Every matrix is met once a token, the head once an output; the file says how large they are."""
    tensors = json.loads(run("inspect", LLAMA, "--json")[1])["tensors"]
    size = lambda t: t["shape"][0] * t["shape"][1]
    layers = sum(size(t) for t in tensors if t["name"].startswith("blk.") and len(t["shape"]) > 1 and t["type"] not in ("F32", "F16", "BF16"))
    head = sum(size(t) for t in tensors if t["name"] == "output.weight" and t["type"] not in ("F32", "F16", "BF16"))
    assert layers > 0
    for profile, planes in (("int8", 1), ("int8x2", 2)):
        report, _ = measured("-m", LLAMA, "-p", "6", "-n", "5", "-d", "0", "-b", "1,2", "-r", "1", "--activations", profile)
        prompt, one, two = report["models"][0]["tests"]
        products = lambda t: t["multiply_adds_per_second"] * t["seconds"]["median"]
        assert near(products(prompt), planes * (6 * layers + head)), (products(prompt), layers, head)
        assert near(products(one), planes * 5 * (layers + head))
        assert near(products(two), planes * 10 * (layers + head))
        bytes_read = lambda t: t["weight_bytes_per_second"] * t["seconds"]["median"]
        embedding = next(t["bytes"] / t["shape"][0] for t in tensors if t["name"] == "token_embd.weight")
        assert near(bytes_read(two), bytes_read(one) + 5 * embedding), "two sequences share each weight but their own rows"
        assert bytes_read(prompt) < bytes_read(one)


def test_bench_samples_the_same_tokens_however_it_runs():
    def sampled(*args):
        report, _ = measured("-m", MOE, *TINY, *args)
        return [t["sampled"] for t in report["models"][0]["tests"]]
    first = sampled()
    assert len(set(first)) > 1
    assert sampled("--isa", "baseline", "--threads", "1", "--chunk", "3") == first


def test_bench_names_what_does_not_fit():
    status, out, err = run("bench", "-p", "4", "-n", "2", "-d", "0,4096", "-b", "1", "-r", "1", "--json")
    skipped = json.loads(out)["models"][0]["skipped"]
    assert status == 0 and [(s["test"], s["depth"]) for s in skipped] == [("prompt", 4096), ("decode", 4096)]
    assert "1024" in skipped[0]["why"] and err.count(b"is skipped") == 2 and b"depth 4096" in err, err


def test_bench_shows_the_kernels_of_a_pass():
    """A processor times none; tests/standin has a card that does, here is what is shown of it."""
    tiny = ("-m", LLAMA, "-p", "3", "-n", "0", "-d", "0", "-r", "1")
    refused("--cpu", *tiny, "--kernels", says=b"the backend cpu cannot time kernels")
    report, _ = measured("--cpu", *tiny)
    row = lambda kernel, launches, each, share, **known: {
        "kernel": kernel, "grid": [132, 2, 1], "threads": 512, "launches": launches, "seconds_each": each, "seconds": launches * each,
        "share": share, "bytes": known.get("bytes"), "bytes_per_second": known.get("rate")}
    rows = [row("matvec_Q4_K_1", 32, 25e-6, 0.8, bytes=1_600_000_000, rate=2e12), row("top", 1, 200e-6, 0.2)]
    report["models"][0]["tests"][0]["kernels"] = {"pass_seconds": 0.9e-3, "seconds": 1e-3, "launches": 33, "rows": rows}
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = run("bench", "--report", saved(folder, "r.json", report))
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.decode().splitlines()]
        assert status == 0 and "prompt 3 at depth 0, batch 1: 33 launches, 1000 us one by one, 900 us as it is" in out.decode(), (out, err)
        assert ["matvec_Q4_K_1", "132x2x1", "512", "32", "25", "800", "80.0 %", "1600", "2"] in lines, lines
        assert ["top", "132x2x1", "512", "1", "200", "200", "20.0 %", "–", "–"] in lines, lines
        del rows[0]["grid"]
        refused("--report", saved(folder, "torn.json", report), status=65, says=b"torn.json")


def test_bench_prints_tables_and_lines():
    status, out, _ = run("bench", "-m", LLAMA, "-m", MOE, *TINY, "--md")
    assert status == 0 and out.count(b"| decode 4") == 8 and b"GB/s" in out and LLAMA.encode() in out, out
    status, out, _ = run("bench", "-m", LLAMA, MOE, *TINY, "--csv")
    rows = list(csv.DictReader(io.StringIO(out.decode())))
    assert len(rows) == 12 and rows[0]["path"] == LLAMA and rows[-1]["path"] == MOE
    assert float(rows[0]["tokens_per_second/median"]) > 0 and rows[0]["against/ratio"] == ""


def test_bench_measures_lists_of_lengths():
    report, _ = measured("-m", LLAMA, "-p", "3,0,8", "-n", "2,4", "-d", "0", "-b", "1", "-r", "1")
    assert [(t["test"], t["tokens"]) for t in report["models"][0]["tests"]] == [("prompt", 3), ("prompt", 8), ("decode", 2), ("decode", 4)]


def test_bench_draws_the_roofline():
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "roofline.svg")
        report, _ = measured("-m", LLAMA, MOE, *TINY, "--svg", picture)
        svg = xml.dom.minidom.parse(picture)
        points = [c for c in svg.getElementsByTagName("circle") if c.getElementsByTagName("title")]
        tests, floats = (m["tests"] for m in report["models"])
        assert len(points) == len(tests) == 6 and all(t["multiply_adds_per_second"] == 0 for t in floats)
        # Both axes are logarithmic and rise: points are in the order of what they stand for.
        intensity = lambda t: t["multiply_adds_per_second"] / t["weight_bytes_per_second"]
        for axis, value, sign in (("cx", intensity, 1), ("cy", lambda t: t["multiply_adds_per_second"], -1)):
            places = [sign * float(p.getAttribute(axis)) for _, p in sorted(zip(map(value, tests), points), key=lambda pair: pair[0])]
            assert all(a <= b + 0.1 for a, b in zip(places, places[1:])), places
        report["models"][0]["path"] = "a<b&c.gguf"
        status, _, err = run("bench", "--report", saved(folder, "r.json", report), "--svg", picture)
        assert status == 0 and "a&lt;b&amp;c" in open(picture).read(), err
        del report["machine"]["limits"]
        refused("--report", saved(folder, "torn.json", report), "--svg", picture, status=65, says=b"torn.json")
        refused("-m", LLAMA, *TINY, "--svg", os.path.join(folder, "no/where.svg"), status=1, says=b"where.svg")


def saved(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def test_bench_compares_two_reports():
    report, _ = measured("-m", LLAMA, *TINY)
    with tempfile.TemporaryDirectory() as folder:
        now = saved(folder, "now.json", report)
        for t in report["models"][0]["tests"]:
            t["tokens_per_second"] = {k: [x / 2 for x in v] if k == "samples" else v / 2 for k, v in t["tokens_per_second"].items()}
        gone = report["models"][0]["tests"].pop()
        report["models"][0]["tests"][0]["sampled"] = "0"
        report["machine"]["isa"] = "abacus"
        report["models"][0]["path"] = "moved.gguf"  # the bytes decide, not the name
        then = saved(folder, "then.json", report)
        compared = json.loads(run("bench", "--report", now, "--against", then, "--json")[1])
        tests = compared["models"][0]["tests"]
        assert all(near(t["against"]["ratio"], 2) for t in tests[:-1]) and "against" not in tests[-1]
        assert [t["against"]["same_tokens"] for t in tests[:2]] == [False, True]
        spread = lambda t: (t["tokens_per_second"]["min"], t["tokens_per_second"]["max"])
        for t, old in zip(tests, report["models"][0]["tests"]):
            assert t["against"]["apart"] == (spread(t)[0] > spread(old)[1]) and t["against"]["tokens_per_second"] == old["tokens_per_second"]
        assert [d["what"] for d in compared["against"]["differences"]] == ["machine/isa"]
        assert [(u["test"], u["batch"]) for u in compared["against"]["unmatched"]] == [(gone["test"], gone["batch"])]
        text = run("bench", "--report", now, "--against", then)[1]
        assert b"abacus" in text and b"2.000" in text and b"OTHERS" in text and b"not in it: decode 4" in text, text
        status, out, err = run("bench", "-m", LLAMA, *TINY, "--against", then, "--json")
        assert status == 0 and json.loads(out)["models"][0]["tests"][0]["against"]["ratio"] > 0, err


def test_bench_refuses_what_is_no_report():
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {"text": "hello", "list": [1], "other": {"a": 1}, "newer": {"juno_bench": 2}, "empty": {"juno_bench": 1},
                              "torn": {"juno_bench": 1, "date": "", "models": [{"sha256": 5}]}}.items():
            path = saved(folder, name, content)
            refused(*TINY, "--against", path, status=65, says=path.encode())
            refused("--report", path, status=65, says=path.encode())
        refused(*TINY, "--against", os.path.join(folder, "nothing"), status=66)


def test_bench_refuses_bad_options():
    for args in (("-r", "0"), ("-p", "-1"), ("-p", "1,,2"), ("-n", "4,-1"), ("-n", "x"), ("-d", "0,,1"), ("-d", "-4"), ("-b", "0"), ("-b", "1,9999"), ("--json", "--csv"),
                 ("--threads", "-1"), ("--isa", "abacus"), ("--activations", "f64"), ("--nothing",)):
        refused(*args)
    refused("-m", "/nowhere.gguf", *TINY, status=66, says=b"/nowhere.gguf")
    refused("--gpu", *TINY, status=69, says=b"cuda")


# Speeds of the n-th call of a program: what the script must make of them is known.
PRETEND = """\
    #!{python}
    import json, os, sys
    log = {log!r}
    with open(log, "a") as file: print({name!r}, *sys.argv[1:], file=file)
    calls = sum(line.split()[0] == {name!r} and {main!r} in line for line in open(log))
    value = lambda flag: sys.argv[sys.argv.index(flag) + 1]
"""
PRETENDED_LLAMA = PRETEND + """\
    if {fails}: sys.exit("no such model")
    p, n = int(value("-p")), int(value("-n"))
    print(json.dumps([dict(build_commit="abc", build_number=7, cpu_info="a cpu", n_threads={threads}, n_prompt=p, n_gen=n,
                           avg_ts=(100 if p else 10) * calls)]))
"""
PRETENDED_BATCHES = PRETEND + """\
    print("a word before")
    print(json.dumps(dict(n_kv_max=1, n_threads=2, pp=int(value("-npp")), tg=int(value("-ntg")), pl=int(value("-npl")), speed_tg=40.0)))
"""
PRETENDED_JUNO = PRETEND + """\
    if sys.argv[1] == "logits": sys.exit(print("0123"))
    speed = (300 if value("-n") == "0" else 20) * calls * calls
    test = dict(tokens_per_second=dict(median=speed), bandwidth_share=.5, multiply_add_share=.25)
    machine = dict(threads={threads} or int(value("--threads")), isa="abacus", cpu="a cpu", limits=dict(read_bytes_per_second=1e9, multiply_adds_per_second=1e9))
    print(json.dumps(dict(versions=dict(juno="1", numerics=1), machine=machine,
                          models=[dict(path=value("-m"), sha256="ff", sha256_of="it", quant="Q", bytes=5, parameters=6, tests=[test])])))
"""


def pretend(folder, name, text, main=" ", threads=2, fails=False):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(textwrap.dedent(text.format(python=sys.executable, log=os.path.join(folder, "log"), name=name, main=main,
                                               threads=threads, fails=fails)))
    os.chmod(path, 0o755)
    return path


def against(folder, *args, **llama):
    """-> (status, stdout, stderr, report or None, the commands that ran)"""
    out = os.path.join(folder, "new/cpu-test.json")
    p = subprocess.run([sys.executable, SCRIPT, "--llama-bench", pretend(folder, "llama", PRETENDED_LLAMA, **llama),
                        "--juno", pretend(folder, "juno", PRETENDED_JUNO, " bench"), "--threads", "2", "--out", out,
                        "--defaults-only", *args],
                       capture_output=True, text=True, timeout=60)
    log = os.path.join(folder, "log")
    ran = [line.split() for line in open(log)] if os.path.exists(log) else []
    return p.returncode, p.stdout, p.stderr, json.load(open(out)) if os.path.exists(out) else None, ran


def test_bench_against_llama_cpp_takes_turns_and_divides():
    with tempfile.TemporaryDirectory() as folder:
        status, out, err, report, ran = against(folder, "-m", LLAMA, "-r", "3", "--tests", "prompt:512", "--llama-args", "-fa on")
        assert status == 0, err
        assert [r[0] for r in ran] == ["juno", "llama"] * 9, ran
        assert all(LLAMA in r and "2" in r for r in ran) and all(("-fa" in r) == (r[0] == "llama") for r in ran)
        (model,) = report["models"]
        (prompt,) = model["tests"]
        assert [prompt[k] for k in ("test", "tokens", "depth", "batch")] == ["prompt", 512, 0, 1]
        # Round i: 300 i² against 100 i.
        assert prompt["juno"]["samples"] == [300, 1200, 2700] and prompt["others"]["llama.cpp"]["samples"] == [100, 200, 300]
        assert prompt["ratios"]["llama.cpp"] == {"median": 6, "min": 3, "max": 9, "samples": [3, 6, 9]}, prompt
        assert prompt["juno_bandwidth_share"] == 0.5
        assert model["first_token_seconds"]["juno"]["min"] > 0 and model["peak_memory_bytes"]["others"]["llama.cpp"]["min"] > 1e6
        assert report["versions"]["llama_cpp"] == "abc (7)" and report["machine"]["isa"] == "abacus"
        assert len(report["commands"]["juno"]) == 3 and "-fa on" in report["commands"]["llama.cpp"][0]
        assert "6 (3–9)" in out and "abacus" in out, out


def test_bench_against_llama_cpp_measures_depths_and_batches():
    with tempfile.TemporaryDirectory() as folder:
        batched = pretend(folder, "batched", PRETENDED_BATCHES)
        status, out, err, report, ran = against(folder, "-m", LLAMA, "-r", "1", "--speed-only", "--llama-batched-bench", batched,
                                                "--lock", os.path.join(folder, "lock"), "--tests", "decode:32@64", "decode:4x8")
        assert status == 0, err
        assert [r[0] for r in ran] == ["juno", "llama", "juno", "batched"], ran
        assert all(r[r.index("-d") + 1] == "64" for r in ran[:2]) and ran[2][ran[2].index("-b") + 1] == ran[3][ran[3].index("-npl") + 1] == "8"
        deep, wide = report["models"][0]["tests"]
        assert (deep["depth"], deep["batch"], wide["depth"], wide["batch"]) == (64, 1, 0, 8)
        assert wide["ratios"]["llama.cpp"]["median"] == 2  # 20 · 2² against 40
        assert "first_token_seconds" not in report["models"][0] and "decode 4 × 8" in out


def test_bench_against_llama_cpp_measures_without_repacking_too():
    with tempfile.TemporaryDirectory() as folder:
        llama, juno = pretend(folder, "llama", PRETENDED_LLAMA), pretend(folder, "juno", PRETENDED_JUNO, " bench")
        out = os.path.join(folder, "out.json")
        p = subprocess.run([sys.executable, SCRIPT, "--llama-bench", llama, "--juno", juno, "-m", LLAMA, "--threads", "2", "-r", "2",
                            "--tests", "prompt:4", "--speed-only", "--out", out], capture_output=True, text=True, timeout=60)
        assert p.returncode == 0, p.stderr
        ran = [line.split() for line in open(os.path.join(folder, "log"))]
        assert [(r[0], "--repack" in r) for r in ran] == [("juno", False), ("llama", False), ("llama", True)] * 2, ran
        (test,) = json.load(open(out))["models"][0]["tests"]
        # Each call of llama is faster than the one before: 100 and 300, 200 and 400.
        assert [s["median"] for s in test["others"].values()] == [200, 300] and test["best"] == "llama.cpp without repacking"


def conditions(folder, *args, juno=None):
    """-> (status, stdout, stderr, report or None)"""
    out = os.path.join(folder, "conditions.json")
    p = subprocess.run([sys.executable, CONDITIONS, *args, "--juno", juno or pretend(folder, "juno", PRETENDED_JUNO, " bench", threads=None),
                        "--out", out], capture_output=True, text=True, timeout=60)
    return p.returncode, p.stdout, p.stderr, json.load(open(out)) if os.path.exists(out) else None


def test_bench_conditions_time_the_first_token_of_the_demo_model():
    with tempfile.TemporaryDirectory() as folder:
        status, out, err, report = conditions(folder, "start", "-r", "2", "--threads", "1", juno=JUNO)
        assert status == 0, err
        assert len(report["seconds"]["samples"]) == 2 and 0 < report["seconds"]["min"] and report["limit"] == 0.15
        assert ("NOT met" in out) == (report["seconds"]["median"] > 0.15) and report["command"].startswith(os.path.basename(JUNO))


def test_bench_conditions_compare_in_turns():
    with tempfile.TemporaryDirectory() as folder:
        # Call i of the program has speed 20 i²: with three threads 180, beside the 80 of two.
        status, out, err, report = conditions(folder, "threads", "-m", LLAMA, "--threads", "2", "-r", "1")
        assert status == 0, err
        assert {n: e["ratio"]["median"] for n, e in report["threads"].items()} == {"1": 0.25, "2": 1, "3": 2.25}, report
    with tempfile.TemporaryDirectory() as folder:
        status, out, err, report = conditions(folder, "neighbour", "-m", LLAMA, "--threads", "1", "-r", "1")
        assert status == 0 and report["fair_share"] == 0.5 and "met" in out, err
        assert report["slower_than_fair"]["median"] == 0.125  # 20 alone, 80 of half a processor
    with tempfile.TemporaryDirectory() as folder:
        status, out, err, report = conditions(folder, "prompts", "-m", LLAMA, "--threads", "2", "-r", "1")
        assert status == 0 and list(report["prompts"]) == ["1", "2", "3", "5", "17"] and "ratio" in report["prompts"]["17"], err


def test_bench_conditions_refuse():
    with tempfile.TemporaryDirectory() as folder:
        for args in (("threads",), ("nothing",), ("threads", "-m", LLAMA, "--test", "decode"), ("start", "-r", "0"), ()):
            status, out, err, report = conditions(folder, *args)
            assert status == 2 and out == "" and report is None, (args, err)
        status, _, err, report = conditions(folder, "prompts", "-m", "/nowhere.gguf")
        assert status == 1 and "/nowhere.gguf" in err and report is None, err


def test_bench_against_llama_cpp_refuses():
    with tempfile.TemporaryDirectory() as folder:
        one = ("-m", LLAMA, "-r", "1", "--tests", "prompt:1")
        for args in (("-m", "/nowhere.gguf"), ("-m", LLAMA), (*one[:2], "--tests", "decode:8x2"), (*one[:2], "--tests", "prompt:8x2"),
                     (*one[:2], "--tests", "decode"), (*one, "-r", "0"), ()):
            status, out, err, report, ran = against(folder, *args)
            assert status == 2 and not ran and out == "", (args, err)
        status, _, err, report, _ = against(folder, *one, fails=True)
        assert status == 1 and "no such model" in err and report is None, err
        status, _, err, report, _ = against(folder, *one, threads=4)
        assert status == 1 and "4 threads, not 2" in err and report is None, err


if __name__ == "__main__":
    main(globals())
