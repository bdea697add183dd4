# SPDX-License-Identifier: Apache-2.0
"""The chat at a terminal: pasting, interrupting, leaving, coming back."""
import json
import os
import signal
import subprocess
import tempfile
import time

from juno import GREEDY, JUNO, Terminal, environment, main, run

PROMPT = rb"> $"
END = rb"operations elsewhere[^\n]*\n"
PASTE_ON, PASTE_OFF = b"\x1b[200~", b"\x1b[201~"


def chat(*args, **kw):
    t = Terminal("local", "--max-tokens", "8", *GREEDY, *args, **kw)
    t.expect(PROMPT)
    return t


def test_C76_a_paste_of_many_lines_is_one_message():
    t = chat("--context", "1024", "--system", "x")
    lines = [b"a" if i % 5 == 4 else b"" if i % 50 else b"  b\tc\x07\x1b" for i in range(500)]
    t.send(PASTE_ON + b"\r".join(lines) + PASTE_OFF)
    t.quiet(1.0)                       # shown, not sent
    t.send(b"\x7f")                    # editable: the last character goes
    t.send(b"z\r")
    t.expect(rb"operations elsewhere|\[api\]|\[engine\]", timeout=120)
    seen = t.quiet(2.0)
    assert b"operations elsewhere" not in seen, "one paste became several messages"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved.json")
        t.send(f"/save {path}\r".encode())
        t.expect(rb"messages written")
        messages = json.load(open(path))["messages"]
    users = [m["content"] for m in messages if m["role"] == "user"]
    assert len(users) == 1, users
    expected = "\n".join("a" if i % 5 == 4 else "" if i % 50 else "  b c" for i in range(500))[:-1] + "z"
    assert users[0] == expected, users[0][-40:]
    t.leave()


def test_C76_a_short_paste_is_sent_by_one_enter():
    t = chat()
    t.send(PASTE_ON + b"Hello\rwho are you?" + PASTE_OFF)
    assert b"elsewhere" not in t.quiet(1.0)
    t.send(b"\r")
    t.expect(END)
    t.send(b"/stats\r")
    t.expect(rb"ran on")
    t.leave()


def test_a_line_that_ends_in_a_backslash_goes_on():
    t = chat()
    t.send(b"Hello\\\r")
    t.expect(rb"\| $")
    t.send(b"who are you?\r")
    t.expect(END)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved.json")
        t.send(f"/save {path}\r".encode())
        t.expect(rb"2 messages written")
        assert json.load(open(path))["messages"][0]["content"] == "Hello\nwho are you?"
    t.send(b"taken back\\\r")
    t.expect(rb"\| $")
    t.send(b"\x03")
    t.expect(PROMPT)
    t.leave()


def test_C77_a_killed_chat_can_be_resumed():
    t = chat()
    t.send(b"Who are you?\r")
    t.expect(END)
    os.kill(t.pid, signal.SIGKILL)
    assert t.status() == -signal.SIGKILL
    again = Terminal("local", *GREEDY, state=t.state)
    again.expect(PROMPT)
    again.send(b"/load\r")
    again.expect(rb"2 messages read")
    again.leave()


def test_a_chat_needs_no_folder_for_its_state():
    t = Terminal("local", *GREEDY, "--max-tokens", "4", "--quiet", state="/proc/nowhere", columns=20, lines=5)
    t.expect(PROMPT)
    t.send(b"A question that is longer than the terminal is wide, and then some more?\r")
    assert b"elsewhere" not in t.expect(rb"2004l.*\n[^\n]*> $")
    t.send(b"/load\r")
    t.expect(rb"needs a file")
    t.leave()


def test_C77_ctrl_c_ends_the_answer_and_keeps_what_was_said():
    t = chat("--max-tokens", "100000", "--repeat-penalty", "1.3", "--context", "1024")
    t.send(b"Tell me a long story.\r")
    t.expect(rb"story\.\r?\n.*[A-Za-z]{3,}")
    t.send(b"\x03")
    t.expect(rb"interrupted")
    t.expect(PROMPT)
    t.send(b"/exit\r")
    t.expect(rb"conversation is kept")
    assert t.status() == 0
    again = Terminal("local", *GREEDY, "--max-tokens", "4", state=t.state)
    again.expect(PROMPT)
    again.send(b"/load\r")
    again.expect(rb"2 messages read")
    again.leave()


def test_C77_ctrl_c_ends_a_single_turn_with_130():
    with tempfile.TemporaryDirectory() as state:
        p = subprocess.Popen([JUNO, "local", *GREEDY, "--no-chat", "--prompt", "Once upon a time", "--max-tokens", "-1",
                              "--logit-bias", "2=-100", "--repeat-penalty", "1.5"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(state))
        first = p.stdout.read(1)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=10)
    assert p.returncode == 130 and first + out and b"interrupted" in err, (p.returncode, out, err)


def test_C77_ctrl_c_at_an_empty_prompt_asks_once():
    t = chat()
    t.send(b"\x03")
    t.expect(rb"Ctrl-C again leaves")
    t.expect(PROMPT)
    t.send(b"\x03")
    assert t.status() == 130


def test_C77_ctrl_c_empties_a_line_that_has_text():
    t = chat()
    t.send(b"some words")
    t.send(b"\x03")
    t.send(b"/set\r")
    t.expect(rb"temperature")
    t.leave()


def test_C77_ctrl_d_leaves_with_status_0():
    t = chat()
    t.leave()


def test_slash_commands_are_suggested_and_set_is_checked():
    t = chat()
    t.send(b"/hlep\r")
    t.expect(rb"did you mean /help")
    t.send(b"/set temperature hot\r")
    t.expect(rb"temperature")
    t.send(b"/set temperature 0.5\r")
    t.expect(PROMPT)
    t.send(b"/system Be brief.\r")
    t.expect(rb"system message is set")
    t.send(b"/reset\r")
    t.expect(rb"forgotten")
    t.leave()


def test_C78_the_end_of_input_ends_the_program_within_a_second():
    begin = time.monotonic()
    status, out, _ = run("local")
    assert status == 0 and out == b"", (status, out)
    assert time.monotonic() - begin < 1


def test_C78_a_piped_prompt_gives_only_the_answer_on_stdout():
    status, out, err = run("local", *GREEDY, "--max-tokens", "30", stdin=b"Who are you?\n")
    assert status == 0 and b"Juno" in out and b"elsewhere" not in out, out
    assert b"elsewhere" in err, err
    status, quiet, err = run("local", *GREEDY, "--max-tokens", "30", "--quiet", stdin=b"Who are you?\n")
    assert status == 0 and quiet == out and err == b"", err


def test_C78_a_closed_stdout_ends_quietly():
    with tempfile.TemporaryDirectory() as state:
        p = subprocess.Popen([JUNO, "local", *GREEDY, "--prompt", "Tell me a story.", "--quiet"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment(state))
        p.stdout.read(1)
        p.stdout.close()
        err = p.stderr.read()
        assert p.wait(30) == 0 and err == b"", (p.returncode, err)


if __name__ == "__main__":
    main(globals())
