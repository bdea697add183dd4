#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every law sees a small offence, and is content without it: a check that cannot fail is no check."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import check_laws  # noqa: E402
import check_layers  # noqa: E402
import run_ctest  # noqa: E402
from cpp_text import functions, parameter_count  # noqa: E402

HEAD = "// SPDX-License-Identifier: Apache-2.0\n// A purpose.\n"
SCRATCH = tempfile.TemporaryDirectory()
unittest.addModuleCleanup(SCRATCH.cleanup)


class Tree:
    """A repository in a temporary folder of its own."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH.name))

    def add(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return self

    def faults(self, law):
        return list(check_laws.LAWS[law](self.root))


def offence(law, name, body):
    return Tree().add(name, HEAD + body + "\n").faults(law)


class Laws(unittest.TestCase):
    # law, file, what offends it once, what does not
    ROWS = [
        ("file_size", "src/ops/a.cc", "\n" * 600, "\n" * 590),
        ("function_size", "src/ops/a.cc", "void f() {\n" + "g();\n" * 60 + "}", "void f() {\n" + "g();\n" * 58 + "}"),
        ("function_size", "tests/ops/a_test.cc", "TEST(A, B) {\n" + "g();\n" * 60 + "}", "TEST(A, B) { g(); }"),
        ("parameters", "src/ops/a.h", "int f(int a, int b, int c, int d, int e, int f, int g);", "int f(std::map<int, int> a);"),
        ("instruction_sets", "src/ops/a.h", "#if defined(__AVX2__)\n#endif", "#if defined(NDEBUG)\n#endif"),
        ("instruction_sets", "src/quant/q.h", "#include <immintrin.h>", "#include <vector>"),
        ("unfinished", "src/ops/a.cc", "// TO" "DO later", "// todos are words too"),
        ("switches", "src/gguf/a.cc", "switch (tensor.dtype) {}", "switch (token.kind) {}"),
        ("switches", "src/gguf/a.cc", "case kQ4_0: break;", "case kString: break;"),
        ("regex", "src/tokenizer/a.cc", "std::regex r;", "// never std::regex"),
        ("quiet", "src/engine/a.cc", 'std::printf("x");', 'std::snprintf(b, 8, "x");'),
        ("quiet", "src/engine/a.cc", "std::cerr << 1;", 'log.warn("std::cerr");'),
        ("quiet", "src/engine/a.cc", "exit(1);", "loop.exit(1);"),
    ]

    def test_each_law_sees_its_offence_and_nothing_else(self):
        for law, name, bad, good in self.ROWS:
            with self.subTest(law=law, bad=bad[:40]):
                self.assertEqual(len(offence(law, name, bad)), 1)
                self.assertEqual(offence(law, name, good), [])

    def test_a_file_without_licence_and_a_header_without_purpose_are_found(self):
        self.assertTrue(Tree().add("src/ops/a.cc", "int a;\n").faults("spdx"))
        self.assertTrue(Tree().add("src/ops/a.h", HEAD.split("\n")[0] + "\n#pragma once\n").faults("spdx"))
        self.assertEqual(Tree().add("src/ops/a.h", HEAD + "#pragma once\n").faults("spdx"), [])

    def test_vocabularies_may_name_instruction_sets(self):
        self.assertEqual(offence("instruction_sets", "src/backend/cpu/vec/avx2.h", "#if defined(__AVX2__)\n#endif"), [])
        self.assertEqual(offence("instruction_sets", "src/backend/gpu/cuda/gpu.h", "#ifdef __CUDACC__\n#endif"), [])
        self.assertTrue(offence("instruction_sets", "src/backend/gpu/cuda/device.cc", "#ifdef __CUDACC__\n#endif"))

    def test_a_listed_function_may_reach_the_hard_stop_only(self):
        for lines, faults in ((99, 0), (101, 1)):
            tree = Tree().add("src/ops/a.cc", HEAD + "void f() {\n" + "g();\n" * (lines - 2) + "}\n")
            tree.add("tools/long_functions", "src/ops/a.cc f\n")
            self.assertEqual(len(tree.faults("function_size")), faults)

    def test_programs_may_print(self):
        self.assertEqual(offence("quiet", "src/cli/a.cc", 'std::printf("x");'), [])

    def test_a_weak_symbol_in_an_object_with_isa_flags_is_found(self):
        for flags, text, faults in (("-mavx2", "inline int f() { return 1; }\nint g() { return f(); }\n", 1),
                                    ("-mavx2", "static inline int f() { return 1; }\nint g() { return f(); }\n", 0),
                                    ("", "inline int f() { return 1; }\nint g() { return f(); }\n", 0)):
            tree = Tree().add("src/backend/cpu/vec/a.cc", text)
            command = f"c++ {flags} -O0 -c src/backend/cpu/vec/a.cc -o a.o"
            subprocess.run(command.split(), cwd=tree.root, check=True)
            tree.add("build/compile_commands.json", json.dumps([
                {"command": command, "output": "a.o", "directory": str(tree.root),
                 "file": str(tree.root / "src/backend/cpu/vec/a.cc")}]))
            found = list(check_laws.weak_symbols(tree.root, tree.root / "build"))
            self.assertEqual(len(found), faults, (flags, text))


class Functions(unittest.TestCase):
    def measured(self, text):
        return [(f.name, f.lines, f.parameters) for f in functions(text)]

    def test_bodies_of_every_form_are_measured(self):
        self.assertEqual(self.measured("namespace a {\nstruct S : T {\n  int x() const { return 1; }\n};\n}"), [("x", 1, 0)])
        self.assertEqual(self.measured("S::S(int a)\n    : a_{a}, b_(1) {\n  f();\n}"), [("S::S", 4, 1)])
        self.assertEqual(self.measured("auto f(int a) -> std::vector<int> {\n}"), [("f", 2, 1)])
        self.assertEqual(self.measured("template <class T>\nT f(T a, T b) noexcept {\n  if (a) { g(); }\n}"), [("f", 3, 2)])
        self.assertEqual(self.measured("const int t[] = {1, 2};\nstruct P { int a = 1; int b{}; };\nint k = f(1, 2);"), [])
        self.assertEqual(self.measured('const char* s = "{(";\nvoid f() { g("}"); } // {'), [("f", 1, 0)])
        self.assertEqual(self.measured("#define M(a) {\nvoid f();"), [("f", 0, 0)])
        self.assertEqual(self.measured("bool operator==(const A& a, const A& b) {\n return true;\n}"), [("operator==", 3, 2)])

    def test_a_lambda_counts_for_the_function_around_it(self):
        self.assertEqual(self.measured("void f() {\n  auto g = [](int a) {\n    return a;\n  };\n}"), [("f", 5, 0)])

    def test_parameters_are_counted_outside_brackets(self):
        for text, count in (("", 0), ("void", 0), ("int a", 1), ("std::map<int, int> a, int b = f(1, 2)", 2),
                            ("std::function<int(int, int)> f, int (&a)[2]", 2), ("decltype(a->b) c, int d", 2)):
            self.assertEqual(parameter_count(text), count, text)


class Layers(unittest.TestCase):
    CMAKE = "juno_room(base LINKS x)\njuno_room(ops USES base)\njuno_room(backend/cpu USES base ops LINKS y)\njuno_program(cli USES base)\n"

    def includes(self, name, line):
        tree = Tree().add(name, line)
        return list(check_layers.check_includes(tree.root / "src", check_layers.read_rooms(self.CMAKE)))

    def test_the_table_is_read_from_the_build(self):
        self.assertEqual(check_layers.read_rooms(self.CMAKE),
                         {"base": [], "ops": ["base"], "backend/cpu": ["base", "ops"], "cli": ["base"]})

    def test_an_include_against_the_table_is_found(self):
        self.assertEqual(self.includes("src/ops/a.h", '#include "base/error.h"'), [])
        self.assertEqual(self.includes("src/backend/cpu/a.h", '#include "ops/ops.h"'), [])
        self.assertTrue(self.includes("src/base/a.h", '#include "ops/ops.h"'))
        self.assertTrue(self.includes("src/ops/a.h", '#include "backend/cpu/a.h"'))
        self.assertTrue(self.includes("src/ops/a.h", '#include "error.h"'))
        self.assertTrue(self.includes("src/attic/a.h", ""))

    def test_a_circle_is_found(self):
        self.assertTrue(list(check_layers.check_table({"a": ["b"], "b": ["c"], "c": ["a"]})))
        self.assertEqual(list(check_layers.check_table({"a": ["b", "c"], "b": ["c"], "c": []})), [])

    def test_only_api_sees_models_and_backends(self):
        rooms = {"model": [], "backend/cpu": [], "engine": ["model", "backend/cpu"], "api": ["model", "backend/cpu"]}
        self.assertEqual(len(list(check_layers.check_table(rooms))), 1)

    def test_the_document_shows_the_same_table(self):
        rooms = check_layers.read_rooms("juno_room(base)\njuno_room(ops USES base)")
        good = "| 0 | base | x | – |\n| 1 | ops | y | base |\n"
        self.assertEqual(list(check_layers.check_document(good, rooms)), [])
        self.assertTrue(list(check_layers.check_document(good.replace("| base |\n", "| – |\n"), rooms)))
        self.assertTrue(list(check_layers.check_document("| 0 | base | x | – |\n", rooms)))


class Skips(unittest.TestCase):
    def test_the_reason_of_a_skipped_test_is_told(self):
        tree = Tree().add("r.xml", """<testsuite><testcase name="a" status="run"/>
<testcase name="b" status="notrun"><system-out>[ RUN      ] A.B
/x/a_test.cc:3: Skipped
no model here
[  SKIPPED ] A.B (0 ms)</system-out></testcase>
<testcase name="c" status="notrun"><system-out>[  SKIPPED ] not built</system-out></testcase>
<testcase name="d" status="disabled"/></testsuite>""")
        self.assertEqual(dict(run_ctest.reasons(tree.root / "r.xml")),
                         {"no model here": ["b"], "not built": ["c"], "no reason given: disabled": ["d"]})


if __name__ == "__main__":
    unittest.main()
