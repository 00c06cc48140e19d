"""Every page's examples run from top to bottom and print what the page says; what a page quotes is there."""

import ast
import re
import sys
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from pegboard import Toolkit, hookspecs
from tests.docs import acme
from tests.docs.page import Page
from tests.workspace.project import ROOT

DOCS = ROOT / "docs"
PACK = DOCS / "examples" / "acme-weather"
HOOKS = {name for name in vars(hookspecs) if name.startswith("provide_")} | {"settings_type", "tools_from"}
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("internals/*.md"))]
PAGES += sorted(DOCS.glob("packs/*.md"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("path", PAGES, ids=name)


def page(tmp_path: Path, text: str) -> Page:
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    return Page(path)


@each_page
def test_examples_of_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "acme", acme)
    for source in sorted(DOCS.glob("examples/*/src")):
        monkeypatch.syspath_prepend(source)
    Page(path).run()


@pytest.mark.parametrize("path", [*PAGES, *sorted(DOCS.glob("cookbook/*.md"))], ids=name)
def test_files_that_a_page_links_to_are_there(path: Path) -> None:
    links = re.findall(r"\]\((?!\w+:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def headings(path: Path) -> set[str]:
    """What links to places of a page end in: its headings, as the site and GitHub write them."""
    text = re.sub("^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall("^#+ (.*)$", text, re.MULTILINE))
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", [*PAGES, *sorted(DOCS.glob("cookbook/*.md"))], ids=name)
def test_places_that_a_page_links_to_are_there(path: Path) -> None:
    links = re.findall(r"\]\((?!\w+:)([^)#]*)#([^)]+)\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if link[1] not in headings(path.parent / link[0] if link[0] else path)] == []


@pytest.mark.parametrize("path", sorted(DOCS.glob("packs/*.md")), ids=name)
def test_each_setting_of_a_pack_is_on_its_page(path: Path) -> None:
    pack = pytest.importorskip(f"pegboard_{path.stem.replace('-', '_')}")
    settings = attrs.fields(pack.settings_type()) if hasattr(pack, "settings_type") else ()
    told = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    assert [field.name for field in settings if field.name not in told] == []


def test_each_parameter_of_an_agent_is_on_its_page() -> None:
    agent = pytest.importorskip("pegboard_agent").Agent
    text = (DOCS / "packs" / "agent.md").read_text(encoding="utf-8")
    table = text.partition("| parameter |")[2].partition("\n\n")[0]
    defaults = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE))
    fields = {field.name: field.default for field in attrs.fields(agent) if field.init}
    assert sorted(defaults) == sorted(fields)
    plain = {name: default for name, default in fields.items() if isinstance(default, (str, int, tuple))}
    assert {name: ast.literal_eval(defaults[name].strip("`")) for name in plain} == plain


@each_page
def test_a_pack_on_a_page_works_when_it_is_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block that implements a hook, alone in a module, as a reader would save it."""
    monkeypatch.setitem(sys.modules, "acme", acme)
    text = path.read_text(encoding="utf-8")
    for number, block in enumerate(re.findall("^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
        if "ModuleType(" in block:  # a program that makes a module, not a module to copy
            continue
        hooks = {node.name for node in ast.parse(block).body if isinstance(node, ast.FunctionDef)} & HOOKS
        if not hooks:
            continue
        module = ModuleType(f"copied_{number}")
        exec(compile(block, f"{path}, block {number}", "exec"), vars(module))
        with Toolkit(plugins=[module], on_plugin_error="raise") as toolkit:
            (record,) = (each for each in toolkit.plugins if each.name == module.__name__)
            assert record.state == "active", record.reason
        marked = {name for name in hooks if hasattr(getattr(module, name), f"{hookspecs.GROUP}_impl")}
        assert marked == hooks


@pytest.mark.parametrize(
    ("language", "quoted"),
    [("toml", PACK / "pyproject.toml"), ("python", PACK / "src" / "acme_weather" / "__init__.py")],
)
def test_page_about_packs_quotes_the_example(language: str, quoted: Path) -> None:
    text = (DOCS / "writing-a-pack.md").read_text(encoding="utf-8")
    block = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block
    assert block[1] in quoted.read_text(encoding="utf-8")


class TestPage:
    def test_counts_its_examples(self, tmp_path: Path) -> None:
        assert page(tmp_path, "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```sh\nfalse\n```\n").run() == 2

    def test_examples_share_a_namespace(self, tmp_path: Path) -> None:
        assert page(tmp_path, "```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n").run() == 2

    def test_failing_example_is_found_by_page_and_line(self, tmp_path: Path) -> None:
        broken = page(tmp_path, "# Title\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
        with pytest.raises(AssertionError) as raised:
            broken.run()
        assert raised.value.__notes__ == [f"in the example at {tmp_path / 'page.md'}:7"]
        assert raised.traceback[-1].lineno == 7  # counted from 0: the line of the assertion itself

    @pytest.mark.parametrize("language", ["text", "json"])
    def test_other_output_than_shown_fails(self, tmp_path: Path, language: str) -> None:
        with pytest.raises(AssertionError):
            page(tmp_path, f"```python\nprint(1)\n```\n\n```{language}\n2\n```\n").run()
