# SPDX-License-Identifier: Apache-2.0
"""schema_replies.py PROGRAM SOURCE SEEDS: every reply that ends by itself parses and fits its schema, for each schema of the
corpus that must be supported. The judge is the package jsonschema."""
import json
import os
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the Python package jsonschema is not installed")
    sys.exit(77)


def main(program, source, seeds):
    corpus = os.path.join(source, "tests/data/cases/json_schemas.json")
    model = os.path.join(source, "models/juno-demo-23m.Q8_0.gguf")
    with open(corpus, encoding="utf-8") as file:
        schemas = {s["id"]: s["schema"] for s in json.load(file) if s["must"] == "support"}
    run = subprocess.run([program, model, corpus, seeds, "1.5"], stdout=subprocess.PIPE, check=True)
    replies = [json.loads(line) for line in run.stdout.decode("utf-8").splitlines()]
    assert len(replies) == len(schemas) * int(seeds), "a schema has no reply"
    ended, faults = {}, 0
    for reply in replies:
        if not reply["stopped"]:
            continue
        ended[reply["id"]] = ended.get(reply["id"], 0) + 1
        try:
            jsonschema.Draft202012Validator(schemas[reply["id"]]).validate(json.loads(reply["text"]))
        except (ValueError, jsonschema.ValidationError) as error:
            faults += 1
            print(f"{reply['id']} seed {reply['seed']}: {reply['text']!r}: {error}")
    never = sorted(set(schemas) - set(ended))
    print(f"{len(replies)} replies to {len(schemas)} schemas, {sum(ended.values())} ended, {faults} do not fit; no reply ended: {never}")
    return faults > 0 or len(never) > len(schemas) // 4


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
