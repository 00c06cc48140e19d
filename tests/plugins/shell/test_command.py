"""Commands are read as a POSIX shell reads words; what a shell would act on is refused."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pegboard_shell._policy.command import BLANK, MAX_LENGTH, CommandError, read_text, read_words


def refusal(command: str) -> str:
    with pytest.raises(CommandError) as caught:
        read_words(command)
    return str(caught.value)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ["ls"]),
        ("  ls\t-la  /tmp ", ["ls", "-la", "/tmp"]),
        ("echo 'Hello, World!'", ["echo", "Hello, World!"]),
        ("echo 'a;b' \"c|d\" e\\&f", ["echo", "a;b", "c|d", "e&f"]),
        ("echo '$(x)' '`x`' '>y'", ["echo", "$(x)", "`x`", ">y"]),
        ("echo a'b'\"c\"\\ d", ["echo", "abc d"]),
        ("echo '' \"\"", ["echo", "", ""]),
        ('echo "a\\"b\\\\c\\$d\\`e\\n"', ["echo", 'a"b\\c$d`e\\n']),
        ('echo "two\nlines" "joined\\\nline"', ["echo", "two\nlines", "joinedline"]),
        ("echo 'it'\\''s'", ["echo", "it's"]),
        ("find . -name *.py", ["find", ".", "-name", "*.py"]),
        ("git show HEAD~1 stash@{0} a#b", ["git", "show", "HEAD~1", "stash@{0}", "a#b"]),
        ("echo a=b --x=~/y", ["echo", "a=b", "--x=~/y"]),
        ("echo \u00a0 \u3000x 你好", ["echo", "\u00a0", "\u3000x", "你好"]),
    ],
)
def test_words_and_quotes(command: str, words: list[str]) -> None:
    assert list(read_words(command)) == words


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("", "empty"),
        (" \t", "empty"),
        ("'' x", "empty word"),
        ("echo a | b", "pipes"),
        ("echo a|b", "pipes"),
        ("a && b", "chains"),
        ("a & b", "background"),
        ("a ; b", "chains"),
        ("a\nb", "line break"),
        ("a > b", "redirections"),
        ("a 2>&1", "redirections"),
        ("a < b", "redirections"),
        ("(a)", "subshells"),
        ("a )", "subshells"),
        ("echo $(a)", "substitution"),
        ("echo $HOME", "variables"),
        ('echo "$HOME"', "variables"),
        ('echo "a`b`"', "substitution"),
        ("echo `a`", "substitution"),
        ("echo $'a'", "variables"),
        ("echo 'a", "never closed"),
        ('echo "a', "never closed"),
        ('echo "a\\', "never closed"),
        ("echo a\\", "nothing behind"),
        ("echo a\\\nb", "backslash"),
        ("echo a # b", "comments"),
        ("cat ~/x", "no directory"),
        ("A=b env", "variables"),
        ("A+='b' env", "variables"),
        ("echo \x1b[2J", "U+001B"),
        ("echo 'a\0b'", "U+0000"),
        ("echo a\rb", "U+000D"),
        ("echo \u202eb", "U+202E"),
        ("echo \udc80", "U+DC80"),
        ("echo " + "x" * MAX_LENGTH, str(MAX_LENGTH)),
    ],
)
def test_what_a_shell_would_act_on_is_refused_by_name(command: str, named: str) -> None:
    message = refusal(command)
    assert named in message
    assert len(message) < 300


def test_refusal_names_the_place() -> None:
    assert "character 11 " in refusal('echo "abc $d"')


def test_windows_keeps_its_backslashes() -> None:
    assert read_words(r'dir C:\a\b "C:\c d\"', escapes=False) == ("dir", r"C:\a\b", "C:\\c d\\")
    with pytest.raises(CommandError):
        read_words("dir & del x", escapes=False)


def test_text_for_a_shell_is_not_read() -> None:
    assert read_text("a | b > c; $(d)\n") == "a | b > c; $(d)\n"


READABLE = st.characters(exclude_categories=["Cc", "Cf", "Co", "Cs", "Zl", "Zp"], exclude_characters=sorted(BLANK))
WORDS = st.text(READABLE)


@given(st.lists(WORDS | st.sampled_from(["a b", "'", '"', "\\", "$x", "`", "#", "~", "-", "a=b"]), min_size=1))
def test_every_list_of_words_can_be_written(words: list[str]) -> None:
    assume(words[0] and "=" not in words[0])  # which would set a variable
    assert list(read_words(shlex.join(words))) == words


ODD = st.text(st.sampled_from("ab '\"\\$`|&;<>()#~=*?[]{}!\n\t\u00e4"), max_size=24)


def test_words_are_counted() -> None:
    assert len(read_words("a " * 8_000)) == 8_000
    with pytest.raises(CommandError, match="8,001 words"):
        read_words("a " * 8_001)


@given(ODD)
@example('"a\\\nb"')
@example("a\\'b")
def test_what_is_read_is_what_shlex_reads(text: str) -> None:
    try:
        words = read_words(text)
    except CommandError:
        return
    # shlex keeps a backslash before $, ` and line breaks in double quotes, where a shell does not.
    if not any(f"\\{character}" in text for character in "$`\n"):
        assert list(words) == shlex.split(text)


@given(ODD)
@example('\'a\' "b\\"c" d\\ e \\\\')
@example('"a\\$b\\`c\\\nd"')
@example("a{b,c} !x [")
@pytest.mark.skipif(not shutil.which("sh"), reason="there is no shell to compare with")
def test_what_is_read_is_what_a_shell_reads(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        words = read_words(text)
    except CommandError:
        return
    folder = tmp_path_factory.getbasetemp() / "empty"
    folder.mkdir(exist_ok=True)
    script = f"set -f; printf '%s\\0' {text}"  # without file name patterns, which are left as they are
    output = subprocess.run(["sh", "-c", script], capture_output=True, check=True, cwd=folder).stdout
    assert output.decode().split("\0")[:-1] == list(words)
    assert not list(Path(folder).iterdir())


@given(st.text(max_size=200))
def test_nothing_but_a_refusal_is_raised(text: str) -> None:
    try:
        words = read_words(text)
    except CommandError:
        return
    assert words[0]
    assert not any(set(word) & set("\0\x1b") for word in words)


UNSEEN = {
    "bidi": "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
    "zero width": "\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\u2061\u2064\ufeff",
    "blank letters": "\u115f\u1160\u2800\u3164\uffa0",
    "tags and variants": "\U000e0001\U000e0041\U000e007f\ufe00\ufe0e\ufe0f\U000e0100\U000e01ef\u180b",
    "lines": "\x0b\x0c\x1c\x85\u2028\u2029",
    "unassigned": "\ue000\U0010fffd\ufff0\ufff9\u2065\U000e0fff",
}


@pytest.mark.parametrize("kind", UNSEEN)
def test_what_an_approver_does_not_see_is_refused(kind: str) -> None:
    for character in UNSEEN[kind]:
        for command in (f"ls a{character}b", f"ls '{character}'", f"l{character}s", f"ls a{character}"):
            for read in (read_words, read_text):
                with pytest.raises(CommandError, match=rf"U\+{ord(character):04X}"):
                    read(command)


def test_what_is_seen_is_passed_on() -> None:
    for text in ("naïve", "e\u0301", "你好", "مرحبا", "שלום", "नमस्ते", "⚠️", "🎉", "\u00a0"):
        assert read_words(f"echo {text}") == ("echo", text)
