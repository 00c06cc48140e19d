"""The full-text search: words, scores, and their order."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.builtin.search import Index, counted, words

# What the formula of the paper says, without any of the module's own numbers.
K1, B = 1.2, 0.75


def index(**texts: str) -> Index:
    return Index({name: counted([(text, 1)]) for name, text in texts.items()})


class TestWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            ("  ,;_-  ", []),
            ("get_user", ["get", "user"]),
            ("getUser", ["get", "user", "getuser"]),
            ("GitHub", ["git", "hub", "github"]),
            ("HTTPServer", ["http", "server", "httpserver"]),
            ("s3_get-object", ["s3", "get", "object"]),
            ("Straße", ["strass"]),
            ("读取文件 now", ["读", "取", "文", "件", "now"]),
            ("Пользователи", ["пользователи"]),
        ],
    )
    def test_split(self, text: str, expected: list[str]) -> None:
        assert list(words(text)) == expected

    @pytest.mark.parametrize(
        "forms",
        [
            "file files File FILES filing filed",
            "search searches searching searched",
            "query queries",
            "run runs running",
            "create creates created creating",
            "address addresses",
            "status",
            "list lists listing listed",
            "call calls calling called",
            "message messages",
        ],
    )
    def test_forms_of_one_word(self, forms: str) -> None:
        assert len(set(words(forms))) == 1

    @pytest.mark.parametrize("pair", ["use us", "read red", "is it", "bus but", "class clash"])
    def test_other_words_stay_apart(self, pair: str) -> None:
        assert len(set(words(pair))) == 2

    @given(st.text(max_size=60))
    def test_any_text(self, text: str) -> None:
        found = list(words(text))
        assert all(found)
        assert list(words(text)) == found
        assert all(word == word.casefold() for word in found)


class TestScores:
    def test_are_those_of_the_formula(self) -> None:
        documents = {"a": {"cat": 2, "dog": 1}, "b": {"cat": 1}, "c": {"fish": 4}}
        mean = (3 + 1 + 4) / 3
        weight = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
        expected = {
            "a": weight * 2 * (K1 + 1) / (2 + K1 * (1 - B + B * 3 / mean)),
            "b": weight * 1 * (K1 + 1) / (1 + K1 * (1 - B + B * 1 / mean)),
        }
        assert Index(documents).scores("Cats cat") == pytest.approx(expected)

    def test_rare_words_count_more(self) -> None:
        found = index(a="send mail", b="send letter", c="send parcel").search("send mail", 9)
        assert found == ["a", "b", "c"]

    def test_short_texts_count_more(self) -> None:
        assert index(a="mail " + "and other things " * 9, b="mail").search("mail", 9) == ["b", "a"]

    def test_repeating_a_word_helps_less_each_time(self) -> None:
        once, twice, often = (
            index(a="mail " * count + "x " * (60 - count), b="y " * 60).scores("mail")["a"] for count in (1, 2, 60)
        )
        assert 0 < twice - once < once
        assert once < twice < often < once * (K1 + 1)

    def test_weights_of_texts(self) -> None:
        assert counted([("get_user", 3), ("a user", 1)]) == {"get": 3, "user": 4, "a": 1}

    def test_a_word_that_all_have_is_no_disadvantage(self) -> None:
        assert all(score > 0 for score in index(a="mail", b="mail").scores("mail").values())


class TestSearch:
    def test_equal_ones_in_the_order_of_their_names(self) -> None:
        documents = {name: counted([("send a mail", 1)]) for name in ("c", "a", "b")}
        assert Index(documents).search("mail", 9) == ["a", "b", "c"]
        assert Index(documents).search("mail", 2) == ["a", "b"]

    def test_what_shares_no_word_is_not_found(self) -> None:
        assert index(a="mail", b="letter").search("parcel", 9) == []
        assert index(a="mail").search("", 9) == []
        assert index().search("mail", 9) == []

    def test_the_name_itself_comes_first(self) -> None:
        documents = {
            "get_user": counted([("get_user", 3), ("a long description of very many things " * 20, 1)]),
            "user": counted([("user get user get", 3)]),
        }
        assert Index(documents).search("user get", 9) == ["user", "get_user"]
        assert Index(documents).search(" get_user ", 9) == ["get_user", "user"]

    @given(
        st.dictionaries(
            st.sampled_from("abcdefgh"),
            st.lists(st.sampled_from(["mail", "letter", "send", "read", "file"]), max_size=8).map(" ".join),
            max_size=8,
        ),
        st.lists(st.sampled_from(["mail", "letter", "send", "parcel"]), max_size=4).map(" ".join),
        st.integers(0, 9),
        st.randoms(use_true_random=False),
    )
    def test_any_documents(self, texts: dict[str, str], query: str, limit: int, shuffle: random.Random) -> None:
        made = index(**texts)
        found = made.search(query, limit)
        scores = made.scores(query)
        asked = set(words(query))
        assert set(scores) == {name for name, text in texts.items() if asked & set(words(text))}
        assert all(score > 0 for score in scores.values())
        assert found == sorted(scores, key=lambda name: (-scores[name], name))[:limit]
        names = list(texts)
        shuffle.shuffle(names)
        assert index(**{name: texts[name] for name in names}).search(query, limit) == found
        reordered = query.split()
        shuffle.shuffle(reordered)
        assert made.scores(" ".join(reordered)) == scores
