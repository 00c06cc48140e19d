"""Questions with forms, asked member by member."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pegboard import Approval
from pegboard_cli import ask_form
from pegboard_cli._output.forms import DECLINED, HELP

schemas = pytest.importorskip("pegboard_schemas")
NAME = {"type": "string", "title": "Full name", "description": "As in the passport.", "minLength": 2}
COLOR = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}
LEGACY = {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}
DAYS = {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}, "maxItems": 2, "default": ["mon"]}
TITLED = {"type": "array", "items": {"anyOf": [{"const": "m", "title": "Monday"}, {"const": "t"}]}}
SINCE = {"type": "string", "format": "date-time"}
YEARS = {"type": "string", "enum": ["2", "1"]}
FORM = {
    "type": "object",
    "properties": {
        "name": NAME,
        "age": {"type": "integer", "minimum": 0},
        "color": COLOR,
        "days": DAYS,
        "since": SINCE,
        "ok": {"type": "boolean", "default": True},
    },
    "required": ["name", "ok"],
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Answer a form with these lines."""

    def answers(form: Any, *lines: str) -> Approval:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return ask_form(form)

    return answers


def one(schema: Any, *, required: bool = False) -> dict[str, Any]:
    """A form with one member."""
    return {"type": "object", "properties": {"it": schema}, "required": ["it"] if required else []}


def test_every_member_is_asked(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    decision = answers(FORM, "Ada", "36", "Blue", "1,2", "2024-05-06T07:08:09Z", "n")
    assert decision == Approval.edit(
        {"name": "Ada", "age": 36, "color": "b", "days": ["mon", "tue"], "since": "2024-05-06T07:08:09Z", "ok": False}
    )
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        f"{HELP}\n"
        "As in the passport.\n"
        "Full name (text, required): age (integer, optional):   1) Red (r)\n"
        "  2) Blue (b)\n"
        "color (one of these, optional):   1) mon\n"
        "  2) tue\n"
        "  several with commas in between\n"
        'days (some of these, default ["mon"]): since (date-time, optional): ok (boolean, default true): '
    )


@pytest.mark.parametrize(
    ("schema", "wrong", "right", "value", "reason"),
    [
        (NAME, "A", "Ada", "Ada", "expected string of at least 2 characters"),
        ({"type": "integer"}, "4.5", "4", 4, "expected integer"),
        ({"type": "integer"}, "9" * 5000, "-4", -4, "expected integer"),
        ({"type": "integer", "maximum": 3}, "4", "3", 3, "expected integer <= 3"),
        ({"type": "number"}, "nan", "1e3", 1000.0, "expected number"),
        ({"type": "number"}, "1e999", "0.5", 0.5, "expected a finite number"),
        ({"type": "boolean"}, "maybe", "YES", True, "expected yes or no"),
        ({"type": ["boolean", "null"]}, "1", "no", False, "expected yes or no"),
        (COLOR, "3", "1", "r", "expected a number from 1 to 2, or one of the values"),
        (COLOR, "0", "b", "b", "expected a number from 1 to 2, or one of the values"),
        (LEGACY, "red", "Red", "r", "expected a number from 1 to 2, or one of the values"),
        (YEARS, "3", "1", "1", "expected a number from 1 to 2, or one of the values"),
        ({"enum": [True, 7, None]}, "x", "7", 7, "expected a number from 1 to 3, or one of the values"),
        (DAYS, "1,2,1", "2", ["tue"], "expected array of at most 2 items"),
        (TITLED, "1, x", "Monday, t", ["m", "t"], "expected a number from 1 to 2, or one of the values"),
        ({"type": "array", "items": {"type": "integer"}}, "1, 2", "[1, 2]", [1, 2], "expected JSON"),
        ({}, "{", '{"a": null}', {"a": None}, "expected JSON"),
        ({"type": "string", "format": "email"}, "ann", "ann@x.no", "ann@x.no", "expected email string"),
        ({"type": "string", "format": "uri"}, "x.no", "https://x.no", "https://x.no", "expected uri string"),
        ({"type": "string", "format": "date"}, "20240506", "2024-05-06", "2024-05-06", "expected date string"),
        (SINCE, "2024-05-06", "2024-05-06T07:08:09+02:00", "2024-05-06T07:08:09+02:00", "expected date-time string"),
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 60 + "!", "aa", "aa", 'expected string matching "^(a+)+$"'),
    ],
)
def test_a_wrong_value_is_asked_again(
    answers: Any, capsys: pytest.CaptureFixture[str], schema: Any, wrong: str, right: str, value: Any, reason: str
) -> None:
    assert answers(one(schema, required=True), wrong, right) == Approval.edit({"it": value})
    assert f"  {reason}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "lines", "decision"),
    [
        (one(NAME, required=True), [""], Approval.deny(DECLINED)),
        (one(NAME, required=True), ["A", ""], Approval.deny(DECLINED)),
        (one(NAME, required=True), [], Approval.deny(DECLINED)),
        (one(NAME), [""], Approval.edit({})),
        (one(DAYS, required=True), [""], Approval.edit({})),  # which leaves it to its default
        (one({"type": "string"}), [" a "], Approval.edit({"it": " a "})),
        ({"type": "object"}, ["y"], Approval.edit({})),
        ({"type": "object"}, ["what?", "yes"], Approval.edit({})),
        ({"type": "object"}, [""], Approval.deny(DECLINED)),
        ({"type": "object"}, ["n"], Approval.deny(DECLINED)),
    ],
)
def test_what_is_left_out_or_declined(answers: Any, form: Any, lines: list[str], decision: Approval) -> None:
    assert answers(form, *lines) == decision


def test_a_form_that_cannot_be_used_is_declined(answers: Any) -> None:
    decision = answers(one({"type": "nonsense"}))
    assert decision.reason.startswith(
        "the form cannot be used: the form: #/properties/it/type is not valid JSON Schema"
    )


def test_without_its_reader_a_form_is_declined(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pegboard_schemas", None)
    assert "pip install pegboard-schemas" in answers(FORM).reason


def test_nothing_of_a_form_is_obeyed_by_the_terminal(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    form = one({"title": "\x1b[2J", "description": "\u202e", "enum": ["\x9b2J", "b"], "default": "\x1b]0;"})
    answers(form, "2")
    assert not {"\x1b", "\u202e", "\x9b"} & set(capsys.readouterr().err)


def test_a_private_default_is_not_shown(answers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(one({"type": "string", "writeOnly": True, "default": "hunter2"}), "") == Approval.edit({})
    assert "it (text, default ***): " in capsys.readouterr().err


def test_questions_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once, of which each gets the lines that belong together."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{number}\n" for number in range(40))))
    pair = {"type": "object", "properties": {name: {"type": "integer"} for name in "ab"}}
    with ThreadPoolExecutor(20) as threads:
        pairs = [dict(each.arguments or {}) for each in threads.map(ask_form, [pair] * 20)]
    assert sorted(each["a"] for each in pairs) == list(range(0, 40, 2))
    assert all(each["b"] == each["a"] + 1 for each in pairs)


WORDS = st.one_of(
    st.text(max_size=5), st.sampled_from(["", "1", "2", "1,2", "Blue", "36", "y", "2024-05-06T07:08:09Z"])
)


@given(lines=st.lists(WORDS, max_size=12))
@example(lines=["Ada", "", "", "", "", ""])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_typed_an_answer_fits(answers: Any, lines: list[str]) -> None:
    decision = answers(FORM, *lines)
    if decision.decision == "edit":
        form = schemas.Form(FORM)
        assert form.problems(form.filled(decision.arguments)) == []
    else:
        assert decision == Approval.deny(DECLINED)
