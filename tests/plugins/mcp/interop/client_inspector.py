"""Calls the cases with the inspector's command line: `NODE SCRIPT ERA TARGET...`, streams as in `client_python`.

It is started for each call anew, some of them beside each other.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def asked(command: list[str], home: str, *method: str) -> dict[str, Any]:
    """What it prints first: the result. A second line says that the tool failed."""
    run = subprocess.run(
        [*command, "--method", *method],
        env={**os.environ, "HOME": home, "NODE_COMPILE_CACHE": home},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    try:
        said: dict[str, Any] = json.loads(run.stdout.splitlines()[0])
    except (IndexError, ValueError):
        return {"raised": (run.stderr or run.stdout).strip()[-300:]}
    result: dict[str, Any] = said.get("result", said)
    return result


def main(node: str, script: str, era: str, *target: str) -> None:
    cases: dict[str, dict[str, Any]] = json.load(sys.stdin)
    command = [node, script, "--protocol-era", era, "--format", "json", "--quiet"]
    command += ["--connect-timeout", "60000"]
    reached = ["--server-url", target[0]] if target[0].startswith("http") else ["--", *target]

    def called(case: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        name, arguments = case
        how = ["tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        if arguments.get("$method") == "resources/read":
            how = ["resources/read", "--uri", arguments["uri"]]
        elif arguments.get("$method") == "prompts/get":
            given = [f"{key}={value}" for key, value in arguments["arguments"].items()]
            how = ["prompts/get", "--prompt-name", arguments["name"], "--prompt-args", *given]
        return name, asked(command, home, *how, *reached)

    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(3) as pool:
        tools = pool.submit(asked, command, home, "tools/list", *reached)
        results = dict(pool.map(called, cases.items()))
    print(json.dumps({"tools": tools.result().get("tools", []), "results": results}))


main(*sys.argv[1:])
