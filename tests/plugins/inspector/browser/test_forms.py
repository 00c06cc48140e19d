"""The form of every type of the battery: takes each value, gives it back, and shows what the board refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import Toolkit
from tests.plugins.inspector.served import Client

pytest.importorskip("annotated_types")  # which the battery is made with
from tests.types.battery import BATTERY, Entry

pytestmark = pytest.mark.slow

GIVE = """async ([schema, values]) => {
  const { form } = await import("/page/form.js");
  const { parse, print } = await import("/page/json.js");
  return values.map((text) => {
    const fields = form(parse(schema));
    document.querySelector("main").replaceChildren(fields.element);
    fields.set(parse(text));
    const given = fields.get();
    return given === null ? null : print(given);
  });
}"""
REFUSE = """async ([schema, text, problems]) => {
  const { form } = await import("/page/form.js");
  const { parse } = await import("/page/json.js");
  const fields = form(parse(schema));
  document.querySelector("main").replaceChildren(fields.element);
  fields.set(parse(text));
  fields.show(problems.map((each) => {
    const found = /^([^\\s:]+): (.*)$/s.exec(each);
    return found ? { path: found[1], message: found[2] } : { path: "", message: each };
  }));
  const said = [...document.querySelectorAll("main .error, main .wrong li")];
  return said.filter((each) => each.checkVisibility() && each.textContent).length;
}"""


def board_of(entry: Entry) -> Toolkit:
    def take(value: Any) -> str:
        return repr(value)

    take.__annotations__["value"] = entry.annotation
    toolkit = Toolkit(plugins=())
    toolkit.register(take)
    return toolkit


def written(value: Any) -> str:
    return json.dumps({"value": value})


@pytest.fixture
def empty(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> Any:
    """A page to make forms in."""
    toolkit = Toolkit(plugins=())
    toolkit.register(lambda: 1, name="nothing")
    return open_page(inspected(toolkit))


def test_every_value_comes_out_as_it_went_in(empty: Any) -> None:
    wrong = []
    for entry in BATTERY:
        with board_of(entry) as toolkit:
            texts = [written(sent) for sent, _ in entry.good]
            given = empty.evaluate(GIVE, [json.dumps(toolkit["take"].parameters), texts])
            for text, found in zip(texts, given, strict=True):
                if found is None or json.loads(found) != json.loads(text):
                    wrong.append((str(entry), text, found))
                elif toolkit.call_sync("take", found).is_error:
                    wrong.append((str(entry), text, toolkit.call_sync("take", found).text))
    assert wrong == []


def test_whatever_the_board_refuses_is_said_in_the_form(empty: Any) -> None:
    unsaid = []
    for entry in BATTERY:
        with board_of(entry) as toolkit:
            schema = json.dumps(toolkit["take"].parameters)
            for bad in entry.bad[:4]:
                refused = toolkit.call_sync("take", written(bad))
                if refused.error is None:  # repaired
                    continue
                problems = refused.error.details["problems"]
                if not empty.evaluate(REFUSE, [schema, written(bad), problems]):
                    unsaid.append((str(entry), bad, problems))
    assert unsaid == []


def test_an_empty_form_of_every_type_says_what_it_needs_or_gives_a_value(empty: Any) -> None:
    unsaid = []
    for entry in BATTERY:
        with board_of(entry) as toolkit:
            found = empty.evaluate(
                """async ([schema]) => {
                  const { form } = await import("/page/form.js");
                  const { parse, print } = await import("/page/json.js");
                  const fields = form(parse(schema));
                  document.querySelector("main").replaceChildren(fields.element);
                  const given = fields.get();
                  if (given !== null) return print(given);
                  return [...document.querySelectorAll("main .error")].some((each) => each.textContent) ? null : "";
                }""",
                [json.dumps(toolkit["take"].parameters)],
            )
            if found is not None and toolkit.call_sync("take", found).status not in ("success", "invalid"):
                unsaid.append((str(entry), found))
            if found == "":
                unsaid.append((str(entry), "null without a word"))
    assert unsaid == []
