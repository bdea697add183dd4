# SPDX-License-Identifier: Apache-2.0
"""The chat at a terminal: pasting, interrupting, leaving, coming back."""
import json
import os
import re
import signal
import stat
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
        out, err = p.communicate(timeout=60)
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


def saved_by(t, path):
    t.send(f"/save {path}\r".encode())


def test_save_follows_links_and_replaces_only_conversations():
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        os.mkfifo(at("fifo"))
        os.symlink("real.json", at("link"))
        os.symlink("loop", at("loop"))
        os.symlink("/dev/null", at("null"))
        open(at("foreign"), "w").write("mine")
        open(at("empty"), "w").close()
        t = chat("--system", "x")
        for name, says in (("null", rb"null is not a regular file"), ("fifo", rb"fifo is not a regular file"),
                           ("", rb"/ is not a regular file"), ("loop", rb"leads in a circle"),
                           ("foreign", rb"foreign exists and is not a saved conversation")):
            saved_by(t, at(name))
            t.expect(says)
        for name in ("link", "link", "empty"):  # the second time the link has a target
            saved_by(t, at(name))
            t.expect(rb"1 message written")
        t.leave()
        assert stat.S_ISFIFO(os.lstat(at("fifo")).st_mode) and open(at("foreign")).read() == "mine"
        assert os.readlink(at("null")) == "/dev/null" and os.readlink(at("link")) == "real.json"
        assert json.load(open(at("real.json")))["messages"] == json.load(open(at("empty")))["messages"]
        assert os.stat(at("real.json")).st_mode & 0o777 == 0o600
        assert sorted(os.listdir(folder)) == ["empty", "fifo", "foreign", "link", "loop", "null", "real.json"]


def test_only_a_regular_file_of_some_size_is_loaded():
    with tempfile.TemporaryDirectory() as folder:
        fifo, large = os.path.join(folder, "fifo"), os.path.join(folder, "large")
        os.mkfifo(fifo)
        with open(large, "w") as f:
            f.truncate((64 << 20) + 1)
        for path, wanted, says in ((fifo, 66, b"fifo: it is not a regular file"), (folder, 66, b"not a regular file"),
                                   ("/dev/zero", 66, b"not a regular file"), (large, 65, b"more than 67108864")):
            status, _, err = run("local", "--load", path, "--prompt", "x", timeout=60)
            assert status == wanted and says in err, (path, status, err)
        t = chat()
        for path in (fifo, "/dev/zero"):
            t.send(f"/load {path}\r".encode())
            t.expect(rb"not a regular file")
        t.leave()


def test_a_tilde_is_the_home_folder():
    with tempfile.TemporaryDirectory() as home:
        before, os.environ["HOME"] = os.environ.get("HOME", ""), home
        try:
            t = chat("--system", "x")
            saved_by(t, "~/kept.json")
            t.expect(rb"1 message written to ~/kept\.json")
            t.send(b"/load ~/kept.json\r")
            t.expect(rb"1 message read")
            t.leave()
        finally:
            os.environ["HOME"] = before
        assert os.listdir(home) == ["kept.json"]


def test_no_chat_has_no_conversation():
    for flag in ("--system", "--chat-template", "--load"):
        status, _, err = run("local", "--no-chat", flag, "chatml", "--prompt", "x")
        assert status == 2 and flag.encode() in err, (flag, status, err)
    t = chat("--no-chat")
    for line in (b"/system x", b"/save x", b"/load x", b"/reset"):
        t.send(line + b"\r")
        t.expect(line.split()[0] + rb": there is no conversation")
    t.leave()


def test_C77_ctrl_c_before_the_answer_takes_the_message_back():
    t = chat("--context", "2048", "--chunk", "1")
    t.send(b"Hello\\\r")
    t.expect(rb"\| $")
    t.send(b"word " * 600 + b"end\r")
    t.expect(rb"2004l")
    t.quiet(0.2)
    t.send(b"\x03")
    t.expect(rb"Nothing was answered; the message is the last line of the history")
    t.expect(PROMPT)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved.json")
        saved_by(t, path)
        t.expect(rb"0 messages written")
        t.send(b"\x1b[A\x1b[A\r")  # over /save, to the message
        t.expect(END)
        saved_by(t, path)
        t.expect(rb"2 messages written")
        content = json.load(open(path))["messages"][0]["content"]
        assert content == "Hello\n" + "word " * 600 + "end", (len(content), content[:50], content[-50:])
    t.leave()


def test_C77_ctrl_c_asks_again_after_a_line_was_emptied():
    t = chat()
    t.send(b"\x03")
    t.expect(rb"Ctrl-C again leaves")
    t.expect(PROMPT)
    t.send(b"some words")
    t.quiet(0.3)
    t.send(b"\x03\x03")
    t.expect(rb"Ctrl-C again leaves")
    t.expect(PROMPT)
    t.send(b"\x03")
    assert t.status() == 130


def test_set_checks_at_once_and_keeps_the_old_value():
    t = chat("--top-p", "0.75")
    for line, says in ((b"typical-p 0", rb"typical_p is 0"), (b"top-p nan", rb'--top-p: "nan" is not a number'), (b"top-p 7", rb"top-p"),
                       (b"temperature nan", rb'--temperature: "nan" is not a number'), (b"logit-bias 99999999=1", rb"logit_bias names"),
                       (b"logit-bias 1=nan", rb"logit_bias is nan"), (b"top-p", rb"/set top-p needs a value"),
                       (b"temprature 1", rb"did you mean temperature\?"), (b"help", rb"/set has no help")):
        t.send(b"/set " + line + b"\r")
        t.expect(says)
    t.send(b"/set\r")
    listed = t.expect(rb"logit-bias +none")
    assert re.search(rb"temperature +0\r?\n", listed) and re.search(rb"top-p +0\.75\r?\n", listed), listed
    assert re.search(rb"stop +none", listed), listed
    for line in (b"top_k  7", b"stop \"a b\"", b"stop c", b"logit-bias 5=-1.5", b"logit-bias 6=2"):
        t.send(b"/set " + line + b"\r")
        t.expect(PROMPT)
    t.send(b"/set\r")
    listed = t.expect(rb"logit-bias +5=-1\.5 6=2")
    assert re.search(rb'stop +"a b" "c"', listed) and re.search(rb"top-k +7", listed), listed
    for line in (b"stop", b"logit-bias"):
        t.send(b"/set " + line + b"\r")
        t.expect(PROMPT)
    t.send(b"/set\r")
    assert re.search(rb"stop +none", t.expect(rb"logit-bias +none"))
    t.leave()


def test_commands_without_an_argument_refuse_one():
    t = chat("--system", "x")
    for line in (b"/reset x", b"/help x", b"/stats x", b"/exit x"):
        t.send(line + b"\r")
        t.expect(line.split()[0] + rb" takes no argument")
    t.leave()
    status, _, err = run("local", "--temperature", "nan", "--prompt", "x")
    assert status == 2 and b"temperature" in err, (status, err)


def test_C78_the_end_of_input_ends_the_program_within_a_second():
    took = []
    while len(took) < 5 and (not took or min(took) >= 1):  # a neighbour may take the processor away, but not each time
        begin = time.monotonic()
        status, out, _ = run("local")
        took.append(time.monotonic() - begin)
        assert status == 0 and out == b"", (status, out)
    assert min(took) < 1, took


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
        assert p.wait(60) == 0 and err == b"", (p.returncode, err)


if __name__ == "__main__":
    main(globals())
