# SPDX-License-Identifier: Apache-2.0
"""The commands: what they print, what they refuse, and with which status."""
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile

from juno import GREEDY, JUNO, SOURCE, environment, main, run

LLAMA = os.path.join(SOURCE, "tests/data/archs/llama-untied.gguf")
COMMANDS = ["local", "inspect", "tokenize", "detokenize", "render", "logits", "perplexity", "bench", "doctor"]


def refused(*args, status=2, says=b"", **kw):
    got, out, err = run(*args, **kw)
    assert got == status and out == b"" and says in err, (args, got, out, err)
    return err


def test_every_command_has_help():
    for command in COMMANDS:
        status, out, _ = run(command, "--help")
        assert status == 0 and b"--help" in out, command
        assert b"JUNO_" in out or command == "doctor", f"{command}: variables are not shown"
    assert all(c.encode() in run("--help")[1] for c in COMMANDS)
    assert run("gguf-info", "--help")[0] == 0


def test_version_names_the_numerics():
    status, out, _ = run("--version")
    assert status == 0 and b"numerics contract 1" in out and b"int8x2" in out


def test_unknown_words_are_refused_with_a_suggestion():
    refused("locl", says=b"did you mean local?")
    refused("local", "--temprature", "0", says=b"did you mean --temperature?")
    refused("local", "--temperature", "hot", says=b"temperature")
    refused("local", "--temperature", "-1", says=b"temperature")
    refused("local", "--top-k", "1.5", says=b"top-k")
    refused()


def test_flags_without_a_feature_are_refused_by_name():
    for flag, value in (("--nodes", "2"), ("--pType", "tensor"), ("--dtype", "f16")):
        refused("local", flag, value, "--prompt", "x", says=flag.encode())
    refused("local", "--gpu", "--prompt", "x", status=69, says=b"cuda")
    refused("local", "--gpu", "--cpu", "--prompt", "x")


def test_a_flag_beats_its_variable():
    args = ("local", *GREEDY, "--prompt", "Who are you?", "--json")
    assert json.loads(run(*args, JUNO_MAX_TOKENS="3")[1])["tokens"] == 3
    assert json.loads(run(*args, "--max-tokens", "2", JUNO_MAX_TOKENS="3")[1])["tokens"] == 2
    refused("local", "--prompt", "x", says=b"JUNO_MAX_TOKENS: ", JUNO_MAX_TOKENS="many")


def test_the_demo_model_introduces_itself():
    status, out, err = run("local", "--prompt", "Who are you?", *GREEDY, "--quiet")
    assert status == 0 and err == b"", err
    assert out.startswith(b"I am the demo model that comes with Juno. I have about 23 million parameters"), out


def test_json_tells_what_ran_where():
    reply = json.loads(run("local", "--prompt", "Who are you?", *GREEDY, "--json", "--max-tokens", "5")[1])
    assert reply["declined"] == 0 and reply["backend"] == "cpu" and reply["tokens"] == 5
    assert reply["finish_reason"] == "length" and reply["isa"]


def test_inspect_shows_tensors_and_memory():
    status, out, _ = run("inspect", LLAMA, "--json")
    report = json.loads(out)
    assert status == 0 and report["metadata"]["general.architecture"] == "llama"
    assert any(t["name"] == "blk.0.attn_q.weight" for t in report["tensors"])
    memory = report["memory"]
    kv = int(report["metadata"]["llama.attention.head_count_kv"]) * 16 * 2 * 2 * int(report["metadata"]["llama.block_count"])
    assert memory["kv_bytes_per_token"] == kv, memory
    text = run("inspect", LLAMA)[1].decode()
    assert "blk.0.attn_q.weight" in text and "context" in text
    refused("inspect", "/nowhere.gguf", status=66, says=b"/nowhere.gguf")


def test_tokenize_and_detokenize_are_inverse():
    text = "Grüße, 世界! <|im_start|> 🙂\n\tx".encode()
    ids = json.loads(run("tokenize", "--json", stdin=text)[1])
    assert b"".join(p.encode() for p in ids["pieces"][:2])
    assert run("detokenize", stdin=json.dumps(ids).encode())[1] == text
    assert run("detokenize", stdin=run("tokenize", stdin=text)[1])[1] == text
    special = json.loads(run("tokenize", "--json", "--special", stdin=text)[1])
    assert len(special["ids"]) < len(ids["ids"]), "the control token was not recognised"
    for text, word in ((b"1 two", b"two"), (b"-1", b"-1"), (b"[4294967297]", b"4294967297"), (b"[1.5]", b"1.5")):
        refused("detokenize", stdin=text, status=65, says=word)
    refused("detokenize", stdin=b"99999999", status=65, says=b"99999999")


def test_render_equals_the_reference():
    folder = os.path.join(SOURCE, "tests/data/templates")
    expected = json.load(open(os.path.join(folder, "expected.json")))
    checked = 0
    for name in list(expected)[:4]:
        for case in expected[name][:3]:
            request = {"messages": case["messages"], "tools": case["tools"],
                       "add_generation_prompt": case["add_generation_prompt"], **case["kwargs"]}
            request |= {k: case[k] for k in ("bos_token", "eos_token", "unk_token")}
            with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                json.dump(request, f)
                f.flush()
                status, out, err = run("render", "--template", os.path.join(folder, name), "--messages", f.name, "--now", case["now"])
            if "expected" in case:
                assert status == 0 and out.decode() == case["expected"], (name, case["case"], out, err)
            else:
                assert status == 65 and out == b"", (name, case["case"], status)
            checked += 1
    assert checked == 12
    refused("render", "--messages", "/nowhere.json")


def test_logits_hash_is_the_same_for_any_split():
    ids = ",".join(str(i % 300) for i in range(70))
    hashes = {run("logits", "-m", LLAMA, "--ids", ids, "--positions", "all", "--hash", "--chunk", str(c), "--threads", str(t),
                  "--context", str(n))[1] for c, t, n in ((1, 1, 70), (7, 2, 128), (32, 5, 512), (512, 1, 70))}
    assert len(hashes) == 1 and len(hashes.pop()) == 17


def test_logits_print_floats_that_read_back():
    rows = json.loads(run("logits", "-m", LLAMA, "--ids", "1,2,3", "--positions", "0,2", "--json")[1])
    assert len(rows) == 2 and len(rows[0]) == 320
    refused("logits", "-m", LLAMA, "--ids", "1,99999", status=65, says=b"99999")
    refused("logits", "-m", LLAMA, "--ids", "1,x", says=b"x")
    refused("logits", "-m", LLAMA, "--ids", "1,2", "--positions", "5", says=b"5")


def test_perplexity_of_a_text():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("The sun rises in the east and sets in the west. " * 20)
        f.flush()
        got = json.loads(run("perplexity", "--file", f.name, "--context", "64", "--json")[1])
    assert got["scored"] == got["tokens"] - len(got["window_nll"]) and 1 < got["perplexity"] < 1000


def test_doctor_tells_what_is_there():
    report = json.loads(run("doctor", "--json")[1])
    assert any(i["usable"] for i in report["instruction_sets"]) and report["cpu"]["threads"] >= 1
    assert all(g["why"] for g in report["gpus"])
    assert b"instruction sets" in run("doctor")[1]


def test_a_model_without_a_template_refuses_to_chat():
    err = refused("local", "-m", LLAMA, "--prompt", "x", status=78, says=b"--chat-template")
    assert b"chat_template" in err
    assert run("local", "-m", LLAMA, "--no-chat", "--prompt", "x", "--max-tokens", "3", *GREEDY)[0] in (0, 65)

def test_a_prompt_that_does_not_fit_names_both_numbers():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("a b " * 250_000)
        f.flush()
        for extra in ((), ("--no-chat",)):
            err = refused("local", "--prompt-file", f.name, "--context", "512", *extra, status=65, says=b"512")
            assert re.search(rb"has \d{6,} tokens", err), err


def test_inputs_that_are_none():
    refused("local", "--prompt", "", says=b"empty")
    refused("local", "--prompt-file", "/nowhere", status=66, says=b"/nowhere")
    refused("local", "--prompt-file", SOURCE, status=66, says=b"directory")
    refused("local", "--prompt-file", os.devnull, status=65, says=b"empty")
    refused("local", "-m", SOURCE, "--prompt", "x", status=66, says=SOURCE.encode())
    refused("local", "-m", __file__, "--prompt", "x", status=65, says=b"GGUF")
    refused("local", "--chat-template", "chatmI", "--prompt", "x", status=66, says=b"chatml")
    refused("local", "--load", __file__, "--prompt", "x", status=65, says=b"not a saved conversation")
    refused("local", "--activations", "int9", "--prompt", "x", says=b"int8x2")
    refused("local", "--isa", "sse9", "--prompt", "x", says=b"avx2")
    refused("render", "--template", "chatml", "--messages", __file__, status=65, says=b"JSON")


def test_text_that_is_not_utf8_is_answered():
    status, out, _ = run("local", *GREEDY, "--max-tokens", "5", "--quiet", stdin=b"caf\xe9 \xff\xfe \xf0\x9f")
    assert status == 0 and out
    out.decode()


def test_closed_streams_are_no_crash():
    with tempfile.TemporaryDirectory() as state:
        for redirect, expected in (("<&-", 0), (">&-", 1), ("2>&-", 0), ("<&- >&- 2>&-", 1), (">/dev/full", 1), ("2>/dev/full", 0)):
            p = subprocess.run(["bash", "-c", f'"$0" local --prompt Hi --max-tokens 3 {redirect}', JUNO], stdin=subprocess.DEVNULL,
                               capture_output=True, env=environment(state), timeout=60)
            assert p.returncode == expected, (redirect, p)
        for command in ("local", "local --prompt-file -", "tokenize", "detokenize"):
            p = subprocess.run(["bash", "-c", f'"$0" {command} <&-', JUNO], capture_output=True, env=environment(state), timeout=60)
            assert p.returncode == 66 and p.stdout == b"" and b"stdin" in p.stderr, (command, p)
        for command in ("--help", "--version", "local --help"):
            p = subprocess.run(["bash", "-c", f'"$0" {command} >/dev/full', JUNO], capture_output=True, env=environment(state), timeout=60)
            assert p.returncode == 1 and b"cannot write to stdout" in p.stderr, (command, p)


def test_of_an_option_given_twice_the_last_counts():
    reply = json.loads(run("local", *GREEDY, "--prompt", "x", "--json", "--max-tokens", "9", "--max-tokens", "2")[1])
    assert reply["tokens"] == 2 and len(reply["ids"]) == 2
    stops = run("local", *GREEDY, "--prompt", "Who are you?", "--quiet", "--stop", "Juno", "--stop", "comes")[1]
    assert stops == b"I am the demo model that \n", stops


def test_C03_a_model_cut_while_it_runs_is_an_error_not_a_signal():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "live.gguf")
        shutil.copy(os.path.join(SOURCE, "models/juno-demo-23m.Q8_0.gguf"), path)
        p = subprocess.Popen([JUNO, "local", "-m", path, "--no-repack", "--prompt", "Tell me a story.", "--max-tokens", "100000",
                              "--logit-bias", "2=-100", "--context", "1024"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(folder))
        p.stdout.read(20)
        os.truncate(path, 1_000_000)
        _, err = p.communicate(timeout=60)
        assert p.returncode == 65 and b"live.gguf was cut" in err, (p.returncode, err)


def test_threads_that_cannot_be_started_are_an_error():
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))
    with tempfile.TemporaryDirectory() as state:
        p = subprocess.run([JUNO, "local", "--prompt", "Hi", "--threads", "200"], capture_output=True, preexec_fn=limit,
                           env=environment(state), timeout=60)
    assert p.returncode == 1 and b"thread" in p.stderr and b"cannot be started" in p.stderr, (p.returncode, p.stderr)


def test_refusals_of_a_vocabulary_name_the_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "damaged.gguf")
        data = open(LLAMA, "rb").read()
        open(path, "wb").write(data.replace(b"tokenizer.ggml.model", b"tokenizer.ggml.modem"))
        refused("local", "-m", path, "--prompt", "x", status=65, says=b"damaged.gguf")
        refused("tokenize", "-m", path, status=65, says=b"damaged.gguf")


def test_values_that_are_none_are_refused_with_their_range():
    for bias in ("=", "=5", "abc=1", "5=1x", "5=1e99", "5", "5=", ""):
        refused("local", "--prompt", "Hi", "--logit-bias", bias, says=b"--logit-bias")
    refused("local", "--prompt", "Hi", says=b"JUNO_LOGIT_BIAS", JUNO_LOGIT_BIAS="=")
    for seed in ("-1", "18446744073709551616", "x", "1.5"):
        refused("local", "--prompt", "Hi", "--seed", seed, says=b"0 to 18446744073709551615")
    for option, value in (("--top-k", "-1"), ("--context", "x"), ("--threads", "1.5"), ("--temperature", "nan")):
        err = refused("local", "--prompt", "Hi", option, value, says=f'{option}: "{value}" is not a '.encode())
        assert max(map(len, err.splitlines())) < 100 and b"onvert" not in err, err
    assert run("local", "--cpu=9999999999999999999999")[0] in (0, 2)
    refused("local", "--max-tokens", says=b"--max-tokens needs a value")


def test_empty_values_are_refused():
    for option in ("-m", "--load", "--stop", "--isa", "--prompt-file", "--seed"):
        refused("local", "--prompt", "Hi", option, "", says=b"--")
    refused("tokenize", "-m", "", says=b"--model-path: the value is empty")
    status, out, _ = run("tokenize", stdin=b"Hello there", JUNO_MODEL_PATH="")
    assert status == 0 and out == b"75 485 114 672\n"
    assert run("local", "--prompt", "Hi", "--system", "", "--max-tokens", "1")[0] == 0


def test_a_flag_beats_the_variable_of_what_it_excludes():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("Who are you?")
        f.flush()
        reply = run("local", *GREEDY, "--quiet", "--prompt-file", f.name, JUNO_PROMPT="Tell me a story.")[1]
        assert reply.startswith(b"I am the demo model"), reply
    refused("local", "--gpu", "--prompt", "x", status=69, says=b"cuda", JUNO_CPU="1")
    assert run("local", "--cpu", "--prompt", "x", "--max-tokens", "1", JUNO_GPU="1")[0] == 0
    assert len(run("logits", "-m", LLAMA, "--ids", "1", "--hash", JUNO_JSON="1")[1]) == 17
    refused("local", "--prompt", "x", "--prompt-file", "y", says=b"--prompt and --prompt-file exclude each other")
    refused("local", "--prompt", "x", says=b"JUNO_CPU and JUNO_GPU exclude each other", JUNO_CPU="1", JUNO_GPU="1")
    refused("local", "--prompt", "x", says=b"JUNO_TEMPERATURE: ", JUNO_TEMPERATURE="hot")


def test_a_variable_of_one_command_disturbs_no_other():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("The sun rises in the east and sets in the west. " * 4)
        f.flush()
        status, out, err = run("perplexity", "--file", f.name, JUNO_CONTEXT="0")
        assert status == 0 and b"windows of 512" in out, err
        assert run("perplexity", JUNO_FILE=f.name)[1] == out
    assert run("local", "--prompt", "x", "--max-tokens", "1", JUNO_WINDOW="x", JUNO_TOP="x", JUNO_TOKENS="x")[0] == 0
    refused("perplexity", "--file", os.devnull, status=65, says=os.devnull.encode())


def test_messages_never_steer_the_terminal():
    for args in (("local", "-m", "/\x1b[2J", "--prompt", "x"), ("local", "--seed", "\x1b[2J"), ("\x1b[2J",)):
        assert b"\x1b" not in refused(*args, status=66 if "-m" in args else 2, says=b"\\x1b[2J")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f, tempfile.NamedTemporaryFile("w", suffix=".jinja") as t:
        f.write("[]")
        f.flush()
        t.write("{{ raise_exception('\x1b[2J') }}")
        t.flush()
        assert b"\x1b" not in refused("render", "--template", t.name, "--messages", f.name, status=65, says=b"\\x1b[2J")


def test_refusals_speak_plainly():
    assert refused("nope").startswith(b"juno: juno has no command nope")
    assert b"juno local has no argument nope" in refused("local", "nope")
    assert b"json.exception" not in refused("render", "--template", "chatml", "--messages", __file__, status=65, says=b"line 1")
    assert b"avx2" in run("local", "--help")[1]
    assert re.search(rb"compiler +(g\+\+|\S* ?[Cc]lang) ", run("doctor")[1])


if __name__ == "__main__":
    main(globals())
