"""The grammar of commands: words and quotes, and nothing that only a shell could act on."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final
from unicodedata import category

__all__ = ["BLANK", "MAX_LENGTH", "CommandError", "read_text", "read_words"]

MAX_LENGTH: Final = 100_000
"""Characters of a command; a system takes about as many bytes in one argument."""
MAX_WORDS: Final = 8_000
"""Bubblewrap takes 9,000, its own among them."""


class CommandError(ValueError):
    """A command that is not run as it is written; the message says to the model why, and what to write instead."""


# What a terminal acts on, and what no argument can hold.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that no approver sees, or that change the order or the lines of what one reads."""
BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)))
)
"""Characters of other categories that no approver sees either."""
_AS_EMOJI: Final = "\ufe0f"
_PIECE: Final = re.compile(
    r"""(?P<space>[ \t]+)
    |(?P<single>'[^']*')
    |(?P<double>"(?:[^"\\$`]|\\.)*")
    |(?P<escaped>\\[^\n])
    |(?P<plain>[^ \t\n'"\\$`|&;<>()]+)""",
    re.VERBOSE | re.DOTALL,
)
_PIECE_WITHOUT_ESCAPES: Final = re.compile(
    r"""(?P<space>[ \t]+)
    |(?P<single>'[^']*')
    |(?P<double>"[^"]*")
    |(?P<plain>[^ \t\n'"$`|&;<>()]+)""",
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r'\\(?:\n|([$`"\\]))')
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)

_WHAT: Final = {
    "\n": "a line break: run one command at a time",
    "$": "'$': there are no variables and no substitution. Write the value itself, or put the text in single quotes",
    "`": "'`': there is no substitution. Put the text in single quotes",
    "|": "'|': there are no pipes. Run one command at a time, or put the text in quotes",
    "&": "'&': there are no chains and nothing in the background. Run one command at a time, or put the text in quotes",
    ";": "';': there are no chains. Run one command at a time, or put the text in quotes",
    "<": "'<': there are no redirections. Put the text in quotes if it is an argument",
    ">": "'>': there are no redirections. The output is returned; put the text in quotes if it is an argument",
    "(": "'(': there are no subshells. Put the text in quotes if it is an argument",
    ")": "')': there are no subshells. Put the text in quotes if it is an argument",
    "'": "a quote that is never closed",
    "\\": "a backslash with nothing behind it",
}


def read_text(command: str) -> str:
    """The command as it is, if it can be passed on at all. Raises `CommandError`."""
    if not command.strip():
        raise CommandError("The command is empty.")
    if len(command) > MAX_LENGTH:
        raise CommandError(f"The command has {len(command)} characters; {MAX_LENGTH} are the most.")
    character = _unreadable(command)
    if character:
        raise CommandError(
            f"The command holds the character U+{ord(character):04X}, which is not passed on: "
            "the person who approves a command must see all of it."
        )
    return command


def _unreadable(command: str) -> str | None:
    """The first character that a reader of a command does not see, or sees in another place."""
    found = _CONTROL.search(command)
    if found or command.isascii():
        return found[0] if found else None
    for before, character in pairwise(f" {command}"):
        if character == _AS_EMOJI and category(before) == "So":
            continue  # it only says how the character before it is drawn
        if character in BLANK or (category(character) in _UNSEEN and not character.isascii()):
            return character
    return None


def read_words(command: str, *, escapes: bool = True) -> tuple[str, ...]:
    """The words of a command, as a POSIX shell would read them; file name patterns stay as they are written.

    Whatever a shell would act on (operators, substitution, variables, `~`, comments) is refused unless it is quoted.
    Without `escapes` a backslash is a character like any other, as it is in paths on Windows. Raises `CommandError`.
    """
    read_text(command)
    pattern = _PIECE if escapes else _PIECE_WITHOUT_ESCAPES
    found: list[str] = []
    word: str | None = None
    position = 0
    while position < len(command):
        piece = pattern.match(command, position)
        if piece is None:
            raise _refusal(command, position)
        position = piece.end()
        if piece.lastgroup == "space":
            found += [] if word is None else [word]
            word = None
            continue
        if piece.lastgroup == "plain" and word is None:
            _check_beginning(piece[0], first=not found)
        word = (word or "") + _value(piece, escapes=escapes)
    found += [] if word is None else [word]
    if len(found) > MAX_WORDS:
        raise CommandError(f"The command has {len(found):,} words; {MAX_WORDS:,} are the most.")
    if not found[0]:
        raise CommandError("The command begins with an empty word; it must begin with the name of a program.")
    return tuple(found)


def _value(piece: re.Match[str], *, escapes: bool) -> str:
    text = piece[0]
    if piece.lastgroup == "plain":
        return text
    if piece.lastgroup == "escaped":
        return text[1:]
    inner = text[1:-1]
    return _ESCAPED.sub(lambda match: match[1] or "", inner) if piece.lastgroup == "double" and escapes else inner


def _check_beginning(text: str, *, first: bool) -> None:
    """Refuse what has a meaning at the beginning of a word only."""
    if text[0] == "#":
        raise CommandError("There are no comments: leave out what follows '#', or put it in quotes.")
    if text[0] == "~":
        raise CommandError("'~' stands for no directory here: write the path itself, or put it in quotes.")
    if first and _ASSIGNMENT.match(text):
        raise CommandError("A command cannot set variables: begin with the name of the program.")


def _refusal(command: str, position: int) -> CommandError:
    character = command[position]
    if character == '"':
        inner = re.compile(r'"(?:[^"\\$`]|\\.)*', re.DOTALL).match(command, position)
        end = inner.end() if inner else position
        character = command[end] if end < len(command) and command[end] in "$`" else "'"
        position = end if character != "'" else position
    return CommandError(f"No shell runs this command. At character {position + 1} it has {_WHAT[character]}.")
