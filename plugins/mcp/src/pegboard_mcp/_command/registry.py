"""The registry of MCP servers: `server.json`, by which a published server is listed there."""

from __future__ import annotations

import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pegboard import PegboardError
from pegboard.inspection import write_file
from pegboard_mcp._auth.guard import parse_address
from pegboard_mcp._wire.terminal import say

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["server_json", "shown_or_written"]

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
LONGEST: Final = 100
"""Characters of a description."""
_NAME: Final = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
_MAIN: Final = "pegboard_cli:main"
_OF_THIS_MACHINE: Final = ("config", "install", "mcp", "state_key_file", "token_file")
_SECRET: Final = {"isRequired": True, "isSecret": True}


def server_json(options: Namespace, token: str) -> dict[str, Any]:
    """What the registry is to know of a server; `token` names the variable of its bearer token, if it has one.

    Its package is the distribution of the program, its remote address `--url`. Values of variables are never in it.
    Raises `PegboardError` for what cannot be listed there.
    """
    for option in _OF_THIS_MACHINE:
        if getattr(options, option):
            raise PegboardError(f"--{option.replace('_', '-')} is for this machine; a published server cannot have it")
    if not _NAME.fullmatch(options.name):
        raise PegboardError(f"the registry takes names such as io.github.you/board, and not {options.name!r}: --name")
    found = _distribution(options.target)
    listed: dict[str, Any] = {
        "$schema": SCHEMA,
        "name": options.name,
        "description": _description(found),
        "version": found.version,
    }
    variables = [*(options.env or ()), *([token] if token and options.http and not options.url else [])]
    if wrong := next((each for each in variables if not _VARIABLE.fullmatch(each)), None):
        raise PegboardError(f"--env takes the name of a variable and nothing more: {wrong.partition('=')[0]!r}")
    if options.url is not None:
        return {**listed, "remotes": [_over_http(_address(options.url), token)]}
    return {**listed, "packages": [_package(options, found, variables, token)]}


def shown_or_written(listed: dict[str, Any], file: str) -> str:
    """Write it to a file, or give the text that is to be printed where the file is `-`."""
    text = json.dumps(listed, indent=2, ensure_ascii=False) + "\n"
    if file == "-":
        return text
    write_file(Path(file), text, "the server.json")
    say(f"written to {file}")
    return ""


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or " " in url:
        raise PegboardError("--url takes the public address, such as https://example.com/mcp, without a login")
    return url


def _distribution(target: str | None) -> Distribution:
    """The installed distribution that has the program."""
    module, mark, _ = (target or "").rpartition(":")
    if not mark or module.endswith(".py"):
        raise PegboardError("the registry lists published packages: name MODULE:NAME of an installed one")
    top = module.partition(".")[0]
    for name in (*packages_distributions().get(top, ()), top):  # an editable one does not say which modules it has
        try:
            return distribution(name)
        except PackageNotFoundError:
            continue
    raise PegboardError(f"no installed package has the module {top!r}; install the one that is published")


def _description(found: Distribution) -> str:
    summary = " ".join(str(found.metadata.json.get("summary", "")).split())
    if not summary or summary == "UNKNOWN":
        raise PegboardError(f"the package {found.name} has no description; give its pyproject.toml one")
    return summary if len(summary) <= LONGEST else f"{summary[: LONGEST - 3].rstrip()}..."


def _package(options: Namespace, found: Distribution, variables: list[str], token: str) -> dict[str, Any]:
    """The package, and how clients start it: by the script that has its name, as `uvx` does."""
    script = next((each for each in found.entry_points.select(group="console_scripts", name=found.name)), None)
    if script is None:
        raise PegboardError(
            f"clients start a package by the script of its name, and {found.name} has none; "
            f'add to its pyproject.toml, under [project.scripts]: {found.name} = "{_MAIN}"'
        )
    arguments = _arguments(options) if script.value == _MAIN else []
    if f"mcp-name: {options.name}" not in _readme(found):
        say(f"the README of {found.name} has to say `mcp-name: {options.name}`, by which the registry knows its owner")
    package: dict[str, Any] = {
        "registryType": "pypi",
        "identifier": found.name,
        "version": found.version,
        "runtimeHint": "uvx",
        "transport": _transport(options.http, token),
    }
    if arguments:
        package["packageArguments"] = [{"type": "positional", "value": each} for each in arguments]
    if variables:
        package["environmentVariables"] = [{"name": each, **_SECRET} for each in dict.fromkeys(variables)]
    return package


def _readme(found: Distribution) -> str:
    return str(found.metadata.json.get("description", ""))


def _arguments(options: Namespace) -> list[str]:
    chosen = [("--tools", each) for each in options.tools or ()] + [("--groups", each) for each in options.groups or ()]
    flags = [f"--{each}" for each in ("all", "stateless") if getattr(options, each)]
    served = [] if options.http is None else ["--http", options.http]
    named = [part for pair in chosen for part in pair]
    return ["serve", options.target, *named, *flags, *served, "--name", options.name]


def _transport(http: str | None, token: str) -> dict[str, Any]:
    if http is None:
        return {"type": "stdio"}
    if parse_address(http)[1] == 0:
        raise PegboardError("port 0 is another one each time; name the one that is served")
    return _over_http(f"http://{http}/mcp", token)


def _over_http(url: str, token: str) -> dict[str, Any]:
    transport: dict[str, Any] = {"type": "streamable-http", "url": url}
    if token:
        header = {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": _SECRET}, **_SECRET}
        transport["headers"] = [header]
    return transport
