"""The meta tool `reset_equipped_tools`: the model switches the groups that it manages, in its own session."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pegboard import ConflictError, PegboardError, Session, Status, Toolkit, ToolResult
from pegboard.hookspecs import hookimpl
from tests.support.board_tools import board, named, names

META = "reset_equipped_tools"


@pytest.fixture
def toolkit() -> Toolkit:
    toolkit = Toolkit(plugins=())
    toolkit.create_group("search", "Look things up", instructions="Name your sources")
    toolkit.create_group("files", "Read and write", active=False, instructions="Ask before you write")
    toolkit.create_group("admin", "Anything", active=False, managed_by="program", instructions="A secret")
    toolkit.create_group("core", active=True, managed_by="program")
    for group, tool in [("search", "find"), ("files", "save"), ("admin", "wipe"), ("core", "say")]:
        toolkit.register(named(tool), group=group)
    toolkit.register_meta_tool()
    return toolkit


def items(board: Toolkit | Session) -> Any:
    return board[META].parameters["properties"]["to_activate"]


def reset(board: Toolkit | Session, *groups: Any) -> ToolResult:
    return board.call_sync(META, {"to_activate": list(groups)})


class TestSchema:
    def test_offers_the_groups_that_the_model_manages(self, toolkit: Toolkit) -> None:
        (schema,) = [each for each in toolkit.schemas() if each.name == META]
        assert schema.parameters == {
            "type": "object",
            "properties": {
                "to_activate": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["search", "files"]},
                    "description": "The names of all groups that shall be active",
                }
            },
            "required": ["to_activate"],
            "additionalProperties": False,
        }

    def test_follows_the_groups_at_once(self, toolkit: Toolkit) -> None:
        session = toolkit.session()
        for each in (toolkit, session):
            assert items(each)["items"]["enum"] == ["search", "files"]
        toolkit.create_group("mail", "Write to people")
        toolkit.remove_groups("search")
        for each in (toolkit, session):
            assert items(each)["items"]["enum"] == ["files", "mail"]
            assert "- mail: Write to people" in each[META].description
            assert "search" not in each[META].description
            (schema,) = [schema for schema in each.schemas() if schema.name == META]
            assert schema.parameters["properties"]["to_activate"] == items(each)
            assert schema.description == each[META].description

    def test_describes_groups_with_their_instructions(self, toolkit: Toolkit) -> None:
        description = toolkit[META].description
        assert description.split("\n\n", 1)[1].splitlines() == [
            "Groups:",
            "- search: Look things up",
            "  Instructions: Name your sources",
            "- files: Read and write",
            "  Instructions: Ask before you write",
        ]

    def test_is_the_same_whatever_is_active(self, toolkit: Toolkit) -> None:
        session = toolkit.session(groups=["files"])
        before = session[META].schema()
        assert before == toolkit[META].schema()
        assert "files" in reset(session, "search", "files").text
        assert session[META].schema() == before

    def test_without_groups(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("admin", managed_by="program")
        toolkit.register_meta_tool()
        assert items(toolkit)["maxItems"] == 0
        assert "enum" not in items(toolkit)["items"]
        assert toolkit[META].description.endswith("There are no groups yet.")
        assert reset(toolkit).text == "No group is active."
        assert reset(toolkit, "admin").is_error
        toolkit.create_group("a")
        assert items(toolkit)["items"]["enum"] == ["a"]

    @pytest.mark.parametrize("dialect", ["2020-12", "openapi-3.0"])
    @pytest.mark.parametrize("titles", ["none", "qualified"])
    def test_every_rendering(self, toolkit: Toolkit, dialect: Any, titles: Any) -> None:
        schema = toolkit[META].json_schema(dialect=dialect, titles=titles)
        Draft202012Validator.check_schema(schema)
        assert schema["properties"]["to_activate"]["items"]["enum"] == ["search", "files"]
        assert toolkit[META].json_schema(of="returns") == {"type": "string"}

    def test_readers_do_not_write_into_each_others(self, toolkit: Toolkit) -> None:
        items(toolkit)["items"]["enum"].append("forged")
        assert items(toolkit)["items"]["enum"] == ["search", "files"]


class TestCalls:
    def test_the_list_is_the_final_set(self, toolkit: Toolkit) -> None:
        assert reset(toolkit, "files").status is Status.SUCCESS
        assert list(toolkit.active_groups) == ["files", "core"]
        assert names(toolkit) == ["save", "say", META]
        reset(toolkit)
        assert list(toolkit.active_groups) == ["core"]
        reset(toolkit, "files", "search", "files")
        assert list(toolkit.active_groups) == ["search", "files", "core"]

    def test_the_result_tells_what_is_active_and_how_to_use_what_is_new(self, toolkit: Toolkit) -> None:
        assert reset(toolkit, "search", "files").text.splitlines() == [
            "Active groups: search, files.",
            "Instructions for files: Ask before you write",
        ]
        assert reset(toolkit, "search").text == "Active groups: search."
        assert reset(toolkit).text == "No group is active."

    @pytest.mark.parametrize("wrong", ["flies", "admin", "core", "", "Search"])
    def test_unknown_groups_change_nothing(self, toolkit: Toolkit, wrong: str) -> None:
        result = reset(toolkit, "files", wrong)
        assert result.status is Status.ERROR
        assert f"there is no tool group {wrong!r}" in result.text
        assert "Nothing was changed" in result.text
        assert "A secret" not in result.text
        assert toolkit.active_groups == ("search", "core")

    def test_every_unknown_group_is_named(self, toolkit: Toolkit) -> None:
        text = reset(toolkit, "flies", "serch").text
        assert "Did you mean 'files'?" in text
        assert "Did you mean 'search'?" in text

    def test_what_is_no_list_is_invalid(self, toolkit: Toolkit) -> None:
        assert toolkit.call_sync(META, {}).status is Status.INVALID
        assert toolkit.call_sync(META, {"to_activate": [3.5]}).status is Status.INVALID
        assert toolkit.call_sync(META, {"to_activate": "files, core"}).status is Status.INVALID
        assert toolkit.active_groups == ("search", "core")

    def test_changes_the_calling_session_only(self, toolkit: Toolkit) -> None:
        ann, bob = toolkit.session(), toolkit.session()
        reset(ann, "files")
        assert names(ann) == ["save", "say", META]
        assert names(bob) == names(toolkit) == ["find", "say", META]
        assert ann.call_sync("save").text == "save"
        assert bob.call_sync("save").status is Status.INACTIVE

    def test_a_session_of_fixed_groups_keeps_those_of_the_program(self, toolkit: Toolkit) -> None:
        guest = toolkit.session(groups=["search"])
        reset(guest, "files")
        assert guest.active_groups == ("files",)

    async def _from_a_loop(self, toolkit: Toolkit) -> None:
        session = toolkit.session()
        (first, second) = await session.call_many([(META, {"to_activate": ["files"]}), ("say", {})])
        assert (first.status, second.text) == (Status.SUCCESS, "say")
        assert session.active_groups == ("files", "core")
        assert toolkit.active_groups == ("search", "core")

    def test_from_a_loop(self, toolkit: Toolkit) -> None:
        import asyncio

        with toolkit:
            asyncio.run(self._from_a_loop(toolkit))


class TestInactive:
    def text(self, board: Toolkit | Session, name: str) -> str:
        result = board.call_sync(name)
        assert result.status is Status.INACTIVE
        return result.text

    def test_the_model_is_told_to_call_it(self, toolkit: Toolkit) -> None:
        text = (
            "Error: save is not available now; to activate it, call reset_equipped_tools, with 'files' in to_activate"
        )
        assert self.text(toolkit, "save") == text

    def test_not_where_the_program_manages_the_group(self, toolkit: Toolkit) -> None:
        text = self.text(toolkit, "wipe")
        assert text == "Error: wipe is not available now; go on without it"

    def test_a_group_that_it_cannot_switch_is_named_to_the_program_alone(self, toolkit: Toolkit) -> None:
        error = toolkit.call_sync("wipe").error
        assert error is not None
        assert "admin" not in error.message
        assert error.details["reason"] == "its group is not active: 'admin'"
        assert error.details["remedy"] == "update_groups(['admin'], True)"

    def test_not_where_there_is_none(self) -> None:
        toolkit = board(a_off="x")
        assert META not in self.text(toolkit, "x")
        toolkit.register(named(META))
        assert f"call {META}" not in self.text(toolkit, "x"), "a namesake of the program's"

    def test_not_where_it_may_not_be_called(self, toolkit: Toolkit) -> None:
        session = toolkit.session()
        session.set_permission(META, "never")
        assert META not in self.text(session, "save")
        assert META not in self.text(toolkit.view(exclude=META), "save")

    def test_names_the_group_that_can_be_switched(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("a", active=False, managed_by="program")
        toolkit.create_group("b", active=False)
        toolkit.register(named("x"), group=["a", "b"])
        toolkit.register_meta_tool()
        text = self.text(toolkit, "x")
        assert "'a'" not in text
        assert "with 'b' in to_activate" in text
        error = toolkit.call_sync("x").error
        assert error is not None
        assert error.details["reason"] == "its groups are not active: 'a', 'b'"
        reset(toolkit, "b")
        assert toolkit.call_sync("x").text == "x"


class TestRegistering:
    def test_twice_changes_nothing(self, toolkit: Toolkit) -> None:
        generation = toolkit._core.registry.generation
        again = toolkit.register_meta_tool()
        assert again.name == META
        assert again.description == toolkit[META].description
        assert toolkit._core.registry.generation == generation

    def test_a_name_that_the_program_has_taken(self) -> None:
        toolkit = board(META)
        with pytest.raises(ConflictError, match=r"'reset_equipped_tools' is already registered"):
            toolkit.register_meta_tool()
        assert toolkit.call_sync(META).text == META

    def test_a_name_that_a_pack_has(self) -> None:
        class Pack:
            @hookimpl
            def provide_tools(self) -> list[Any]:
                return [named(META)]

        toolkit = Toolkit(plugins=[Pack()])
        toolkit.register_meta_tool()
        assert toolkit[META].function is not None
        assert toolkit.call_sync(META, {"to_activate": []}).text == "No group is active."

    def test_is_a_tool_like_any_other(self, toolkit: Toolkit) -> None:
        assert META in toolkit
        toolkit.set_permission(META, "never")
        assert reset(toolkit, "files").status is Status.DENIED
        toolkit.unregister(META)
        assert META not in toolkit
        toolkit.register_meta_tool()
        assert items(toolkit)["items"]["enum"] == ["search", "files"]

    def test_may_be_kept_from_deletion(self) -> None:
        toolkit = Toolkit(plugins=(), allow_tool_deletion=False)
        toolkit.register_meta_tool()
        toolkit.register_meta_tool()
        with pytest.raises(PegboardError, match="allow_tool_deletion"):
            toolkit.unregister(META)

    def test_survives_that_tools_are_read_anew(self, toolkit: Toolkit) -> None:
        from pegboard import Converter

        toolkit.register_converter(Converter(complex, str))
        assert items(toolkit)["items"]["enum"] == ["search", "files"]
        assert reset(toolkit.session(), "files").text.startswith("Active groups: files.")
