"""Takes out of the semantic conventions for generative AI what they say of tools, as data to hold spans against.

    git clone https://github.com/open-telemetry/semantic-conventions-genai
    python -m tests.plugins.otel.extract semantic-conventions-genai COMMIT > tests/plugins/otel/conventions.json

It takes names, types, units and levels, and none of the text. It needs `pyyaml`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import yaml

REPOSITORY: Final = "https://github.com/open-telemetry/semantic-conventions-genai"
SPAN: Final = "gen_ai.execute_tool.internal"
METRIC: Final = "gen_ai.execute_tool.duration"


def extracted(checkout: str, commit: str) -> dict[str, Any]:
    """What the files of a commit say of the span and the metric of a tool."""

    def read(path: str) -> Any:
        found = subprocess.run(
            ["git", "-C", checkout, "show", f"{commit}:model/{path}"], check=True, capture_output=True
        )
        return yaml.safe_load(found.stdout)

    spans, metrics, registry = (read(f"gen-ai/{name}.yaml") for name in ("spans", "metrics", "registry"))
    groups = {group["id"]: group for file in (spans, metrics) for group in file["attribute_groups"]}
    types = {each["key"]: each["type"] for each in registry["attributes"]}

    def references(holder: Any) -> Iterator[Any]:
        for each in holder["attributes"]:
            if "ref_group" in each:
                yield from references(groups[each["ref_group"]])
            else:
                yield each

    def attributes(holder: Any) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for each in references(holder):  # a later one refines what the groups say
            level = each.get("requirement_level")
            found = known.setdefault(each["ref"], _typed(types.get(each["ref"])))
            if level is not None:
                found["level"] = level if isinstance(level, str) else next(iter(level))
            if each.get("sampling_relevant"):
                found["sampling_relevant"] = True
        return dict(sorted(known.items()))

    (span,) = (each for each in spans["spans"] if each["type"] == SPAN)
    (metric,) = (each for each in metrics["metrics"] if each["name"] == METRIC)
    pattern = re.search("SHOULD be `(.+?)`", span["name"]["note"])
    return {
        "repository": REPOSITORY,
        "commit": commit,
        "license": "Apache-2.0",
        "schema_url": read("manifest.yaml")["schema_url"],
        "span": {
            "type": SPAN,
            "kind": span["kind"],
            "name": pattern and pattern[1],
            "attributes": attributes(span),
        },
        "metric": {
            "name": METRIC,
            "instrument": metric["instrument"],
            "unit": metric["unit"],
            "attributes": attributes(metric),
        },
    }


def _typed(kind: Any) -> dict[str, Any]:
    """The type of an attribute; null for those of the conventions that these build on."""
    if isinstance(kind, dict):
        return {"type": "string", "members": sorted(member["value"] for member in kind["members"])}
    return {"type": kind}


if __name__ == "__main__":
    print(json.dumps(extracted(*sys.argv[1:]), indent=2))
