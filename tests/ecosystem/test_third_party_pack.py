"""A third-party pack, as a wheel in a fresh environment: its tools come with its installation and go with it."""

import pytest

from tests.ecosystem.environments import CORE, Environment
from tests.workspace.project import ROOT

PLUGINS = ROOT / "plugins"
SOURCES = (CORE, PLUGINS / "schemas", PLUGINS / "files", ROOT / "docs" / "examples" / "acme-weather")

BOARD = """
import json
import pegboard

with pegboard.Toolkit() as toolkit:
    forecast = toolkit.call_sync("acme_forecast", {"city": "Oslo", "days": 2})
    print(json.dumps({
        "tools": {tool.name: tool.origin.distribution for tool in toolkit},
        "plugins": {record.name: record.state for record in toolkit.plugins},
        "problems": toolkit.problems,
        "forecast": [forecast.status, forecast.text],
    }))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("unrelated"), SOURCES, "pegboard", "pegboard-files")


def test_a_third_party_pack_is_installed_breaks_and_is_removed(environment: Environment) -> None:
    before = environment.run(BOARD)
    assert "acme_forecast" not in before["tools"]
    assert before["forecast"][0] == "not_found"

    environment.install("acme-weather")
    installed = environment.run(BOARD)
    assert installed["tools"]["acme_forecast"] == "acme-weather"
    assert installed["plugins"]["acme"] == "active"
    assert installed["problems"] == []
    assert installed["forecast"][0] == "success"
    assert "Oslo" in installed["forecast"][1]

    source = environment.module("acme_weather")
    intact = source.read_text("utf-8")
    source.write_text(f"import acme_radar\n{intact}", "utf-8")
    broken = environment.run(BOARD)
    assert broken["plugins"]["acme"] == "failed"
    assert "acme-weather" in broken["problems"][0]
    assert "acme_radar" in broken["problems"][0]
    assert broken["tools"]["view_text_file"] == "pegboard-files"
    # Asking for the tool of the broken pack says so.
    assert broken["forecast"][0] == "not_found"
    assert "acme" in broken["forecast"][1]
    source.write_text(intact, "utf-8")

    environment.pip("uninstall", "--yes", "acme-weather")
    assert environment.run(BOARD) == before
