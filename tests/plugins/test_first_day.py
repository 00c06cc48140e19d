"""The packs of a first day together, web, sql, documents and skills: what they cost, and how a skill brings tools."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pegboard import Toolkit
from tests.support.interpreters import printed

pytest.importorskip("pegboard_documents")
pytest.importorskip("pegboard_skills")
pytest.importorskip("pegboard_sql")
pytest.importorskip("pegboard_web")

FOUR = ("web", "sql", "documents", "skills")
HEAVY = ("httpx2", "pegboard_net", "pegboard_process", "pegboard_sql._databases", "pypdf", "selectolax", "yaml")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """All four configured, so that each of their tools is offered."""
    from tests.plugins.skills.desk import skill_text, write_skill

    write_skill(tmp_path / "skills" / "letters", skill_text("letters", "Writes letters to customers."))
    sqlite3.connect(tmp_path / "shop.db").close()
    return {
        "web": {"search": "searxng", "search_url": "http://127.0.0.1:1"},
        "sql": {"databases": {"shop": {"url": f"sqlite:///{tmp_path}/shop.db", "write": True}}},
        "documents": {"base_dir": str(tmp_path)},
        "skills": {"folders": [str(tmp_path / "skills")]},
    }


def test_all_their_definitions_are_short(settings: dict[str, Any]) -> None:
    pytest.importorskip("pypdfium2", reason="document_images needs it")
    with Toolkit(plugins=[*FOUR, "dataclasses", "dialects"], settings=settings) as toolkit:
        shown = toolkit.schemas("openai")
    assert [each["function"]["name"] for each in shown] == [
        *("document_read", "document_info", "document_tables", "document_images", "load_skill", "read_skill_file"),
        *("sql_schema", "sql_query", "sql_explain", "sql_execute", "web_fetch", "web_search"),
    ]
    assert len(json.dumps(shown)) / 4 < 1_800  # about four characters make a token


def test_a_skill_makes_the_tools_of_another_pack_available(settings: dict[str, Any], tmp_path: Path) -> None:
    from pegboard_documents import DocumentTools

    (tmp_path / "prices.csv").write_text("item,price\ntea,4\n", encoding="utf-8")
    with Toolkit(plugins=["skills", "dataclasses"], settings=settings) as toolkit:
        toolkit.register(DocumentTools(str(tmp_path)), group="skill:letters", enable=["document_tables"])
        session, other = toolkit.session(), toolkit.session()
        assert session.call_sync("document_tables", {"path": "prices.csv"}).status == "inactive"
        assert session.call_sync("load_skill", {"name": "letters"}).data["tools"] == ["document_tables"]
        (table,) = session.call_sync("document_tables", {"path": "prices.csv"}).data
        assert table["rows"] == [["item", "price"], ["tea", "4"]]
        assert other.call_sync("document_tables", {"path": "prices.csv"}).status == "inactive"


def test_installed_they_load_little(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pegboard import Toolkit\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "Toolkit(plugins=['dataclasses', 'files'])\nbefore = set(sys.modules)\n"
        f"Toolkit(plugins=['dataclasses', 'files', *{FOUR}])\n"
        f"print(len(set(sys.modules) - before) <= 20, [name for name in {HEAVY} if name in sys.modules])"
    )
    assert printed(code) == "True []"
