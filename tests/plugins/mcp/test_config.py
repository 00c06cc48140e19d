"""The `mcpServers` files of desktop clients and editors."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import SettingsError
from pegboard_mcp import McpServer, load_mcp_config
from pegboard_mcp._client.secrets import expanded
from pegboard_mcp._client.transports import Http, Sse, Stdio


def load(tmp_path: Path, content: Any) -> dict[str, McpServer]:
    path = tmp_path / "mcp.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return load_mcp_config(path)


def test_reads_every_kind(tmp_path: Path) -> None:
    servers = load(
        tmp_path,
        {
            "mcpServers": {
                "time": {"command": "mcp-server-time", "args": ["--utc"], "env": {"TZ": "UTC"}, "cwd": "/tmp"},
                "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${KEY}"}, "timeout": 7},
                "old": {"type": "sse", "url": "https://example.com/sse"},
                "off": {"command": "x", "disabled": True},
            }
        },
    )
    assert {name: server.transport for name, server in servers.items()} == {
        "time": Stdio("mcp-server-time", ("--utc",), {"TZ": "UTC"}, "/tmp"),
        "web": Http("https://example.com/mcp", {"X-Key": "${KEY}"}, timeout=7.0),
        "old": Sse("https://example.com/sse"),
    }
    assert [server.name for server in servers.values()] == ["time", "web", "old"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"mcp\.json is no JSON"),
        ({}, 'has no "mcpServers" object'),
        ({"mcpServers": {"a": 1}}, r"mcpServers\.a is no object"),
        ({"mcpServers": {" ": {"command": "x"}}}, r"mcpServers\. : name cannot be blank"),
        ({"mcpServers": {"a": {}}}, r'mcpServers\.a needs a "command" or a "url"'),
        ({"mcpServers": {"a": {"command": ""}}}, r"mcpServers\.a\.command must be a text"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, r"mcpServers\.a\.args must be a list of texts"),
        ({"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}, r"mcpServers\.a\.env must be an object of texts"),
        ({"mcpServers": {"a": {"url": "http://x", "type": "carrier"}}}, r"mcpServers\.a\.type is 'carrier'"),
        ({"mcpServers": {"a": {"url": "http://x", "timeout": 0}}}, r"mcpServers\.a\.timeout must be a number"),
    ],
)
def test_says_what_is_wrong_and_where(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(tmp_path, content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json cannot be read"):
        load_mcp_config(tmp_path / "none.json")


def test_variables_are_read_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_TEST_KEY", "k")
    monkeypatch.delenv("PEGBOARD_TEST_NONE", raising=False)
    assert expanded("a ${PEGBOARD_TEST_KEY} ${env:PEGBOARD_TEST_KEY} ${PEGBOARD_TEST_NONE:-d} $HOME") == "a k k d $HOME"
    with pytest.raises(ValueError, match="'PEGBOARD_TEST_NONE' is not set"):
        expanded("${PEGBOARD_TEST_NONE}")


def test_a_repr_shows_no_secret() -> None:
    shown = repr(McpServer.http("https://ada:pw@example.com/mcp?key=k", headers={"Authorization": "Bearer s3cret"}))
    assert shown == "McpServer('https://example.com/mcp', 0 tools, closed)"
