"""TOML and JSON of the pages can be pasted: the readers that they are for take them as they stand."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
from packaging.requirements import Requirement

from pegboard import SettingsError, builtin
from pegboard.inspection import Plugins
from pegboard_mcp import load_mcp_config
from tests.docs.blocks import Block, blocks

# Every language that there is on the pages, and what holds its blocks to what they claim.
LANGUAGES = {
    "python": "test_pages.py, test_cookbook.py, test_readmes.py",
    "py": "places.py says where",
    "sh": "places.py says where",
    "console": "places.py says where",
    "toml": "here",
    "json": "here",
    "jsonc": "here",
    "text": "test_pages.py: what the block before prints",
    "sql": "the tests of the pack",
    "": "signatures in test_hooks_page.py, and outputs",
}
OF_PROJECTS = {"build-system", "dependency-groups", "project", "tool"}

each_toml = pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.place)
each_json = pytest.mark.parametrize("block", blocks("json", "jsonc"), ids=lambda block: block.place)


def read_settings(text: str, folder: Path) -> None:
    """Read settings as a toolkit does. Raises `SettingsError` for what a section does not have."""
    path = folder / "pegboard.toml"
    path.write_text(text, encoding="utf-8")
    sections = {name for name, value in tomllib.loads(text).items() if isinstance(value, dict)} - {"pegboard"}
    # A made-up value for each variable that the page refers to.
    environ = {name: "sqlite:////a.db" if "URL" in name else "x" * 9 for name in re.findall(r"\$\{(\w+)\}", text)}
    plugins = Plugins.load(selection=sorted(sections), config=path, environ=environ, builtin=builtin.plugins())
    assert plugins.problems == ()
    for section in sections:
        plugins.settings_of(section)
    assert plugins.chosen is not None


def check_project(content: dict[str, object], folder: Path) -> None:
    """Check the tables of a pyproject.toml that are about Pegboard or about what is installed."""
    project, tool = content.get("project", {}), content.get("tool", {})
    assert isinstance(project, dict)
    assert isinstance(tool, dict)
    for text in project.get("dependencies", []):
        Requirement(text)
    for name, target in project.get("entry-points", {}).get("pegboard", {}).items():
        assert name.isidentifier()
        assert all(part.isidentifier() for part in re.split("[.:]", target))
    if "pegboard" in tool:
        written = "\n".join(f"{key} = {json.dumps(value)}" for key, value in tool["pegboard"].items())
        read_settings(written, folder)
    assert set(tool.get("pytest", {}).get("ini_options", {})) <= {"filterwarnings", "pegboard_plugins", "testpaths"}


@each_toml
def test_toml_is_read_as_it_stands(block: Block, tmp_path: Path) -> None:
    content = tomllib.loads(block.text)
    if content.keys() <= OF_PROJECTS:
        check_project(content, tmp_path)
    else:
        read_settings(block.text, tmp_path)


@each_json
def test_json_is_read_as_it_stands(block: Block, tmp_path: Path) -> None:
    text = re.sub(r"^\s*//.*$", "", block.text, flags=re.MULTILINE) if block.language == "jsonc" else block.text
    content = json.loads(text)
    if "mcpServers" in content:
        path = tmp_path / "mcp.json"
        path.write_text(text, "utf-8")
        assert sorted(load_mcp_config(path)) == sorted(content["mcpServers"])
    elif content.get("type") == "object":
        jsonschema.Draft202012Validator.check_schema(content)


@pytest.mark.parametrize(
    "block", [each for each in blocks("") if each.text.startswith('{"')], ids=lambda block: block.place
)
def test_output_that_looks_like_json_is_json(block: Block) -> None:
    json.loads(block.text)


def test_each_language_has_a_test() -> None:
    places = {block.language: block.place for block in blocks()}
    assert {"python", "sh", "toml"} <= places.keys()
    assert {language: place for language, place in places.items() if language not in LANGUAGES} == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[files]\nbase = 'x'\n", "unknown key 'base'"),
        ("[web]\nblock = 3\n", "web.block takes"),
        ("[openapi.apis.shop]\nurl = 'x'\n", "url"),
    ],
)
def test_settings_that_there_are_not_are_found(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=reason):
        read_settings(text, tmp_path)
