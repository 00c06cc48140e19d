"""Docstrings in every style that people write come apart into description and parameters."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard._tools.docstrings import Docstring, parse_docstring
from tests.support.measuring import paces

GOOGLE = """Weather forecast for a city.

    Knows every city
    on Earth.

    Args:
        city (str): City name
        days (Annotated[int, Len(1, 2)], optional): Forecast days,
            at most seven: no more.

            A second paragraph.
        *rest: More
        **options: Others

    Returns:
        dict[str, int] | None: The forecast.

    Raises:
        ValueError: Never.

    Note:
        It may rain.
    """

NUMPY = """Add numbers.

    Parameters
    ----------
    a, b : int
        Numbers
        to add.

    mode : {"exact", "fast"}, optional
        How.
    *rest, **options
        More

    Returns
    -------
    int
        The sum.

    Raises
    ------
    ValueError
        Never.

    Examples
    --------
    >>> add(1, 2)
    3
    """

SPHINX = """Send mail.

    :param to: Recipient
    :param dict[str, int] headers: Headers,
        one value each
    :param \\*rest: More
    :keyword subject: Subject
    :type to: str
    :raises ValueError: Never.
    :return: The message id.
    :rtype: str

    Sent at once.
    """

CHINESE = (
    """查询天气。

    参数:
        city(str):城市名称
        days: 天数,
            最多七天
    返回:
        str: 预报
    异常:
        ValueError: 城市不存在
    """.replace(":", "\uff1a")
    .replace("(", "\uff08")
    .replace(")", "\uff09")
)


class TestStyles:
    def test_google(self) -> None:
        assert parse_docstring(GOOGLE) == Docstring(
            "Weather forecast for a city.\n\nKnows every city\non Earth.\n\nNote:\n    It may rain.",
            {
                "city": "City name",
                "days": "Forecast days, at most seven: no more. A second paragraph.",
                "rest": "More",
                "options": "Others",
            },
        )

    def test_numpy(self) -> None:
        assert parse_docstring(NUMPY) == Docstring(
            "Add numbers.\n\nExamples\n--------\n>>> add(1, 2)\n3",
            {"a": "Numbers to add.", "b": "Numbers to add.", "mode": "How.", "rest": "More", "options": "More"},
        )

    def test_sphinx(self) -> None:
        assert parse_docstring(SPHINX) == Docstring(
            "Send mail.\n\nSent at once.",
            {"to": "Recipient", "headers": "Headers, one value each", "rest": "More", "subject": "Subject"},
        )

    def test_chinese_with_wide_punctuation(self) -> None:
        assert parse_docstring(CHINESE) == Docstring("查询天气。", {"city": "城市名称", "days": "天数, 最多七天"})

    def test_chinese_with_ascii_punctuation(self) -> None:
        assert parse_docstring("查询。\n\n参数:\n    city (str): 城市\n").params == {"city": "城市"}

    @pytest.mark.parametrize("end", ["\r\n", "\r"])
    @pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX, CHINESE])
    def test_lines_may_end_otherwise(self, text: str, end: str) -> None:
        assert parse_docstring(text.replace("\n", end)) == parse_docstring(text)

    def test_nothing(self) -> None:
        assert parse_docstring(None) == parse_docstring("") == parse_docstring("  \n ") == Docstring("", {})

    def test_prose_alone(self) -> None:
        assert parse_docstring("One line.") == Docstring("One line.")


@pytest.mark.parametrize(
    "heading",
    ["Args", "args", "Arguments", "Parameters", "Params", "Keyword Args", "Other Parameters", "Attributes", "参数"],
)
def test_headings_of_parameters(heading: str) -> None:
    underline = "-" * len(heading) * 2
    assert parse_docstring(f"Do.\n\n{heading}:\n    x: The x.\n") == Docstring("Do.", {"x": "The x."})
    assert parse_docstring(f"Do.\n\n{heading}\n{underline}\nx : int\n    The x.\n") == Docstring("Do.", {"x": "The x."})


@pytest.mark.parametrize("heading", ["Raises", "Yields", "Yield", "异常"])
def test_sections_that_are_left_out(heading: str) -> None:
    assert parse_docstring(f"Do.\n\n{heading}:\n    str: text\n\nMore.") == Docstring("Do.\n\nMore.")
    assert parse_docstring(f"Do.\n\n{heading}\n----\nstr\n    text\n") == Docstring("Do.")


@pytest.mark.parametrize(
    "item", ["x: The x.", "x (int): The x.", "x (tuple(int, int)) : The x.", "- x: The x.", "`x`: The x.", "x:The x."]
)
def test_items_of_google(item: str) -> None:
    assert parse_docstring(f"Do.\n\n    Args:\n        {item}\n    ").params == {"x": "The x."}


@pytest.mark.parametrize(
    "text",
    [
        "Returns:\n    The sum.",
        "Returns:\n    dict[str, list[int]] | None: The sum.",
        "返回\uff1a\n    天气预报\uff1a晴",
        "Returns:\n    The sum\n    of both.",
        "Returns\n-------\nint\n    The sum.",
        "Returns\n-------\nThe sum.",
        ":returns: The sum.",
        ":return:\n    The sum\n    of both.",
    ],
)
def test_return_values_are_left_out(text: str) -> None:
    assert parse_docstring(f"Do.\n\n{text}\n") == Docstring("Do.")


class TestProse:
    """What is no section stays where it was."""

    @pytest.mark.parametrize(
        "text",
        [
            "Do.\n\nExample:\n    >>> do()\n",
            "Do.\n\nSee Also\n--------\nother : does more",
            "Do.\n\nArgs: none.",
            "Do.\n\nArgs:\nnothing is indented here",
            "Do.\n\nParameters:\n    read them from the manual",
            "Do.\n\n:meta private:",
            ":class:`Foo` does it.",
            "Do.\n\n    Args:\n        x: quoted in an indented block\n\nof prose",
        ],
    )
    def test_stays(self, text: str) -> None:
        assert parse_docstring(text) == Docstring(text.strip())

    def test_behind_numpy_items_is_found(self) -> None:
        parsed = parse_docstring("Do.\n\nParameters\n----------\nx : int\n    The x.\n\nThat is all.")
        assert parsed == Docstring("Do.\n\nThat is all.", {"x": "The x."})

    def test_first_description_of_a_parameter_counts(self) -> None:
        assert parse_docstring("Do.\n\nArgs:\n    x: first\n\nAttributes:\n    x: second\n    y: own").params == {
            "x": "first",
            "y": "own",
        }

    def test_field_without_a_name_is_no_parameter(self) -> None:
        assert parse_docstring("Do.\n\n:param: what?") == Docstring("Do.")


HEADINGS = ["Args:", "Parameters", "----", "Returns:", ":param int x:", ":returns:", "x (int): y", "a, b : int"]
MARKS = ["\n", "\n\n", "\n    ", "    ", "\t", " ", "*", "[", "(", ":", "text", "\r\n", "\x0c", "\u3000", "参数\uff1a"]
PIECES = st.sampled_from(HEADINGS) | st.sampled_from(MARKS)


@given(st.text() | st.lists(PIECES | st.text(max_size=5)).map("".join))
def test_any_text_comes_apart(text: str) -> None:
    parsed = parse_docstring(text)
    assert len(parsed.description) <= len(text.expandtabs())
    assert all("\n" not in description for description in parsed.params.values())


@given(st.lists(st.text(alphabet="ab .,", max_size=8)).map("\n".join))
def test_text_without_sections_is_the_description(text: str) -> None:
    cleaned = "\n".join(line.rstrip() for line in inspect.cleandoc(text).split("\n"))
    assert parse_docstring(text) == Docstring(cleaned.strip())


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
WORDS = st.lists(st.text(alphabet="abc,.;-", min_size=1, max_size=6), min_size=1, max_size=4).map(" ".join)


@given(st.dictionaries(NAMES, WORDS, min_size=1, max_size=4))
def test_all_styles_say_the_same(params: dict[str, str]) -> None:
    google = "Do.\n\nArgs:\n" + "".join(f"    {name} (int): {text}\n" for name, text in params.items())
    numpy = "Do.\n\nParameters\n----------\n" + "".join(f"{name} : int\n    {text}\n" for name, text in params.items())
    sphinx = "Do.\n\n" + "".join(f":param int {name}: {text}\n" for name, text in params.items())
    assert parse_docstring(google) == parse_docstring(numpy) == parse_docstring(sphinx) == Docstring("Do.", params)


@pytest.mark.parametrize("hostile", ["[" * 50_000, "a[]|" * 12_000, "x" + " " * 50_000, "x (" * 16_000, ") " * 25_000])
def test_no_text_takes_long(hostile: str) -> None:
    def parse_all() -> None:
        for text in ("Do.\n\nArgs:\n    {}", "Do.\n\nReturns:\n    {}", "Do.\n\n:param {}", "Parameters\n---\n{}"):
            parse_docstring(text.format(hostile))

    assert paces(parse_all, most=2_000) < 2_000
