"""Registering: all or none, names and their clashes, packs and the program, groups, lazy tools, sources."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard import (
    ConflictError,
    Injected,
    PegboardError,
    RegistrationError,
    Tool,
    Toolkit,
    TypeHandler,
    TypePlan,
    UnknownNameError,
    tool,
    toolset,
)
from pegboard._board.board import Board, Registry
from pegboard.hookspecs import hookimpl
from pegboard_testing import fake_distribution
from tests.support.interpreters import printed_under_two_hash_seeds
from tests.support.plugin_site import Site


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def double(a: int) -> int:
    """Double."""
    return 2 * a


def unfit(thing: complex) -> None: ...


class Pair:
    @tool
    def first(self) -> str:
        return "1"

    @tool
    def second(self) -> str:
        return "2"


def names(toolkit: Toolkit) -> list[str]:
    return [each.name for each in toolkit]


def state(toolkit: Toolkit) -> Any:
    """Everything that a failed registration must leave as it was."""
    tools = [(each.name, each.description, each.groups, each.parameters) for each in toolkit]
    return tools, [each.name for each in toolkit.toolsets], toolkit.problems


class TestAllOrNone:
    @pytest.mark.parametrize(
        "attempt",
        [
            lambda toolkit: toolkit.register(double, unfit),
            lambda toolkit: toolkit.register(double, object()),
            lambda toolkit: toolkit.register(Pair(), add),
            lambda toolkit: toolkit.register(double, double),
            lambda toolkit: toolkit.register(double, group="nowhere"),
            lambda toolkit: toolkit.register(double, presets={"double": {"x": 1}}),
            lambda toolkit: toolkit.register(double, presets={"double": {"a": "three"}}),
            lambda toolkit: toolkit.register(double, Pair(), presets={"first": {"nope": 1}}),
            lambda toolkit: toolkit.register(Pair(), enable=["thrid"]),
            lambda toolkit: toolkit.register(Pair(), rename=lambda name: "same"),
            lambda toolkit: toolkit.register(Pair(), rename={"first": "not good"}),
            lambda toolkit: toolkit.register(Pair(), rename={"frist": "one"}),
            lambda toolkit: toolkit.register(double, extended_model={"properties": {"a": {}}}),
            lambda toolkit: toolkit.register(double, on_conflict="overwrite"),
            lambda toolkit: toolkit.unregister("add", "nothing"),
            lambda toolkit: toolkit.remove_groups(["basic", "nothing"]),
            lambda toolkit: toolkit.update_groups(["basic", "nothing"], False),
            lambda toolkit: toolkit.set_active_groups(["nothing"]),
            lambda toolkit: toolkit.create_group("basic"),
        ],
    )
    def test_a_refused_change_changes_nothing(self, attempt: Callable[[Toolkit], Any]) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("basic")
        toolkit.register(add, group="basic", presets={"b": 5})
        before = state(toolkit)
        with pytest.raises(PegboardError):
            attempt(toolkit)
        assert state(toolkit) == before
        assert toolkit.active_groups == ("basic",)
        assert toolkit.call_sync("add", {"a": 1}).value == 6
        assert toolkit.call_sync("double", {"a": 1}).status == "not_found"

    def test_a_class_that_fails_to_be_made(self) -> None:
        class Broken(Pair):
            def __init__(self) -> None:
                raise OSError("no database")

        toolkit = Toolkit(plugins=())
        with pytest.raises((OSError, RegistrationError), match="no database"):
            toolkit.register(add, Broken)
        assert names(toolkit) == []


class TestConflicts:
    def setup_method(self) -> None:
        self.toolkit = Toolkit(plugins=())
        self.toolkit.register(add)

    def test_raise(self) -> None:
        with pytest.raises(ConflictError, match=r"'add' is already registered \(.*the program\).*on_conflict="):
            self.toolkit.register(add)

    def test_replace(self) -> None:
        (registered,) = self.toolkit.register(double, name="add", on_conflict="replace")
        assert registered.description == "Double."
        assert self.toolkit.call_sync("add", {"a": 4}).value == 8

    def test_skip(self) -> None:
        assert [each.name for each in self.toolkit.register(double, add, on_conflict="skip")] == ["double"]
        assert self.toolkit.register(double, name="add", on_conflict="skip", presets={"a": 1}) == []
        assert self.toolkit.call_sync("add", {"a": 4}).value == 5

    def test_rename(self) -> None:
        registered = self.toolkit.register(double, name="add", on_conflict="rename", presets={"a": 3})
        registered += self.toolkit.register(add, on_conflict="rename")
        assert [each.name for each in registered] == ["add_2", "add_3"]
        assert self.toolkit.call_sync("add_2").value == 6
        assert self.toolkit.call_sync("add", {"a": 3}).value == 4

    def test_unknown_way(self) -> None:
        with pytest.raises(RegistrationError, match="'raise', 'replace', 'skip', 'rename', got 'merge'"):
            self.toolkit.register(double, on_conflict="merge")  # type: ignore[arg-type]

    def test_within_one_registration(self) -> None:
        with pytest.raises(ConflictError, match="'double'"):
            self.toolkit.register(double, double)
        renamed = self.toolkit.register(double, double, on_conflict="rename")
        assert [each.name for each in renamed] == ["double", "double_2"]

    def test_replacing_is_deleting(self) -> None:
        toolkit = Toolkit(plugins=(), allow_tool_deletion=False)
        toolkit.create_group("g")
        toolkit.register(add, group="g")
        for attempt in (
            lambda: toolkit.register(double, name="add", on_conflict="replace"),
            lambda: toolkit.unregister("add"),
            lambda: toolkit.remove_groups(["g"]),
        ):
            with pytest.raises(PegboardError, match=r"allow_tool_deletion=False"):
                attempt()
        assert toolkit.call_sync("add", {"a": 1}).value == 2
        toolkit.register(double, on_conflict="skip")
        toolkit.update_groups("g", False)
        assert [each.name for each in toolkit.tools] == ["double"]


class TestSelection:
    def test_enable_disable_rename_prefix(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(Pair(), enable=["first"], prefix="p_")
        toolkit.register(Pair(), disable=["first"], rename={"second": "deux"})
        toolkit.register(Pair(), rename=str.upper)
        assert names(toolkit) == ["p_first", "deux", "FIRST", "SECOND"]
        assert toolkit.call_sync("p_first").text == "1"
        assert toolkit.call_sync("deux").text == "2"

    def test_misspelled(self) -> None:
        with pytest.raises(UnknownNameError, match=r"no tool 'frist'. Did you mean 'first'"):
            Toolkit(plugins=()).register(Pair(), disable=["frist"])

    def test_names_too_long_after_prefixing(self) -> None:
        with pytest.raises(RegistrationError, match="cannot be a tool name"):
            Toolkit(plugins=()).register(add, prefix="x" * 64)


class TestUnregister:
    def test_removes(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(add, double, Pair())
        toolkit.unregister("add", "second")
        assert names(toolkit) == ["double", "first"]
        assert toolkit.call_sync("add", {"a": 1}).status == "not_found"
        with pytest.raises(KeyError, match="there is no tool 'add'"):
            toolkit["add"]
        toolkit.register(add)
        assert toolkit.call_sync("add", {"a": 1}).value == 2

    def test_misspelled(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(double)
        with pytest.raises(UnknownNameError, match=r"'doubel'. Did you mean 'double'"):
            toolkit.unregister("doubel")


class TestLookup:
    def test_mapping_like(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(double, add)
        assert "add" in toolkit
        assert "sub" not in toolkit
        assert 3 not in toolkit
        assert len(toolkit) == 2
        assert [each.name for each in toolkit] == ["double", "add"]
        assert isinstance(toolkit["add"], Tool)
        with pytest.raises(UnknownNameError, match="Did you mean 'add'"):
            toolkit["ad"]

    def test_offered_and_all(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("g", active=False)
        toolkit.register(add, group="g")
        toolkit.register(double)
        assert [each.name for each in toolkit.tools] == ["double"]
        assert [each.name for each in toolkit.all_tools] == ["add", "double"]
        assert len(toolkit) == 2


class TestGroups:
    def test_unknown_group(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("admin")
        with pytest.raises(UnknownNameError, match=r"no tool group 'admn'. Did you mean 'admin'.*create_group\('admn'"):
            toolkit.register(add, group="admn")
        with pytest.raises(UnknownNameError, match=r"no tool group 'a'. There are no groups"):
            Toolkit(plugins=()).register(add, group="a")

        @tool(group="declared")
        def f() -> None: ...

        with pytest.raises(UnknownNameError, match="'declared'"):
            toolkit.register(f)

    def test_several_groups(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("a", active=False)
        toolkit.create_group("b", active=False)
        toolkit.register(add, group=["a", "b", "a"])
        assert toolkit["add"].groups == ("a", "b")
        result = toolkit.call_sync("add", {"a": 1})
        assert result.status == "inactive"
        assert result.error is not None
        assert "'a', 'b'" in result.error.details["reason"]
        toolkit.update_groups(["b"], True)
        assert toolkit.call_sync("add", {"a": 1}).value == 2

    def test_remove_groups(self) -> None:
        toolkit = Toolkit(plugins=())
        for name in ("a", "b", "c"):
            toolkit.create_group(name)
        toolkit.register(add, group="a")
        toolkit.register(double, group=("a", "b"))
        toolkit.register(Pair(), group="c")
        toolkit.remove_groups("a")
        assert names(toolkit) == ["double", "first", "second"]
        assert toolkit["double"].groups == ("b",)
        assert [group.name for group in toolkit.groups] == ["b", "c"]
        toolkit.remove_groups(["b", "c"])
        assert names(toolkit) == []
        assert toolkit.toolsets == []

    def test_a_recreated_group_starts_afresh(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("a")
        toolkit.update_groups("a", False)
        toolkit.remove_groups("a")
        toolkit.create_group("a")
        assert toolkit.active_groups == ("a",)

    def test_a_pack_may_name_a_group_that_was_not_created(self) -> None:
        @tool(group="admin")
        def wipe() -> str:
            return "wiped"

        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [wipe, add]

        toolkit = Toolkit(plugins=[Pack()])
        assert [each.name for each in toolkit.tools] == ["add"]
        assert toolkit.call_sync("wipe").status == "inactive"
        toolkit.create_group("admin")
        assert [each.name for each in toolkit.tools] == ["add", "wipe"]  # in order of reveal
        assert toolkit.call_sync("wipe").text == "wiped"


PACK = """
import pegboard

@pegboard.tool{options}
def roll(sides: int = 6) -> str:
    "Roll."
    return "{name}"

@pegboard.tool
def only_{name}() -> str:
    return "{name}"

@pegboard.hookimpl
def provide_tools(settings):
    return [roll, only_{name}]
"""


def pack(site: Site, name: str, options: str = "", **more: Any) -> None:
    site.add(name, PACK.format(name=name.replace("-", "_"), options=options), **more)


class TestPacks:
    def test_plain_and_qualified_names(self, site: Site) -> None:
        pack(site, "my-dice", version="1.2")
        toolkit = Toolkit()
        assert names(toolkit) == ["roll", "only_my_dice"]
        assert "my_dice__roll" in toolkit
        assert toolkit["my_dice__roll"].name == "roll"
        assert toolkit.call_sync("my_dice__roll").text == "my_dice"
        assert toolkit["roll"].qualified_name == "my_dice__roll"
        origin = toolkit["roll"].origin
        assert (origin.plugin, origin.distribution, origin.version) == ("my-dice", "acme-my-dice", "1.2")

    def test_clash(self, site: Site) -> None:
        pack(site, "dice", version="1.0")
        pack(site, "casino", version="2.0")
        toolkit = Toolkit()
        assert names(toolkit) == ["casino__roll", "dice__roll", "only_casino", "only_dice"]
        assert "roll" not in toolkit
        assert toolkit.call_sync("dice__roll").text == "dice"
        result = toolkit.call_sync("roll")
        assert result.status == "not_found"
        for part in ("casino__roll", "acme-casino 2.0", "dice__roll", "acme-dice 1.0"):
            assert part in result.text
            assert part in toolkit.problems[0]
        with pytest.raises(UnknownNameError, match="offered by 2 packs"):
            toolkit["roll"]

    def test_clash_is_independent_of_install_order(self, site: Site) -> None:
        seen: list[Any] = []
        for order in (("a", "b"), ("b", "a")):
            for name in order:
                pack(site, f"{name}-dice", distribution=f"zz-{len(seen)}-{name}")
            seen.append((names(Toolkit()), Toolkit().schemas()))
            for info in site.path.glob("*.dist-info"):
                import shutil

                shutil.rmtree(info)
        assert seen[0] == seen[1]

    def test_replaces(self, site: Site) -> None:
        pack(site, "dice")
        pack(site, "casino", '(replaces="dice__roll")')
        toolkit = Toolkit()
        assert names(toolkit) == ["roll", "only_casino", "only_dice"]
        assert toolkit.call_sync("roll").text == "casino"
        assert toolkit.call_sync("dice__roll").text == "dice"
        assert toolkit.problems == []

    def test_both_replace_each_other(self, site: Site) -> None:
        pack(site, "dice", '(replaces="casino__roll")')
        pack(site, "casino", '(replaces="dice__roll")')
        assert "roll" not in Toolkit()

    def test_three_sides_of_which_one_is_replaced(self, site: Site) -> None:
        pack(site, "a")
        pack(site, "b", '(replaces="a__roll")')
        pack(site, "c")
        toolkit = Toolkit()
        assert "roll" not in toolkit
        assert toolkit.call_sync("c__roll").text == "c"

    def test_the_program_wins(self, site: Site) -> None:
        pack(site, "dice")
        toolkit = Toolkit()
        (registered,) = toolkit.register(double, name="roll")
        assert registered.description == "Double."
        assert toolkit.call_sync("roll", {"a": 2}).value == 4
        assert toolkit.call_sync("dice__roll").text == "dice"
        assert names(toolkit) == ["only_dice", "roll"]
        toolkit.unregister("roll")
        assert toolkit.call_sync("roll").text == "dice"

    def test_the_program_settles_a_clash(self, site: Site) -> None:
        pack(site, "dice")
        pack(site, "casino")
        toolkit = Toolkit()
        toolkit.register(double, name="roll")
        assert toolkit.call_sync("roll", {"a": 2}).value == 4
        assert toolkit.call_sync("casino__roll").text == "casino"
        assert toolkit.problems == []

    def test_unregister_a_packs_tool(self, site: Site) -> None:
        pack(site, "dice")
        pack(site, "casino")
        toolkit = Toolkit()
        toolkit.unregister("casino__roll")
        assert names(toolkit) == ["only_casino", "roll", "only_dice"]
        assert toolkit.call_sync("roll").text == "dice"
        toolkit.unregister("dice__roll")
        assert names(toolkit) == ["only_casino", "only_dice"]

    def test_unregister_a_prefixed_tool_of_a_packs_toolset(self, site: Site) -> None:
        source = """
        import pegboard

        @pegboard.toolset(prefix="m_")
        class Math:
            @pegboard.tool(name="plus")
            def add(self, a: int) -> int: return a

            @pegboard.tool
            def minus(self, a: int) -> int: return -a

        @hookimpl
        def provide_tools(settings): return [Math]
        """
        site.add("maths", source)
        toolkit = Toolkit()
        assert names(toolkit) == ["m_plus", "m_minus"]
        assert toolkit["m_plus"].qualified_name == "maths__m_plus"
        toolkit.unregister("m_plus")
        assert names(toolkit) == ["m_minus"]
        assert [each.name for each in toolkit.toolsets[0].tools] == ["m_minus"]

    def test_presets_and_types_of_clashing_tools(self, site: Site) -> None:
        pack(site, "dice")
        pack(site, "casino")
        toolkit = Toolkit()
        toolkit.set_presets("dice__roll", {"sides": 3})
        assert toolkit["dice__roll"].parameters["properties"] == {}
        assert list(toolkit["casino__roll"].parameters["properties"]) == ["sides"]
        toolkit.register_type(
            TypeHandler(int, lambda annotation, types: TypePlan({"type": "integer", "title": "!"}, int))
        )
        assert toolkit["casino__roll"].parameters["properties"]["sides"]["title"] == "!"

    def test_one_pack_with_one_name_twice(self, site: Site) -> None:
        site.add("dice", "import pegboard\ndef f(): ...\n@hookimpl\ndef provide_tools(settings): return [f, f]")
        pack(site, "casino")
        toolkit = Toolkit()
        assert names(toolkit) == ["roll", "only_casino", "f"]
        (problem,) = toolkit.problems
        assert "'f' twice" in problem

    def test_a_packs_tool_that_cannot_be_read(self, site: Site) -> None:
        source = """
        import pegboard
        class Box:
            @pegboard.tool
            def inside(self, x: int) -> int: return x
            @pegboard.tool(name="odd")
            def outside(self, x: complex) -> int: return 1
        def f(x: complex): ...
        def g(x: int): ...
        @pegboard.tool(backend="nowhere")
        def h(): ...
        @hookimpl
        def provide_tools(settings):
            return [pegboard.Offer(f, presets={"f": {"x": 1j}}), g, h, pegboard.Offer(Box, disable=["odd"])]
        """
        site.add("broken", source)
        pack(site, "casino")
        toolkit = Toolkit()
        assert names(toolkit) == ["g", "inside", "roll", "only_casino"]
        assert (toolkit.plugin_errors, [str(each.state) for each in toolkit.plugins]) == ([], ["active", "active"])
        assert [problem.partition(": no ")[0] for problem in toolkit.problems] == [
            "broken (acme-broken 1.0): tool 'f': parameter 'x'",
            "broken (acme-broken 1.0): tool 'h': there is no backend 'nowhere'. Known backends: inline, thread.",
            "broken (acme-broken 1.0): tool 'odd': parameter 'x'",
        ]
        assert [each.name for each in toolkit.toolsets[0].tools] == ["inside"]
        for name in ("f", "broken__f"):
            result = toolkit.call_sync(name, {})
            assert result.text.endswith(
                "The plugin broken (acme-broken 1.0) does not offer it: it cannot be used here."
            )
            assert result.error is not None
            assert "no type handler maps complex" in result.error.details["remedy"]

    def test_what_makes_it_readable_registers_it(self, site: Site) -> None:
        source = """
        import pegboard
        class Box:
            @pegboard.tool
            def inside(self, x: int) -> int: return x
            @pegboard.tool
            def outside(self, x: complex, y: int) -> str: return f"{x} {y}"
        @hookimpl
        def provide_tools(settings): return [pegboard.Offer(Box, presets={"outside": {"y": pegboard.Locked(3)}})]
        """
        site.add("broken", source)
        toolkit = Toolkit()
        toolkit.set_permission("inside", "never")
        assert names(toolkit) == ["inside"]
        handler = TypeHandler(complex, lambda annotation, types: types.plan(str))
        toolkit.register_type(handler)
        assert (names(toolkit), toolkit.problems) == (["inside", "outside"], [])
        assert toolkit.call_sync("outside", {"x": "i"}).text == "i 3"
        assert toolkit.permissions["inside"] == "never"

    def test_aliases_never_hide_a_tool(self, site: Site) -> None:
        pack(site, "dice")
        toolkit = Toolkit()
        toolkit.register(double, name="dice__roll")
        assert toolkit.call_sync("dice__roll", {"a": 2}).value == 4
        assert toolkit.call_sync("roll").text == "dice"


class TestDisplacing:
    @pytest.fixture
    def file_tools(self) -> Any:
        return pytest.importorskip("pegboard_files").FileTools

    def test_an_instance_of_a_packs_own_class(self, tmp_path: Path, file_tools: Any) -> None:
        (tmp_path / "a.txt").write_text("inside", encoding="utf-8")
        toolkit = Toolkit(plugins=["files"])
        offered = set(names(toolkit))
        assert "view_text_file" in offered
        registered = toolkit.register(file_tools(tmp_path))
        assert (
            offered <= set(names(toolkit)) == {each.name for each in registered}
        )  # given a folder, they may write too
        assert len(toolkit.toolsets) == 1
        path = str(tmp_path / "a.txt")
        argument = next(iter(toolkit["view_text_file"].parameters["properties"]))
        assert "inside" in toolkit.call_sync("view_text_file", {argument: path}).text
        assert toolkit["files__view_text_file"].name == "view_text_file"

    def test_a_refused_one_displaces_nothing(self, tmp_path: Path, file_tools: Any) -> None:
        toolkit = Toolkit(plugins=["files"])
        toolkit.register(double, name="view_text_file")
        before = state(toolkit)
        with pytest.raises(ConflictError):
            toolkit.register(file_tools(tmp_path))
        assert state(toolkit) == before
        with pytest.raises(RegistrationError):
            toolkit.register(file_tools(tmp_path), presets={"view_text_file": {"nope": 1}}, prefix="own_")
        assert state(toolkit) == before

    def test_a_subclass_of_ones_own_displaces_nothing(self, tmp_path: Path, file_tools: Any) -> None:
        class Mine(file_tools):  # type: ignore[misc]  # the class is there only if its pack is
            @tool
            def count(self) -> int:
                return 1

        toolkit = Toolkit(plugins=["files"])
        toolkit.register(Mine(tmp_path), enable=["count"])
        assert "view_text_file" in toolkit
        assert toolkit.call_sync("count").value == 1


LAZY = """
import pegboard
imports = []

@hookimpl
def provide_tools(settings):
    return ["{target}"]
"""

INNER = """
import pegboard
from site_lazy import imports
imports.append(1)

@pegboard.tool(requires_approval=True, read_only=True, tags=["t"])
def wipe(path: str, force: bool = False) -> str:
    "Wipe."
    return path

@pegboard.tool
def peek(path: str) -> str:
    return path

class Box:
    @staticmethod
    def inside(x: int) -> int:
        return x + 1

made = pegboard.Tool.from_function(peek, name="other", description="Made.")
number = 3
"""


def lazy(site: Site, target: str) -> Toolkit:
    site.add("lazy", LAZY.format(target=target), modules={})
    fake_distribution(
        site.path,
        "acme-lazy",
        entry_points={"lazy": "site_lazy"},
        modules={
            "site_lazy": "from pegboard import hookimpl\n" + LAZY.format(target=target),
            "site_lazy_inner": INNER,
        },
    )
    return Toolkit()


class TestLazy:
    def test_imported_on_first_use(self, site: Site) -> None:
        toolkit = lazy(site, "site_lazy_inner:peek")
        assert names(toolkit) == ["peek"]
        assert len(toolkit) == 1
        assert "lazy__peek" in toolkit
        assert "site_lazy_inner" not in sys.modules
        assert toolkit.call_sync("peek", {"path": "x"}).text == "x"
        assert toolkit["peek"].parameters["required"] == ["path"]
        assert sys.modules["site_lazy"].imports == [1]

    def test_schemas_import(self, site: Site) -> None:
        toolkit = lazy(site, "site_lazy_inner:peek")
        assert [each.name for each in toolkit.schemas()] == ["peek"]

    def test_what_the_function_declares_holds(self, site: Site) -> None:
        toolkit = lazy(site, "site_lazy_inner:wipe")
        assert toolkit.call_sync("wipe", {"path": "x"}).status == "denied"
        assert toolkit["wipe"].permission == "prompt"
        assert toolkit["wipe"].hints.read_only is True
        assert toolkit["wipe"].tags == ("t",)
        toolkit.set_presets("wipe", {"force": True})
        assert list(toolkit["wipe"].parameters["properties"]) == ["path"]

    def test_attributes_and_tools(self, site: Site) -> None:
        assert lazy(site, "site_lazy_inner:Box.inside").call_sync("inside", {"x": 1}).value == 2
        site_two = Toolkit(plugins=())
        site_two.register("site_lazy_inner:made", name="renamed")
        assert site_two["renamed"].description == "Made."
        assert site_two.call_sync("renamed", {"path": "p"}).text == "p"

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("site_lazy_inner:pek", "pek"),
            ("site_lazy_nowhere:peek", "site_lazy_nowhere"),
            ("site_lazy_inner:number", "names one function"),
            ("site_lazy_inner:Box", "names one function"),
        ],
    )
    def test_broken(self, site: Site, target: str, reason: str) -> None:
        pack(site, "casino")
        toolkit = lazy(site, target)
        (name,) = set(names(toolkit)) - {"roll", "only_casino"}
        result = toolkit.call_sync(name, {})
        assert result.status in ("error", "not_found")
        assert [each.name for each in toolkit.schemas()] == ["roll", "only_casino"]
        assert toolkit.call_sync("roll").text == "casino"
        assert toolkit.plugin_errors == []
        assert reason in toolkit.problems[0]
        assert set(toolkit.permissions) == set(names(toolkit))
        assert toolkit.call_sync(name, {}).status == "not_found"
        assert "lazy" in toolkit.call_sync(name, {}).text

    @pytest.mark.parametrize("text", ["peek", "a b:c", "site_lazy_inner", ":peek", ""])
    def test_no_import_string(self, text: str) -> None:
        with pytest.raises(RegistrationError, match=r'is no import string; write "package.module:function"'):
            Toolkit(plugins=()).register(text)

    def test_registered_by_the_program(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("g")
        toolkit.register(f"{__name__}:add", name="plus", description="Plus.", group="g")
        assert (toolkit["plus"].description, toolkit["plus"].groups) == ("Plus.", ("g",))
        assert toolkit.call_sync("plus", {"a": 1}).value == 2
        toolkit.register(f"{__name__}:nothing")
        assert toolkit.call_sync("nothing").status == "error"

    def test_is_registered_on_another_board(self) -> None:
        first = Toolkit(plugins=())
        first.register(f"{__name__}:add")
        second = Toolkit(plugins=())
        second.register(first["add"], name="plus")
        assert second.call_sync("plus", {"a": 1}).value == 2

    def test_read_anew_after_a_type_changed(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(f"{__name__}:double")
        assert toolkit["double"].parameters["properties"]["a"] == {"type": "integer"}
        toolkit.register_type(TypeHandler(int, lambda annotation, types: TypePlan({"type": "string"}, lambda text: 21)))
        assert toolkit["double"].parameters["properties"]["a"] == {"type": "string"}
        assert toolkit.call_sync("double", {"a": "x"}).value == 42


class Remote:
    """A tool source."""

    def tools(self) -> Iterator[Any]:
        yield add
        yield SimpleNamespace(name="ping", description="", parameters={"type": "object"}, call=lambda call: "pong")
        yield Tool.from_function(double, name="twice")


class Foreign:
    functions = (add, double)


class Knows:
    @hookimpl
    def tools_from(self, source: Any) -> Any:
        if isinstance(source, Foreign):
            return source.functions
        if isinstance(source, bytes):
            raise RegistrationError("this one is empty")
        return None


class TestSources:
    def test_tool_source(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("remote")
        toolkit.register(
            Remote(), enable=["add", "ping"], group="remote", presets={"add": {"b": 10}}, rename={"ping": "pong"}
        )
        assert names(toolkit) == ["add", "pong"]
        assert toolkit["pong"].groups == ("remote",)
        assert toolkit.call_sync("add", {"a": 1}).value == 11
        assert toolkit.call_sync("pong").text == "pong"

    def test_tools_from(self) -> None:
        toolkit = Toolkit(plugins=[Knows()])
        toolkit.register(Foreign(), prefix="f_")
        assert names(toolkit) == ["f_add", "f_double"]
        with pytest.raises(RegistrationError, match=r"has no tools.*the pack that knows it"):
            toolkit.register(Path())
        with pytest.raises(RegistrationError, match="this one is empty"):
            toolkit.register(b"")
        with pytest.raises(RegistrationError, match="has no tools"):
            Toolkit(plugins=()).register(Foreign())


class TestRereading:
    def test_types_of_the_program_reach_registered_tools(self) -> None:
        class Money:
            def __init__(self, text: str) -> None:
                self.text = text

        def pay(amount: Injected[Money] | None, note: str) -> str:
            return note

        toolkit = Toolkit(plugins=())
        toolkit.register(pay, Pair())
        before = names(toolkit)
        with pytest.raises(RegistrationError):
            toolkit.register_type(TypeHandler(str, lambda annotation, types: None))  # type: ignore[arg-type, return-value]
        toolkit.register_type(TypeHandler(Money, lambda annotation, types: TypePlan({"type": "string"}, Money)))

        def charge(amount: Money) -> str:
            return amount.text

        toolkit.register(charge)
        assert names(toolkit) == [*before, "charge"]
        assert toolkit.call_sync("charge", {"amount": "3 EUR"}).text == "3 EUR"
        assert [each.name for each in toolkit.toolsets[0].tools] == ["first", "second"]


class TestOrder:
    def test_packs_by_name_then_the_program_in_order(self, site: Site) -> None:
        pack(site, "zoo")
        pack(site, "ant", '(name="aroll")')
        toolkit = Toolkit()
        toolkit.register(double)
        toolkit.register(add)
        assert names(toolkit) == ["aroll", "only_ant", "roll", "only_zoo", "double", "add"]
        assert [each.name for each in toolkit.schemas()] == names(toolkit)

    def test_same_in_every_process(self, tmp_path: Path) -> None:
        for name in ("zoo", "ant", "Bee"):
            source = PACK.format(name=name, options="")
            fake_distribution(
                tmp_path, f"acme-{name}", entry_points={name: f"board_{name}"}, modules={f"board_{name}": source}
            )
        script = (
            "import json; from pegboard import Toolkit; toolkit = Toolkit(block=['dataclasses', 'files']);"
            "print(json.dumps([[each.name, each.parameters, each.schema_hash] for each in toolkit]), toolkit.problems)"
        )
        shown = printed_under_two_hash_seeds(script, str(tmp_path))
        board, _ = json.JSONDecoder().raw_decode(shown)
        ours = [name for name, *_ in board if "Bee" in name or "ant" in name or "zoo" in name or "bee" in name]
        assert ours == ["ant__roll", "bee__roll", "zoo__roll", "only_ant", "only_Bee", "only_zoo"]


class TestMany:
    def test_a_thousand_registrations(self, monkeypatch: pytest.MonkeyPatch) -> None:
        builds: list[int] = []
        build = Registry._build

        def counted(registry: Registry) -> Board:
            builds.append(1)
            return build(registry)

        monkeypatch.setattr(Registry, "_build", counted)
        toolkit = Toolkit(plugins=())
        for index in range(1000):
            toolkit.register(add, name=f"add_{index}", presets={"b": index} if index % 2 else None)
        assert len(builds) < 10  # a board for each registration would make them quadratic
        assert names(toolkit) == [f"add_{index}" for index in range(1000)]
        assert toolkit.call_sync("add_999", {"a": 1}).value == 1000
        assert toolkit.call_sync("add_998", {"a": 1}).value == 2

    def test_one_class_of_many(self) -> None:
        members = {f"tool_{index}": tool(lambda self, a=1: a) for index in range(300)}
        Big = toolset(prefix="big_")(type("Big", (), members))
        toolkit = Toolkit(plugins=())
        toolkit.register(Big())
        assert len(toolkit.schemas()) == 300
        assert toolkit.call_sync("big_tool_299", {"a": 5}).value == 5
