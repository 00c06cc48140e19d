"""Untrusted text becomes a dict, or one sentence about why it does not."""

import json
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard._arguments.decode import (
    MAX_DEPTH,
    MAX_SIZE,
    DecodeError,
    check_value,
    decode,
    decode_wrapped,
    exact_keys,
    fast_decode,
    repair_text,
)
from pegboard._model.result import Note
from pegboard._types.json_kinds import count_members


class TestGood:
    @pytest.mark.parametrize("sent", [None, "", " \n", b"", "{}", b"{}", {}, bytearray(b" {} ")])
    def test_nothing_stands_for_no_arguments(self, sent: Any) -> None:
        assert decode(sent) == {}

    @pytest.mark.parametrize(
        ("sent", "arguments"),
        [
            ('{"a": 1}', {"a": 1}),
            (b'{"a": "\xc3\xa9"}', {"a": "é"}),
            ('\ufeff{"a": 1}'.encode(), {"a": 1}),
            ('  {"a": [1.5, null, true, {"b": "\\u00e9"}]}\n', {"a": [1.5, None, True, {"b": "é"}]}),
            ('{"a": {"x": 1}, "b": {"x": 1}}', {"a": {"x": 1}, "b": {"x": 1}}),
            ({"a": (1, 2)}, {"a": (1, 2)}),
            ('{"a": ' + "1" * 4300 + "}", {"a": int("1" * 4300)}),
        ],
    )
    def test_objects(self, sent: Any, arguments: dict[str, Any]) -> None:
        assert decode(sent) == arguments

    def test_brackets_in_strings_are_no_depth(self) -> None:
        assert decode(json.dumps({"a": "[" * MAX_DEPTH + '"\\' + "{" * 9}))

    def test_the_limit_is_allowed(self) -> None:
        inside = MAX_DEPTH - 1
        assert "a" in decode('{"a": ' + "[" * inside + "]" * inside + "}")

    def test_a_mapping_is_copied(self) -> None:
        sent = {"a": 1}
        assert decode(sent) is not sent


class TestBad:
    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            ("[1]", "arguments must be a JSON object, got array [1]"),
            ('"x"', 'arguments must be a JSON object, got string "x"'),
            ("null", "arguments must be a JSON object, got null"),
            ("7", "arguments must be a JSON object, got integer 7"),
            (7, "arguments must be a JSON object, got a Python int"),
            ([], "arguments must be a JSON object, got a Python list"),
            ('{"a": 1,, }', "not valid JSON: Expecting property name enclosed in double quotes at line 1 column 9"),
            ('{"a": "Par', "at line 1 column 7"),
            ('{"a": 1', "(the text ends there)"),
            ('{"a": 1} x', "arguments are not valid JSON: Extra data at line 1 column 10"),
            ('{"a": 1}{"a": 2}', "Extra data"),
            ("{'a': 1}", "not valid JSON"),
            ('{"a": 1, "a": 2}', 'arguments have the key "a" twice in one object; send it once'),
            ('{"b": [{"a": 1, "a": 1}]}', 'the key "a" twice'),
            ('{"a": NaN}', "arguments have NaN, which is no JSON"),
            ('{"a": -Infinity}', "arguments have -Infinity"),
            ('{"a": ' + "1" * 4301 + "}", "an integer of more than 4300 digits"),
            (b'{"a": "\xff"}', "not valid UTF-8: invalid start byte at byte 7"),
            ({"a": float("nan")}, "arguments have nan"),
            ({1: 2}, "a key that is no string: integer 1"),
        ],
    )
    def test_is_said_in_a_sentence(self, sent: Any, said: str) -> None:
        with pytest.raises(DecodeError) as caught:
            decode(sent)
        assert said in str(caught.value)
        assert len(str(caught.value)) < 200

    @pytest.mark.parametrize("opener", ["[", '{"a":', '[{"a":'])
    @pytest.mark.parametrize("closed", [True, False])
    def test_ten_thousand_levels(self, opener: str, closed: bool) -> None:
        text = opener * 10_000 + "1" + ("]" * 10_000 if closed and opener == "[" else "")
        with pytest.raises(DecodeError, match="nested more than 100 levels"):
            decode(text)
        with pytest.raises(DecodeError, match="nested more than 100 levels"):
            fast_decode(text)

    def test_one_level_too_many(self) -> None:
        with pytest.raises(DecodeError, match="nested more than 100 levels"):
            decode('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + ', "b": 1}')

    def test_size(self) -> None:
        with pytest.raises(DecodeError, match="too large: 16777225 characters, at most 16777216"):
            decode('{"a": "' + "x" * MAX_SIZE + '"}')

    def test_size_comes_first(self) -> None:
        with pytest.raises(DecodeError, match="too large"):
            decode(b"\xff" * (MAX_SIZE + 1))

    def test_a_mapping_is_held_to_the_same_depth(self) -> None:
        circular: dict[str, Any] = {}
        circular["self"] = circular
        with pytest.raises(DecodeError, match="nested more than 100 levels"):
            decode(circular)

    @given(st.text(alphabet='{}[]",:\\ 01eE.-tfnaul\n', max_size=60) | st.binary(max_size=60))
    def test_anything_gives_a_dict_or_a_sentence(self, sent: str | bytes) -> None:
        try:
            assert isinstance(decode(sent), dict)
        except DecodeError as error:
            assert str(error).startswith("arguments ")  # noqa: PT017 - both outcomes are right


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


class TestFast:
    @given(st.dictionaries(st.text(), JSON))
    def test_is_the_same(self, arguments: dict[str, Any]) -> None:
        text = json.dumps(arguments)
        assert fast_decode(text)[0] == decode(text) == arguments

    @given(st.dictionaries(st.text(), JSON))
    def test_counts_keys(self, arguments: dict[str, Any]) -> None:
        text = json.dumps(arguments, ensure_ascii=False)
        assert exact_keys(text) == count_members(arguments)
        assert fast_decode(text)[1] >= count_members(arguments)

    @pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"b": [{"a:": 1, "a:": 1}]}'])
    def test_duplicates_show_in_the_counts(self, text: str) -> None:
        arguments, keys = fast_decode(text)
        assert keys > count_members(arguments)
        assert exact_keys(text) > count_members(arguments)

    @pytest.mark.parametrize("text", ["[1]", "{", '{"a": NaN}', '{"a": 1} x', '{"a": ' + "1" * 5000 + "}"])
    def test_refuses_the_same(self, text: str) -> None:
        with pytest.raises(DecodeError) as fast:
            fast_decode(text)
        with pytest.raises(DecodeError) as strict:
            decode(text)
        assert str(fast.value) == str(strict.value)

    @pytest.mark.parametrize("text", ["", "  ", ' {"a": 1}\n'])
    def test_leaves_the_rest_to_the_strict_one(self, text: str) -> None:
        assert fast_decode(text)[0] == decode(text)


def repaired_text(text: str) -> tuple[dict[str, Any], Note]:
    with pytest.raises(DecodeError) as refused:
        decode(text)
    return repair_text(text, refused.value)


class TestMalformedText:
    @pytest.fixture
    def repairer(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Stands in for json_repair: `repairer["answer"]` is what it makes of any text."""
        made: dict[str, Any] = {"answer": {"city": "Paris"}}
        module = ModuleType("json_repair")
        module.repair_json = lambda text, *, return_objects: made["answer"]  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "json_repair", module)
        return made

    def test_is_repaired_with_a_note(self, repairer: dict[str, Any]) -> None:
        arguments, note = repaired_text('{"city": "Paris')
        assert arguments == {"city": "Paris"}
        assert note.kind == "repair"
        assert 'malformed JSON read as {"city": "Paris"}' in note

    @pytest.mark.parametrize("answer", ["", [], [{"city": "x"}]])
    def test_is_refused_where_no_object_comes_of_it(self, repairer: dict[str, Any], answer: Any) -> None:
        repairer["answer"] = answer
        with pytest.raises(DecodeError, match="not valid JSON"):
            repaired_text("{city")

    def test_is_held_to_the_bounds(self, repairer: dict[str, Any]) -> None:
        repairer["answer"] = {"a": float("inf")}
        with pytest.raises(DecodeError, match="inf"):
            repaired_text("{city")
        with pytest.raises(DecodeError, match="nested"):
            repaired_text("[" * 10_000)

    def test_the_package_is_named_where_it_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "json_repair", None)
        with pytest.raises(DecodeError, match=r"not valid JSON") as caught:
            repaired_text("{city")
        assert "pip install json_repair" in caught.value.remedy
        assert "pip" not in str(caught.value)


class TestEncodedTwice:
    def test_is_decoded_twice_with_a_note(self) -> None:
        decoded = decode_wrapped(json.dumps('{"a": 1}'))
        assert decoded[0] == {"a": 1}
        assert (decoded[1], decoded[1].kind) == ("arguments: JSON text read as object", "repair")

    @pytest.mark.parametrize("fence", ["```json\n%s\n```", "```\n%s```", " ```JSON %s ```\n", "```json5\r\n%s\r\n```"])
    @pytest.mark.parametrize("text", ['{"a": 1}', json.dumps('{"a": 1}')])
    def test_a_fence_is_taken_off(self, fence: str, text: str) -> None:
        assert decode_wrapped(fence % text)[0] == {"a": 1}
        assert decode_wrapped(json.dumps(fence % '{"a": 1}'))[0] == {"a": 1}

    @pytest.mark.parametrize(
        "sent",
        [
            *('"abc"', '""', '"[1]"', '"{"', "{", json.dumps('{"a": 1, "a": 2}'), json.dumps(json.dumps('{"a": 1}'))),
            *("```json\n{\n```", "```json\n[1]\n```", '```\n{"a": 1}\n``` and more', 'Here:\n```\n{"a": 1}\n```'),
        ],
    )
    def test_nothing_else_is(self, sent: str) -> None:
        with pytest.raises(DecodeError):
            decode_wrapped(sent)


def test_other_objects_in_a_mapping_pass() -> None:
    check_value({"when": object()})
