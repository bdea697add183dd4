# SPDX-License-Identifier: Apache-2.0
"""juno gate: arms that agree pass, a wrong bit fails, and a report is held to what it was made of."""
import hashlib
import json
import os
import subprocess
import tempfile

from juno import SOURCE, main, run

MODEL = os.path.join(SOURCE, "tests/data/archs/llama-untied-q8_0.gguf")
OTHER = os.path.join(SOURCE, "tests/data/archs/qwen3moe.gguf")
PROMPTS = os.path.join(SOURCE, "tests/data/gate/prompts.txt")
CARD = ("--arm", "both", "--gpu-backend", "reference", "--threads", "1")
UNSEEN = "its program held changes that were not committed"  # true of most programs that tests are run on


def few(folder, *texts):
    path = os.path.join(folder, "prompts.txt")
    with open(path, "w") as out:
        out.write("\n---\n".join(texts))
    return path


def gate(kind, folder, *args, status=0, model=MODEL, prompts=("Hello there", "One two three, and so on")):
    path = os.path.join(folder, "report.json")
    got, _, err = run("gate", kind, "-m", model, "--prompts", few(folder, *prompts), "-n", "4", "--report", path, *args)
    assert got == status, (got, err)
    with open(path) as file:
        return json.load(file), path, err.decode()


def rejected(path, *args):
    """The reasons of verify, but for the one that tells of a program under work."""
    status, out, err = run("gate", "verify", path, *args)
    assert status in (0, 1), (status, err)
    assert (status == 0) == (out == b"holds\n")
    return [line for line in out.decode().splitlines() if line != "holds" and UNSEEN not in line]


def edited(path, change, sealed=False):
    with open(path) as file:
        report = json.load(file)
    change(report)
    if sealed:
        report.pop("checksum")
        text = json.dumps(report, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        report["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    with open(path, "w") as file:
        json.dump(report, file, ensure_ascii=False)


def test_gate_parity_of_two_backends_passes_and_its_report_holds():
    with tempfile.TemporaryDirectory() as folder:
        report, path, err = gate("parity", folder, *CARD)
        assert report["juno_gate"] == 1 and report["status"] == "passed" and report["why"] == []
        assert report["model"]["sha256"] == subprocess.check_output(["sha256sum", MODEL], text=True).split()[0]
        assert [a["backend"] for a in report["arms"]] == ["cpu", "reference"]
        assert {m["batch"] for m in report["settings"]["modes"]} == {1, 2, 7, 32}
        assert len(report["comparisons"]) == 2 * len(report["settings"]["modes"]) - 1
        assert all(c["different"] == 0 for c in report["comparisons"]) and report["first_divergence"] is None
        assert all(len(a["ids"]) == 4 and len(a["hashes"]) == 4 for a in report["answers"]), report["answers"]
        for arm in report["arms"]:
            assert arm["routing"]["declined"] == 0 and arm["ready_seconds"] > 0
            assert any(op["op"] == "linear" and op["calls"] > 0 for op in arm["routing"]["operations"])
        assert "gate parity: passed" in err, err
        assert rejected(path) == []
        assert rejected(path, "-m", MODEL, "--prompts", os.path.join(folder, "prompts.txt"), "--same-host") == []


def test_gate_capability_decode_and_prefill_pass():
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("capability", "decode", "prefill"):
            report, _, _ = gate(kind, folder, *CARD)
            assert report["kind"] == kind and report["status"] == "passed", report["why"]
            if kind == "prefill":
                assert all(len(a["ids"]) == 1 and len(a["hashes"]) > 1 for a in report["answers"])


def test_gate_refuses_reports_that_are_edited_stale_or_foreign():
    with tempfile.TemporaryDirectory() as folder:
        _, path, _ = gate("capability", folder, *CARD)
        assert any("foreign: the model" in line for line in rejected(path, "-m", OTHER))
        assert any("foreign: the prompts" in line for line in rejected(path, "--prompts", PROMPTS))
        edited(path, lambda r: r["build"].update(sources="0" * 40), sealed=True)
        assert any("stale: it was made at commit" in line for line in rejected(path))
        edited(path, lambda r: r["build"].update(numerics=99), sealed=True)
        assert any("numerics 99" in line for line in rejected(path))
        edited(path, lambda r: r["host"].update(cpu="another"), sealed=True)
        assert any("foreign: the host" in line for line in rejected(path, "--same-host"))
        edited(path, lambda r: r["arms"][1].update(backend="cuda", device={"kernels_sha256": "0" * 64}), sealed=True)
        assert any("stale: the kernels of cuda" in line for line in rejected(path))
        edited(path, lambda r: r.update(status="failed"), sealed=True)
        assert any('it says "failed"' in line for line in rejected(path))
        edited(path, lambda r: r["settings"].update(max_tokens=64))
        assert [line for line in rejected(path) if not line.startswith("rejected: edited")] == []
        with open(path, "w") as file:
            file.write('{"juno_bench": 1}')
        assert run("gate", "verify", path)[0] == 65
        assert run("gate", "verify", path + ".none")[0] == 66


def test_gate_that_cannot_run_is_neither_passed_nor_failed():
    missing = {"JUNO_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"}
    with tempfile.TemporaryDirectory() as folder:
        path, prompts = os.path.join(folder, "r.json"), few(folder, "Hello")
        common = ("gate", "parity", "-m", MODEL, "--prompts", prompts, "-n", "2", "--report", path)
        status, _, err = run(*common, "--arm", "both", "--require-device", **missing)
        assert status == 2, err
        with open(path) as file:
            report = json.load(file)
        assert report["status"] == "could not run" and report["arms"] == [] and "cuda" in report["why"][0]
        status, _, err = run(*common, "--arm", "both", **missing)
        assert status == 2, err
        with open(path) as file:
            assert [a["backend"] for a in json.load(file)["arms"]] == ["cpu"]
        assert any("could not run" in line for line in rejected(path))


def test_gate_finds_wrong_bits_in_its_self_test():
    status, out, err = run("gate", "self-test")
    assert status == 0, (out, err)
    assert out.count(b"ok  ") == 4 and b"FAIL" not in out, out


def test_gate_needs_prompts_and_a_kind_that_exists():
    assert run("gate")[0] == 2 and run("gate", "speed")[0] == 2 and run("gate", "parity")[0] == 2
    assert run("gate", "verify")[0] == 2
    with tempfile.TemporaryDirectory() as folder:
        assert run("gate", "parity", "--prompts", few(folder, ""))[0] == 65


def test_C47_gpu_that_cannot_be_used_is_refused_or_said():
    missing = {"JUNO_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"}
    ask = ("local", "-m", MODEL, "--no-chat", "--prompt", "Hello", "-n", "2", "--temperature", "0")
    status, out, err = run(*ask, "--gpu", **missing)
    assert status == 69 and out == b"" and b"/nonexistent/libcuda.so.1" in err, (status, err)
    status, _, err = run(*ask, **missing)
    lines = err.decode().splitlines()
    assert status == 0 and sum("on the CPU: cuda: " in line for line in lines) == 1, err
    status, _, err = run(*ask, "--cpu", **missing)
    assert status == 0 and b"cuda" not in err
    status, out, err = run(*ask, "--json", "-q", **missing)
    reply = json.loads(out)
    assert err == b"" and reply["backend"] == "cpu" and reply["declined_operations"] == []
    assert reply["device"]["launches"] == 0


if __name__ == "__main__":
    main(globals())
