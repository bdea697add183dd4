# SPDX-License-Identifier: Apache-2.0
"""Replies held to a grammar or a JSON Schema, and speculation, from the command line."""
import json
import os
import re
import tempfile

from juno import GREEDY, SOURCE, main, run

SCHEMA = '{"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer","minimum":0,"maximum":150}},"required":["name","age"]}'


def reply(*args, **kw):
    status, out, err = run("local", "--prompt", "Who are you?", "--json", "--quiet", *args, **kw)
    assert status == 0, err
    return json.loads(out)


def refused(*args, status, says):
    got, out, err = run("local", "--prompt", "Who are you?", *args)
    assert got == status and out == b"" and says in err, (args, got, out, err)


def test_a_reply_is_held_to_a_grammar():
    for args in (GREEDY, ["--temperature", "2", "--seed", "1"], ["--temperature", "100", "--seed", "2"]):
        got = reply("--grammar", 'root ::= ("yes" | "no") "!"{2,3}', *args)
        assert re.fullmatch("(yes|no)!{2,3}", got["text"]) and got["finish_reason"] == "stop", got
    with tempfile.NamedTemporaryFile("w", suffix=".gbnf") as file:
        file.write("root ::= [0-9]{4}\n")
        file.flush()
        assert re.fullmatch("[0-9]{4}", reply("--grammar", file.name)["text"])


def test_a_reply_is_held_to_a_schema():
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(SCHEMA)
        file.flush()
        for given in (SCHEMA, file.name):
            for seed in "12":
                got = reply("--json-schema", given, "--temperature", "1.5", "--seed", seed)
                value = json.loads(got["text"])
                assert got["finish_reason"] == "stop" and set(value) == {"name", "age"}, got
                assert len(value["name"]) <= 8 and 0 <= value["age"] <= 150


def test_a_stop_string_ends_a_reply_that_is_held_to_a_grammar():
    got = reply("--grammar", 'root ::= "one two three"', "--stop", "two")
    assert got["text"] == "one " and got["finish_reason"] == "stop", got


def test_grammars_that_are_none_are_refused():
    refused("--grammar", "root ::= (", status=65, says=b"line 1")
    refused("--grammar", "/nowhere.gbnf", status=66, says=b"/nowhere.gbnf")
    refused("--json-schema", '{"type":"nothing"}', status=65, says=b"type")
    refused("--json-schema", "{", status=65, says=b"juno: ")
    refused("--json-schema", "/nowhere.json", status=66, says=b"/nowhere.json")
    refused("--json-schema", "true", "--grammar", 'root ::= "a"', status=2, says=b"exclude each other")


def test_guessing_changes_nothing_but_the_time():
    with tempfile.NamedTemporaryFile(suffix=".gguf") as small:
        small.write(open(os.path.join(SOURCE, "models/juno-demo-23m.Q8_0.gguf"), "rb").read())
        small.flush()
        for args in (GREEDY, ["--temperature", "1", "--seed", "3"], ["--json-schema", SCHEMA, "--seed", "1"]):
            plain = reply(*args, "--max-tokens", "60")
            assert plain["drafted_tokens"] == 0
            looked_up = reply(*args, "--max-tokens", "60", "--prompt-lookup", "5")
            drafted = reply(*args, "--max-tokens", "60", "--draft-model", small.name)
            assert plain["ids"] == looked_up["ids"] == drafted["ids"], args
            assert drafted["accepted_tokens"] == drafted["drafted_tokens"] > 0, "the model itself guesses right"


def test_a_draft_model_must_have_the_same_vocabulary():
    other = os.path.join(SOURCE, "tests/data/archs/llama-untied.gguf")
    refused("--draft-model", other, status=65, says=b"llama-untied.gguf")
    refused("--draft-model", "/nowhere.gguf", status=66, says=b"/nowhere.gguf")
    refused("--prompt-lookup", "65", status=2, says=b"prompt-lookup")


if __name__ == "__main__":
    main(globals())
