"""The sabotage matrix: what each bad plugin does, and what must be said of it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from pegboard_testing import fake_distribution

__all__ = ["CASES", "Case"]

HEADER = "import pegboard\nfrom pegboard import hookimpl\n"
TOOL = """
def {name}_tool(text: str = "x") -> str:
    "Say what was said."
    return text

@hookimpl
def provide_tools(settings):
    return [{name}_tool]
"""
HOOK = "\n@hookimpl\ndef provide_tools(settings):\n    "
HANDLER = """
import fractions

@hookimpl
def provide_types():
    return [pegboard.TypeHandler(fractions.Fraction, lambda annotation, types: types.plan(str))]
"""


@frozen
class Case:
    """One bad plugin. `states` are those of the plugins it consists of, `said` what their reasons and problems say."""

    install: Callable[[Path], Any]
    states: Mapping[str, str]
    said: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    slow: bool = False


def module(name: str, source: str, **options: Any) -> Callable[[Path], None]:
    """A pack `acme-<name>` with one module."""

    def install(site: Path) -> None:
        modules = {f"bad_{name}": HEADER + source}
        given: dict[str, Any] = {"entry_points": {name: f"bad_{name}"}, "modules": modules}
        fake_distribution(site, f"acme-{name}", "1.0", **given | options)

    return install


def failing(name: str, source: str, *said: str, **options: Any) -> Case:
    """A plugin that fails and says why."""
    return Case(module(name, source, **options), {name: "failed"}, said)


def odd(name: str, source: str, *said: str, slow: bool = False) -> Case:
    """A plugin that does what it should not, and works."""
    return Case(module(name, source + TOOL.format(name=name)), {name: "active"}, said, (f"{name}_tool",), slow)


def several(*installs: Callable[[Path], Any]) -> Callable[[Path], None]:
    def install(site: Path) -> None:
        for each in installs:
            each(site)

    return install


def broken_metadata(site: Path) -> None:
    info = fake_distribution(site, "acme-metadata", entry_points={"metadata": "bad_metadata"})
    (info / "METADATA").write_bytes(b"\xff\xfe no header at all")


def unrelated_not_text(site: Path) -> None:
    info = fake_distribution(site, "unrelated", entry_points="x")
    (info / "entry_points.txt").write_bytes(b"\xff\xfe\x00[pegboard]")


def stale(site: Path) -> None:
    module("stale", TOOL.format(name="stale"))(site)
    (site / "acme_stale-0.9.dist-info").mkdir()
    (site / "acme_stale-1.1.dist-info").mkdir()


def twice(site: Path) -> None:
    older = {"entry_points": {"twice": "bad_twice"}, "modules": {"bad_twice": HEADER + TOOL.format(name="twice")}}
    fake_distribution(site, "acme-twice", "0.9", **older)
    fake_distribution(site, "acme-twice", "1.10", **older)


def named(distribution: str, name: str, source: str) -> Callable[[Path], Any]:
    tag = distribution.replace("-", "_")
    options = {"entry_points": {name: f"bad_{tag}"}, "modules": {f"bad_{tag}": HEADER + source}}
    return lambda site: fake_distribution(site, distribution, "1.0", **options)


CASES: dict[str, Case] = {
    "exception at import": failing("raises", "raise ValueError('boom')", "raised ValueError at import: boom"),
    "exit at import": failing("exits", "raise SystemExit(3)", "raised SystemExit at import: 3"),
    "interrupt at import": failing("interrupts", "raise KeyboardInterrupt", "raised KeyboardInterrupt at import"),
    "odd exception at import": failing(
        "strange", "class Odd(BaseException):\n    __str__ = None\nraise Odd", "raised Odd at import"
    ),
    "recursion at import": failing("recurses", "def again(): again()\nagain()", "raised RecursionError at import"),
    "missing dependency": failing("needy", "import no_such_module", "the module 'no_such_module'", "acme-needy 1.0"),
    "syntax error": failing("syntax", "def :", "raised SyntaxError at import"),
    "raises in a hook": failing("inhook", f"{HOOK}1 // 0", "raised ZeroDivisionError in provide_tools"),
    "raises half way through a hook": failing(
        "halfway", f"{HOOK}yield lambda: None\n    1 // 0", "raised ZeroDivisionError in provide_tools"
    ),
    "exits in a hook": failing("exithook", f"{HOOK}raise SystemExit", "raised SystemExit in provide_tools"),
    "garbage from a hook": failing("garbage", f"{HOOK}return 42", "provide_tools returned an int"),
    "garbage among tools": failing("trash", f"{HOOK}return [print, None]", "item 1 of provide_tools"),
    "a tool that cannot be one": Case(
        module("untyped", f"class Odd:\n    __slots__ = ()\ndef f(x: Odd): ...\ndef g(x: int): ...{HOOK}return [f, g]"),
        {"untyped": "active"},
        ("untyped (acme-untyped 1.0): tool 'f': parameter 'x': no type handler maps bad_untyped.Odd",),
        ("g",),
    ),
    "garbage types": failing("types", "@hookimpl\ndef provide_types(): return ['x']", "item 0 of provide_types"),
    "garbage settings": failing(
        "settings", f"@hookimpl\ndef settings_type(): return int{HOOK}return []", "return an attrs class"
    ),
    "misspelt hook": failing("misspelt", "@hookimpl\ndef provide_tool(settings): ...", "Did you mean 'provide_tools'"),
    "wrong signature": failing(
        "signature", "@hookimpl\ndef provide_tools(config): ...", "provide_tools(settings, toolkit)"
    ),
    "no hooks": failing("hookless", "x = 1", "implements no hook"),
    "not a module": failing("object", "x = 42", "the int implements no hook", entry_points={"object": "bad_object:x"}),
    "entry point to nothing": failing("nowhere", "", "leads to no module", entry_points={"nowhere": "bad_gone"}),
    "entry point to no attribute": failing("nothing", "", "has no 'x'", entry_points={"nothing": "bad_nothing:x"}),
    "malformed entry_points.txt": Case(
        module("entries", TOOL.format(name="entries"), entry_points="[pegboard]\nhalf\nentries = bad_entries\n[x\n="),
        {"half": "failed", "entries": "active"},
        ('the line "half"', "reinstall acme-entries"),
        ("entries_tool",),
    ),
    "a third-party malformed entry_points.txt": Case(
        lambda site: fake_distribution(site, "unrelated-lines", entry_points="[console_scripts]\nno equals\n[x\n"), {}
    ),
    "a third-party entry_points.txt that is no text": Case(
        unrelated_not_text, {}, ("unrelated-1.0.dist-info: entry points cannot be read",)
    ),
    "malformed METADATA": Case(broken_metadata, {"metadata": "failed"}, ("the METADATA in", "acme_metadata-1.0")),
    "stale empty dist-info": Case(stale, {"stale": "active"}, (), ("stale_tool",)),
    "duplicate distribution": Case(
        twice, {"twice": "active"}, ("acme_twice-1.10.dist-info comes first on the path",), ("twice_tool",)
    ),
    "two of one plugin name": Case(
        several(
            named("acme-same-b", "same", TOOL.format(name="late")),
            named("acme-same-a", "same", TOOL.format(name="early")),
        ),
        {"same": "active"},
        ("acme-same-a 1.0 and acme-same-b 1.0 both offer the plugin 'same', and acme-same-a 1.0 counts",),
        ("early_tool",),
    ),
    "two of one tool name": Case(
        several(module("clash_a", TOOL.format(name="shared")), module("clash_b", TOOL.format(name="shared"))),
        {"clash_a": "active", "clash_b": "active"},
        ("'shared_tool' is offered by 2 packs: clash_a__shared_tool (acme-clash_a 1.0), clash_b__shared_tool",),
        ("clash_a__shared_tool", "clash_b__shared_tool"),
    ),
    "two handlers of one type": Case(
        several(module("types_a", HANDLER), module("types_b", HANDLER)),
        {"types_a": "active", "types_b": "active"},
        ("acme-types_a 1.0 and acme-types_b 1.0 both map", "Fraction"),
    ),
    "requires a newer core": Case(
        module("newer", "raise SystemExit", requires=["pegboard>=99"]),
        {"newer": "incompatible"},
        ("requires pegboard>=99, but", "install a release of acme-newer that fits"),
    ),
    "requires nothing": Case(module("free", TOOL.format(name="free")), {"free": "active"}, (), ("free_tool",)),
    "prints at import": odd("loud", "print('noise')", "loud (acme-loud 1.0): printed to standard output"),
    "changes sys.path": odd("pathy", "import sys; sys.path.insert(0, '/nowhere')", "changed sys.path (restored)"),
    "warns at import": odd("warner", "import warnings; warnings.warn('old', stacklevel=1)"),
    "5,000 tools": Case(
        module(
            "many",
            "def made(n):\n    def f(): ...\n    f.__name__ = f'many_{n}'\n    return f"
            f"{HOOK}return map(made, range(5000))",
        ),
        {"many": "active"},
        (),
        ("many_0", "many_4999"),
    ),
    "takes 5 s to import": odd("slow", "import time; time.sleep(5)", "slow (acme-slow 1.0): took ", slow=True),
}
