"""A server over stdio whose schemas are attacks; run as a script with what it attacks by, how often, and a seed.

Each tool asks for arguments that are dear to check, and answers with data that is.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "schemas"))

from hostile_schemas import (  # type: ignore[import-not-found]
    pattern_attacks,
    schema_attacks,
)

ATTACKS = (pattern_attacks if sys.argv[1] == "patterns" else schema_attacks)(int(sys.argv[2]), int(sys.argv[3]))


def answer(request: dict[str, Any]) -> Any:
    if request["method"] == "initialize":
        server = {"name": "hostile", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
    if request["method"] == "tools/list":
        return {
            "tools": [
                {"name": f"attack{number}", "inputSchema": attack.schema, "outputSchema": attack.schema}
                for number, attack in enumerate(ATTACKS)
            ]
        }
    if request["method"] == "tools/call":
        attack = ATTACKS[int(request["params"]["name"].removeprefix("attack"))]
        return {"content": [{"type": "text", "text": "there"}], "structuredContent": attack.value}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}) + "\n")
        sys.stdout.flush()
