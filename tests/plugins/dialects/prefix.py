"""How much of a request's definitions stays a prefix of the next request's: `python -m tests.plugins.dialects.prefix`.

That is what a provider's cache keeps. Random programs of 50 steps switch groups, find deferred tools, register and
unregister, and set presets; after each step a request is made.
"""

import json
import random
from statistics import median, quantiles
from typing import Any

from pegboard import BoundDialect, Toolkit, tool
from tests.support.board_tools import named

__all__ = ["listed_in", "shares"]

STEPS = {"group": 46, "search": 25, "register": 20, "preset": 2, "unregister": 7}
"""What a step does, and how often of a hundred times."""
GROUPS = ("g", "h", "i")
PROVIDERS = ("openai", "openai-responses", "anthropic", "gemini", "dashscope")


def shares(name: str, *, sequences: int = 200, steps: int = 50) -> list[float]:
    """The mean share of bytes, 0 to 1, for each of so many sequences."""
    return [_Program(name, random.Random(seed)).run(steps) for seed in range(sequences)]


def listed_in(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What a request of any provider lists: definitions and namespaces."""
    found: list[dict[str, Any]] = request.get("config", request).get("tools", [])
    return [inner for each in found for inner in each.get("function_declarations", [each])]


class _Program:
    def __init__(self, name: str, chance: random.Random) -> None:
        self.chance = chance
        self.toolkit = Toolkit(plugins=["dialects"], defer_threshold=3)
        self.toolkit.register(*(named(f"plain_{number}") for number in range(8)))
        for group in GROUPS:
            self.toolkit.create_group(group, active=chance.random() < 0.5)
            self.toolkit.register(*(named(f"{group}_{number}") for number in range(4)), group=group)
        self.toolkit.register(*(tool(defer=True)(named(f"late_{number}")) for number in range(12)))
        self.toolkit.register_meta_tool()
        self.session = self.toolkit.session()
        self.chat: BoundDialect = self.session.dialect(name)
        self.new: list[str] = []

    def run(self, steps: int) -> float:
        before, total = self.definitions(), 0.0
        for step in range(steps):
            self.step(self.chance.choices(list(STEPS), list(STEPS.values()))[0], step)
            after = self.definitions()
            same = next((at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), None)
            total += (min(len(before), len(after)) if same is None else same) / len(before)
            before = after
        return total / steps

    def definitions(self) -> bytes:
        listed = listed_in(self.chat.request(cache=False))
        return b",".join(json.dumps(each).encode() for each in listed)

    def step(self, what: str, number: int) -> None:
        match what:
            case "group":
                self.session.update_groups(self.chance.choice(GROUPS), self.chance.random() < 0.5)
            case "search":
                self.session.add_found_tools(f"late_{self.chance.randrange(12)}")
            case "register":
                self.new.append(f"new_{number}")
                self.toolkit.register(named(self.new[-1]), group=self.chance.choice([(), (), "g"]))
            case "preset":
                self.session.set_presets(f"plain_{self.chance.randrange(8)}", {"note": str(number)})
            case "unregister" if self.new:
                self.toolkit.unregister(self.new.pop(self.chance.randrange(len(self.new))))


if __name__ == "__main__":
    for provider in PROVIDERS:
        measured = shares(provider)
        print(f"{provider:18} median {median(measured):.1%}  5th percentile {quantiles(measured, n=20)[0]:.1%}")
