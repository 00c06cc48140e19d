"""Injection: what the program provides, where it comes from, and what the model cannot do about it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar, runtime_checkable

import pytest

from pegboard import (
    Agent,
    CancelToken,
    Emitter,
    Inject,
    Injected,
    Injector,
    PegboardError,
    RegistrationError,
    Session,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
    injectable,
)
from pegboard.hookspecs import hookimpl

T = TypeVar("T")


class Db:
    def __init__(self, name: str = "db") -> None:
        self.name = name


class FastDb(Db): ...


class FasterDb(FastDb): ...


@injectable
class User:
    def __init__(self, name: str) -> None:
        self.name = name


class Admin(User): ...


@runtime_checkable
class Store(Protocol):
    def get(self) -> str: ...


class Hidden(Protocol):
    def get(self) -> str: ...


class Memory:
    def get(self) -> str:
        return "memory"


class Repository(Generic[T]):
    name = "repository"


def ask(question: str, db: Injected[Db]) -> str:
    return f"{question} {db.name}"


def board(*sources: Any, **options: Any) -> Toolkit:
    toolkit = Toolkit(**{"plugins": ()} | options)
    toolkit.register(*sources)
    return toolkit


def told(result: ToolResult) -> dict[str, Any]:
    """The details for the program of a call that missed a context object; the model's text reveals nothing."""
    assert result.status == "invalid"
    assert result.error is not None
    assert (result.error.kind, result.text) == (
        "missing_context",
        "Error: this tool cannot run here: a value that the program must provide is missing",
    )
    assert result.to_dict()["error"].keys() == {"kind", "message"}
    return dict(result.error.details)


class TestLevels:
    def test_each_level(self) -> None:
        toolkit = board(ask, context=Db("toolkit"))
        session = toolkit.session(context=Db("session"))
        inner = session.session(context=Db("inner"))
        asked: Callable[..., ToolResult]
        for asked, expected in (
            (toolkit.call_sync, "q toolkit"),
            (session.call_sync, "q session"),
            (inner.call_sync, "q inner"),
            (partial(inner.call_sync, context=Db("call")), "q call"),
            (partial(toolkit.call_sync, context=[Db("call")]), "q call"),
        ):
            assert asked("ask", {"question": "q"}).text == expected
            assert asked("ask", '{"question": "q"}').text == expected

    def test_async_and_deferred(self) -> None:
        toolkit = board(ask)
        result = asyncio.run(toolkit.call("ask", {"question": "q"}, context=Db("a")))
        assert result.text == "q a"
        assert toolkit.prepare("ask", {"question": "q"}).execute_sync(context=Db("b")).text == "q b"
        results = toolkit.call_many_sync([("ask", {"question": "q"})] * 2, context=Db("c"))
        assert [each.text for each in results] == ["q c", "q c"]

    def test_an_inner_level_hides_only_what_it_matches(self) -> None:
        def both(db: Injected[Db], user: User) -> str:
            return f"{db.name} {user.name}"

        toolkit = board(both, context=[Db("outer"), User("outer")])
        assert toolkit.session(context=User("inner")).call_sync("both").text == "outer inner"

    def test_exact_before_subclass(self) -> None:
        toolkit = board(ask)
        result = toolkit.call_sync("ask", {"question": "q"}, context=[FastDb("fast"), Db("exact"), FasterDb("faster")])
        assert result.text == "q exact"
        assert toolkit.call_sync("ask", {"question": "q"}, context=FasterDb("sub")).text == "q sub"

    def test_inner_subclass_before_outer_exact(self) -> None:
        toolkit = board(ask, context=Db("outer"))
        assert toolkit.call_sync("ask", {"question": "q"}, context=FastDb("inner")).text == "q inner"

    def test_a_base_class_is_no_match(self) -> None:
        def fast(db: Injected[FastDb]) -> str:
            return db.name

        assert told(board(fast).call_sync("fast", context=Db()))["type"] == "FastDb"

    def test_the_agent_stands_between_call_and_session(self) -> None:
        def who(db: Injected[Db]) -> str:
            return db.name

        toolkit = board(who)
        session = toolkit.session(context=Db("session"))
        assert session.call_sync("who", agent=FastDb("agent")).text == "agent"
        assert session.call_sync("who", agent=FastDb("agent"), context=Db("call")).text == "call"

    @pytest.mark.parametrize(
        "make",
        [
            lambda db: db,
            lambda db: [db],
            lambda db: (db, User("u")),
            lambda db: {db},
            lambda db: frozenset({db}),
            lambda db: (each for each in [db]),
            lambda db: {"any name": db}.values(),
            lambda db: {"any name": db},
            lambda db: {Db: db},
        ],
        ids=["db", "list", "tuple", "set", "frozenset", "generator", "values", "names", "classes"],
    )
    def test_forms_of_context(self, make: Callable[[Db], Any]) -> None:
        assert board(ask).call_sync("ask", {"question": "q"}, context=make(Db("x"))).text == "q x"
        assert board(ask, context=make(Db("x"))).call_sync("ask", {"question": "q"}).text == "q x"

    def test_the_same_object_twice_is_one(self) -> None:
        db = Db("one")
        assert board(ask).call_sync("ask", {"question": "q"}, context=[db, db]).text == "q one"

    def test_mapping_of_the_wrong_class(self) -> None:
        with pytest.raises(PegboardError, match="fits no Db"):
            Toolkit(plugins=(), context={User: Db()})
        result = board(ask).call_sync("ask", {"question": "q"}, context={3: Db()})
        assert result.status == "error"


class TestAmbiguity:
    def test_two_of_one_class(self) -> None:
        details = told(board(ask).call_sync("ask", {"question": "q"}, context=[Db("a"), Db("b")]))
        assert (details["level"], details["candidates"]) == ("call", ["Db", "Db"])
        assert "Inject(" in details["remedy"]

    def test_two_subclasses(self) -> None:
        details = told(board(ask, context=[FastDb(), FasterDb()]).call_sync("ask", {"question": "q"}))
        assert (details["level"], details["candidates"]) == ("toolkit", ["FastDb", "FasterDb"])

    def test_an_inner_level_decides(self) -> None:
        toolkit = board(ask, context=[Db("a"), Db("b")])
        assert toolkit.call_sync("ask", {"question": "q"}, context=Db("c")).text == "q c"


class TestNames:
    @staticmethod
    def sync(source: Annotated[Db, Inject("primary")], target: Annotated[Db, Inject("replica")]) -> str:
        return f"{source.name} {target.name}"

    def test_by_name(self) -> None:
        dbs = {"primary": Db("a"), "replica": FastDb("b")}
        assert board(self.sync).call_sync("sync", context=dbs).text == "a b"

    def test_levels_complete_each_other(self) -> None:
        toolkit = board(self.sync, context={"primary": Db("a"), "replica": Db("b")})
        assert toolkit.call_sync("sync", context={"replica": Db("c")}).text == "a c"

    def test_a_name_of_another_class_is_no_match(self) -> None:
        details = told(board(self.sync).call_sync("sync", context={"primary": Db(), "replica": User("u")}))
        assert (details["type"], details["name"]) == ("Db", "replica")
        assert 'context={"replica": <Db>}' in details["remedy"]

    def test_outer_marker_names_the_alias(self) -> None:
        def one(db: Annotated[Injected[Db], Inject("replica")]) -> str:
            return db.name

        assert board(one).call_sync("one", context={"primary": Db("a"), "replica": Db("b")}).text == "b"

    def test_marker_class_without_a_name(self) -> None:
        def one(db: Annotated[Db, Inject]) -> str:
            return db.name

        assert board(one).call_sync("one", context=Db("a")).text == "a"


class TestAbsence:
    def test_details_are_for_the_program(self) -> None:
        toolkit = board(ask)
        session = toolkit.session(context=User("u"))
        details = told(session.call_sync("ask", {"question": "q"}))
        assert details["type"] == "Db"
        assert details["searched"] == ["session", "toolkit"]
        assert "context=<Db>" in details["remedy"]

    def test_every_way_to_be_absent(self) -> None:
        def f(
            a: Injected[Db] | None,
            b: Injected[Db | None],
            c: Injected[Db] = None,  # type: ignore[assignment]
            d: User | None = None,
            e: Annotated[Db, Inject("x")] | None = None,
        ) -> str:
            return repr([a, b, c, d, e])

        assert board(f).call_sync("f").text == "[None, None, None, None, None]"

    def test_default_object(self) -> None:
        fallback = Db("fallback")

        def f(db: Injected[Db] = fallback) -> str:
            return db.name

        assert board(f).call_sync("f").text == "fallback"
        assert board(f).call_sync("f", context=Db("given")).text == "given"

    def test_present_when_optional(self) -> None:
        def f(db: Injected[Db] | None, user: User | None = None) -> str:
            return f"{db and db.name} {user and user.name}"

        assert board(f).call_sync("f", context=[Db("d"), Admin("u")]).text == "d u"

    def test_union_of_context_classes(self) -> None:
        def f(source: Injected[Db | Memory]) -> str:
            return type(source).__name__

        assert board(f).call_sync("f", context=Memory()).text == "Memory"
        assert board(f).call_sync("f", context=[Memory(), Db()]).text == "Db"


class TestInjectable:
    def test_class_decorator(self) -> None:
        def f(user: User, greeting: str = "hi") -> str:
            return f"{greeting} {user.name}"

        toolkit = board(f)
        assert list(toolkit["f"].parameters["properties"]) == ["greeting"]
        assert toolkit.call_sync("f", context=Admin("root")).text == "hi root"

    def test_subclasses_are_context_only_too(self) -> None:
        def f(user: Admin) -> str:
            return user.name

        assert board(f).call_sync("f", context=Admin("root")).text == "root"

    def test_of_a_toolkit(self) -> None:
        def f(memory: Memory) -> str:
            return memory.get()

        toolkit = Toolkit(plugins=())
        with pytest.raises(RegistrationError, match="Memory"):
            toolkit.register(f)
        assert toolkit.injectable(Memory) is Memory
        toolkit.register(f)
        assert toolkit.call_sync("f", context=Memory()).text == "memory"
        with pytest.raises(RegistrationError, match="Memory"):
            Toolkit(plugins=()).register(f)

    def test_only_classes(self) -> None:
        with pytest.raises(RegistrationError, match="takes a class"):
            Toolkit(plugins=()).injectable("Memory")  # type: ignore[arg-type]

    def test_a_record_may_be_context_or_argument(self) -> None:
        pytest.importorskip("pegboard_dataclasses")

        @dataclass
        class Point:
            x: int

        def f(sent: Point, given: Injected[Point]) -> int:
            return sent.x + given.x

        toolkit = Toolkit()
        toolkit.register(f)
        assert toolkit.call_sync("f", {"sent": {"x": 1}}, context=Point(10)).value == 11
        assert list(toolkit["f"].parameters["properties"]) == ["sent"]


class Shade(Enum):
    DARK = "dark"


@dataclass
class Account:
    owner: str


class Gate: ...


class TestNotMarked:
    """A record or a plain class could be a model's argument too: where the context holds one, it is asked which."""

    @staticmethod
    def asking(annotation: Any) -> Callable[..., str]:
        def whose(ctx: Any, number: int = 0) -> str:
            return str(number)

        whose.__annotations__["ctx"] = annotation
        return whose

    @pytest.mark.parametrize("annotation", [Account, Account | None, Annotated[Account, "Whose"], Gate])
    @pytest.mark.parametrize("plugins", [(), ["dataclasses"]])
    @pytest.mark.parametrize(
        "context",
        [[Account("a"), Gate()], {"account": Account("a"), "gate": Gate()}, {Account: Account("a"), Gate: Gate()}],
    )
    def test_is_refused_where_the_toolkit_holds_one(self, annotation: Any, plugins: Any, context: Any) -> None:
        if plugins:
            pytest.importorskip("pegboard_dataclasses")
        with Toolkit(plugins=plugins, context=context) as toolkit:
            with pytest.raises(RegistrationError) as refused:
                toolkit.register(self.asking(annotation))
            name = "Gate" if annotation is Gate else "Account"
            assert (
                f"parameter 'ctx': the program's context holds an object of class {name}: annotate Injected[{name}]"
                in str(refused.value)
            )
            marked: Any = Injected
            toolkit.register(self.asking(marked[annotation]))
            assert "ctx" not in toolkit["whose"].parameters["properties"]
            assert toolkit.problems == []

    def test_a_pack_s_tool_is_a_problem(self) -> None:
        pytest.importorskip("pegboard_dataclasses")

        class Pack:
            @hookimpl
            def provide_tools(self) -> Any:
                return [TestNotMarked.asking(Account)]

        with Toolkit(plugins=[Pack(), "dataclasses"], context=Account("a")) as toolkit:
            assert "whose" not in toolkit
            assert "annotate Injected[Account]" in " ".join(toolkit.problems)

    @pytest.mark.parametrize(
        ("found", "way"),
        [
            (None, "To install it: pip install pegboard-dataclasses"),
            (True, "pegboard-dataclasses is installed, but not selected here, or it has failed"),
        ],
    )
    def test_without_the_pack_the_refusal_names_both_ways(
        self, monkeypatch: pytest.MonkeyPatch, found: Any, way: str
    ) -> None:
        monkeypatch.setattr("pegboard._base.known_packs.find_spec", lambda name: found)
        with Toolkit(plugins=()) as toolkit, pytest.raises(RegistrationError) as refused:
            toolkit.register(self.asking(Account))
        ours = "pegboard-dataclasses maps it for the model"
        remedy = f"annotate Injected[Account] if the program provides it; {ours}. {way}"
        assert str(refused.value).endswith(remedy)

    def test_a_session_that_holds_one_says_so(self) -> None:
        pytest.importorskip("pegboard_dataclasses")
        with Toolkit(plugins=["dataclasses"]) as toolkit:
            toolkit.register(self.asking(Account))
            session = toolkit.session(context=Account("a"))
            (problem,) = session.problems
            assert problem.startswith(
                "tool 'whose': parameter 'ctx': the program's context holds an object of class Account: annotate"
            )
            assert toolkit.problems == toolkit.session(context=Gate()).problems == []
            session.set_presets("whose", {"ctx": Account("b")})
            assert session.problems == []

    @pytest.mark.parametrize("given", ["acme", 1, {"a": 1}, [1], Path(), Shade.DARK, date(2026, 1, 2), b"x"])
    def test_data_by_name_may_be_a_model_s_all_the_same(self, given: Any) -> None:
        with Toolkit(plugins=(), context={"given": given}) as toolkit:
            toolkit.register(self.asking(Path if isinstance(given, Path) else type(given)))
            assert "ctx" in toolkit["whose"].parameters["properties"]
            assert toolkit.problems == []


class TestProtocols:
    @staticmethod
    def read(store: Injected[Store]) -> str:
        return store.get()

    @staticmethod
    def peek(store: Injected[Hidden]) -> str:
        return store.get()

    @staticmethod
    def named(store: Annotated[Hidden, Inject("main")]) -> str:
        return store.get()

    def test_runtime_checkable(self) -> None:
        assert board(self.read).call_sync("read", context=[Db(), Memory()]).text == "memory"

    def test_not_runtime_checkable(self) -> None:
        toolkit = board(self.peek, self.named)
        details = told(toolkit.call_sync("peek", context=Memory()))
        assert "runtime_checkable" in details["remedy"]
        assert toolkit.call_sync("peek", context={Hidden: Memory()}).text == "memory"
        assert toolkit.call_sync("named", context={"main": Memory()}).text == "memory"

    def test_generic_class(self) -> None:
        def f(repository: Injected[Repository[int]]) -> str:
            return repository.name

        assert board(f).call_sync("f", context=Repository[int]()).text == "repository"


class Bot:
    name = "bot"


class TestSpecials:
    def test_agent_by_protocol_and_by_class(self) -> None:
        def by_protocol(agent: Agent) -> str:
            return agent.name

        def by_class(agent: Injected[Bot]) -> str:
            return agent.name

        toolkit = board(by_protocol, by_class)
        for name in ("by_protocol", "by_class"):
            for _ in range(2):
                assert toolkit.call_sync(name, agent=Bot()).text == "bot"
                assert toolkit.session(agent=Bot()).call_sync(name).text == "bot"
                assert toolkit.session(agent=Bot()).session().call_sync(name).text == "bot"
                assert asyncio.run(toolkit.call(name, agent=Bot())).text == "bot"
            assert board(by_protocol, by_class, agent=Bot()).call_sync(name).text == "bot"
        assert "agent=" in told(toolkit.call_sync("by_protocol"))["remedy"]

    def test_agent_of_the_call_wins(self) -> None:
        class Other:
            name = "other"

        def f(agent: Agent) -> str:
            return agent.name

        toolkit = board(f, agent=Bot())
        assert toolkit.session(agent=Other()).call_sync("f").text == "other"
        assert toolkit.session(agent=Bot()).call_sync("f", agent=Other()).text == "other"

    def test_absent_agent(self) -> None:
        def f(agent: Agent | None) -> bool:
            return agent is None

        assert board(f).call_sync("f").value is True

    def test_emitter(self) -> None:
        def work(items: list[str], emitter: Emitter) -> str:
            for index, _ in enumerate(items, 1):
                emitter.emit(f"{index}/{len(items)}")
            return "complete"

        chunks: list[tuple[str, str, str]] = []
        toolkit = board(work)
        result = toolkit.call_sync(
            "work",
            {"items": ["a", "b"]},
            call_id="c1",
            on_chunk=lambda chunk: chunks.append((chunk.call_id, chunk.name, chunk.text)),
        )
        assert chunks == [("c1", "work", "1/2"), ("c1", "work", "2/2")]
        assert result.text == "complete"
        assert toolkit.call_sync("work", {"items": ["a"]}).text == "complete"

    def test_tool_call(self) -> None:
        def f(a: int, call: ToolCall) -> str:
            call.log("seen")
            return f"{call.id} {call.name} {json.dumps(call.arguments)}"

        for _ in range(2):
            result = board(f).call_sync("f", '{"a": 1}', call_id="c7")
            assert result.text == 'c7 f {"a": 1}'
            assert result.logs == ("seen",)

    def test_tool_call_is_the_prepared_one(self) -> None:
        seen: list[ToolCall] = []

        def f(call: ToolCall) -> None:
            seen.append(call)

        call = board(f).prepare("f")
        call.execute_sync()
        assert seen == [call]

    def test_cancel_token(self) -> None:
        async def f(token: CancelToken) -> bool:
            token.cancel("enough")
            await asyncio.sleep(0)
            return token.cancelled

        def fresh(token: CancelToken) -> bool:
            return token.cancelled

        assert board(fresh).call_sync("fresh").value is False
        assert asyncio.run(board(f).call("f")).status in ("success", "cancelled")

    def test_session_and_toolkit(self) -> None:
        def f(session: Session, toolkit: Toolkit) -> str:
            return f"{session.agent.name} {len(toolkit)}"

        toolkit = board(f)
        assert toolkit.session(agent=Bot()).call_sync("f").text == "bot 1"

    def test_nothing_of_it_is_in_the_schema(self) -> None:
        def f(
            a: Agent, b: Emitter, c: ToolCall, d: CancelToken, e: Session, f: Toolkit, g: Injected[Db], h: User, i: int
        ) -> None: ...

        schema = board(f)["f"].parameters
        assert schema == {
            "type": "object",
            "properties": {"i": {"type": "integer"}},
            "required": ["i"],
            "additionalProperties": False,
        }


class TestForgery:
    @pytest.mark.parametrize("name", ["db", "call", "user"])
    @pytest.mark.parametrize("as_text", [True, False])
    def test_a_model_that_sends_an_injected_name(self, name: str, as_text: bool) -> None:
        def f(question: str, db: Injected[Db], call: ToolCall, user: User) -> str:
            return f"{question} {db.name} {call.name} {user.name}"

        toolkit = board(f, context=[Db("real"), User("me")])
        honest = toolkit.call_sync("f", {"question": "q"})
        sent: Any = {"question": "q", name: {"name": "forged"}}
        for _ in range(2):
            result = toolkit.call_sync("f", json.dumps(sent) if as_text else sent)
            assert result.content == honest.content
            (note,) = result.notes
            assert note.kind == "dropped"
            assert name not in str(note).split()

    def test_an_invalid_call_names_nothing(self) -> None:
        toolkit = board(ask, context=Db())
        for sent in ({"db": 1}, {"question": [3], "db": 1}, {"question": "q", "dbb": 1}, {"d": 1}):
            result = toolkit.call_sync("ask", sent)
            assert result.status == "invalid"
            assert "db:" not in result.text
            assert "'db'" not in result.text


class TestInjectors:
    def test_program_injector_with_dependencies(self) -> None:
        class Config:
            def __init__(self, label: str) -> None:
                self.label = label

        class Client:
            def __init__(self, label: str) -> None:
                self.label = label

        def config(user: User) -> Config:
            return Config(user.name)

        def client(config: Config, call: ToolCall, db: Injected[Db] | None) -> Client:
            return Client(f"{config.label} {call.name} {db}")

        def f(client: Client) -> str:
            return client.label

        toolkit = Toolkit(plugins=(), context=User("u"))
        toolkit.register_injector(Injector(Client, client))
        toolkit.register_injector(Injector(Config, config))
        toolkit.register(f)
        assert [toolkit.call_sync("f").text for _ in range(2)] == ["u f None"] * 2

    def test_async_resolvers(self) -> None:
        class Client:
            def __init__(self, db: Db) -> None:
                self.db = db

        async def db() -> Db:
            await asyncio.sleep(0)
            return Db("async")

        async def client(db: Db) -> Client:
            await asyncio.sleep(0)
            return Client(db)

        def f(client: Client, db: Db) -> str:
            assert client.db is db
            return db.name

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register_injector(Injector(Client, client))
        toolkit.register(f)
        assert toolkit.call_sync("f").text == "async"
        assert asyncio.run(toolkit.call("f")).text == "async"

    def test_resolver_objects(self) -> None:
        class Opener:
            async def __call__(self) -> Db:
                return Db("object")

        class Closer:
            def __call__(self) -> Iterator[User]:
                yield User("generated")

        def f(db: Db, user: User) -> str:
            return f"{db.name} {user.name}"

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, Opener()))
        toolkit.register_injector(Injector(User, Closer()))
        toolkit.register(f)
        assert toolkit.call_sync("f").text == "object generated"

    @pytest.mark.parametrize("failing", [False, True])
    @pytest.mark.parametrize("as_async", [False, True])
    def test_generators_are_closed_after_the_call_last_first(self, failing: bool, as_async: bool) -> None:
        events: list[str] = []

        def db() -> Iterator[Db]:
            events.append("open db")
            yield Db("generated")
            events.append("close db")

        async def user(db: Db) -> AsyncIterator[User]:
            events.append(f"open user on {db.name}")
            yield User("u")
            await asyncio.sleep(0)
            events.append("close user")

        def f(user: User, db: Db) -> str:
            events.append("run")
            if failing:
                raise ValueError("broken")
            return f"{user.name} {db.name}"

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register_injector(Injector(User, user))
        toolkit.register(f)
        result = asyncio.run(toolkit.call("f")) if as_async else toolkit.call_sync("f")
        assert result.text == ("Error: broken" if failing else "u generated")
        assert events == ["open db", "open user on generated", "run", "close user", "close db"]

    def test_generators_are_closed_on_timeout_and_cancellation(self) -> None:
        from pegboard import ExecutionPolicy

        events: list[str] = []

        async def db() -> AsyncIterator[Db]:
            yield Db()
            events.append("closed")

        async def f(db: Db) -> None:
            await asyncio.sleep(30)

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register(f)
        assert toolkit.call_sync("f", policy=ExecutionPolicy(timeout=0.02)).status == "timeout"
        assert events == ["closed"]

        async def cancelled() -> None:
            task = asyncio.create_task(toolkit.call("f"))
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.01)

        asyncio.run(cancelled())
        assert events == ["closed", "closed"]

    def test_one_value_for_each_call_and_attempt(self) -> None:
        made: list[int] = []

        def db() -> Iterator[Db]:
            made.append(1)
            yield Db(str(len(made)))

        def client(db: Db) -> User:
            return User(db.name)

        def f(db: Db, user: User, again: Db) -> str:
            return f"{db.name} {user.name} {again.name}"

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register_injector(Injector(User, client))
        toolkit.register(f)
        assert [toolkit.call_sync("f").text for _ in range(2)] == ["1 1 1", "2 2 2"]

    def test_failures(self) -> None:
        events: list[str] = []

        def db() -> Iterator[Db]:
            yield Db()
            events.append("closed")
            raise OSError("cannot close")

        def user(db: Db) -> Iterator[User]:
            if db.name:
                raise OSError("no connection")
            yield User("never")

        def one(db: Db) -> str:
            return "fine"

        def two(user: User) -> str:
            return "never"

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register_injector(Injector(User, user))
        toolkit.register(one, two)
        assert toolkit.call_sync("one").text == "Error: cannot close"
        assert toolkit.call_sync("two").text == "Error: no connection"
        assert events == ["closed", "closed"]

    def test_resolver_that_yields_nothing(self) -> None:
        def db() -> Iterator[Db]:
            yield from ()

        async def user() -> AsyncIterator[User]:
            users: list[User] = []
            for each in users:
                yield each

        def f(db: Db | None, user: User | None) -> str:
            return f"{db} {user}"

        def g(db: Db) -> None: ...

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register_injector(Injector(User, user))
        toolkit.register(f, g)
        assert toolkit.call_sync("f").text == "None None"
        assert "injector gave nothing" in told(toolkit.call_sync("g"))["remedy"]

    def test_missing_context_of_a_resolver(self) -> None:
        def db(user: User) -> Db:
            return Db(user.name)

        def g(db: Db) -> str:
            return db.name

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register(g)
        assert told(toolkit.call_sync("g"))["type"] == "User"
        assert toolkit.call_sync("g", context=User("u")).text == "u"

    def test_parameter_that_is_not_provided(self) -> None:
        def db(path: str) -> Db:
            return Db(path)

        def g(db: Db) -> None: ...

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        with pytest.raises(
            RegistrationError, match=r"parameter 'db': injector .*db: nothing provides its parameter 'path'"
        ):
            toolkit.register(g)

    def test_circle(self) -> None:
        def db(user: User) -> Db:
            return Db(user.name)

        def user(db: Db) -> User:
            return User(db.name)

        def g(db: Db) -> None: ...

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Db, db))
        toolkit.register_injector(Injector(User, user))
        for _ in range(2):
            with pytest.raises(RegistrationError, match=r"in a circle: .*db -> .*user -> .*db"):
                toolkit.register(g)

    def test_predicates_and_priorities(self) -> None:
        def low() -> Db:
            return Db("low")

        def high() -> Db:
            return Db("high")

        def f(db: Db) -> str:
            return db.name

        for matches in (Db, lambda annotation: annotation is Db):
            toolkit = Toolkit(plugins=())
            toolkit.register_injector(Injector(matches, high, priority=1))
            toolkit.register_injector(Injector(matches, low))
            toolkit.register(f)
            assert toolkit.call_sync("f").text == "high"

    def test_program_overrides_the_built_in(self) -> None:
        class Loud:
            def emit(self, content: str) -> None:
                emitted.append(content.upper())

        emitted: list[str] = []

        def f(emitter: Emitter) -> None:
            emitter.emit("x")

        toolkit = Toolkit(plugins=())
        toolkit.register_injector(Injector(Emitter, Loud))
        toolkit.register(f)
        assert toolkit.call_sync("f").status == "success"
        assert emitted == ["X"]


def plugin(resolve: Callable[..., Any], **options: Any) -> Any:
    class Plugin:
        @hookimpl
        def provide_injectors(self) -> list[Injector]:
            return [Injector(Db, resolve, **options)]

    return Plugin()


class TestPluginInjectors:
    def test_plugin_then_program(self) -> None:
        toolkit = Toolkit(plugins=[plugin(lambda: Db("plugin"))])
        toolkit.register(lambda db: db.name, name="untyped")

        def f(db: Db) -> str:
            return db.name

        toolkit.register(f)
        assert toolkit.call_sync("f").text == "plugin"
        toolkit.register_injector(Injector(Db, lambda: Db("program")))
        toolkit.register(f, name="g")
        assert toolkit.call_sync("g").text == "program"

    def test_two_plugins(self) -> None:
        def f(db: Db) -> str:
            return db.name

        first, second = plugin(lambda: Db("first")), plugin(lambda: Db("second"))
        toolkit = Toolkit(plugins=[first, second])
        toolkit.register(f)
        assert toolkit.call_sync("f").text == "first"
        assert " both provide " in toolkit.problems[0]
        toolkit = Toolkit(plugins=[first, plugin(lambda: Db("better"), priority=1)])
        toolkit.register(f)
        assert toolkit.call_sync("f").text == "better"

    def test_marked_parameters_are_context_whatever_plugins_say(self) -> None:
        toolkit = Toolkit(plugins=[plugin(lambda: Db("plugin"))])
        toolkit.register(ask)
        assert toolkit.call_sync("ask", {"question": "q"}, context=Db("context")).text == "q context"


def test_a_tool_outside_a_toolkit_may_ask_for_session_and_toolkit() -> None:
    def tell(x: int, session: Session, toolkit: Toolkit) -> str:
        """Tell who calls."""
        return f"{type(session).__name__} {len(toolkit)} {x}"

    made = Tool.from_function(tell)
    assert list(made.parameters["properties"]) == ["x"]
    toolkit = Toolkit(plugins=())
    toolkit.register(made)
    assert toolkit.call_sync("tell", {"x": 1}).text == "Toolkit 1 1"  # its own root session
    assert toolkit.session().call_sync("tell", {"x": 1}).text == "Session 1 1"


class TestPassingOn:
    """A tool that works through another toolkit hands on what its own call finds."""

    def test_the_context_of_a_call_serves_another_toolkit(self) -> None:
        def name_of(db: Injected[Db], agent: Agent | None = None) -> str:
            return db.name

        inner = Toolkit(plugins=())
        inner.register(name_of)

        def outer(call: ToolCall) -> str:
            return inner.call_sync("name_of", context=call.context).text

        toolkit = Toolkit(plugins=(), context=Db("toolkit"))
        toolkit.register(outer)
        assert toolkit.call_sync("outer").text == "toolkit"
        assert toolkit.session(context=Db("session")).call_sync("outer").text == "session"
        assert toolkit.call_sync("outer", context=Db("call")).text == "call"

    def test_what_is_put_within_comes_first(self) -> None:
        found: list[str] = []

        def outer(call: ToolCall) -> None:
            here = call.context.within(FastDb("own"))
            found.extend([here.find(FastDb).name, here.find(Db).name, call.context.find(Db).name])

        toolkit = Toolkit(plugins=(), context=Db("toolkit"))
        toolkit.register(outer)
        assert toolkit.call_sync("outer").error is None
        assert found == ["own", "own", "toolkit"]

    def test_a_call_that_has_not_begun_has_none_to_pass_on(self) -> None:
        assert ToolCall("c1", "anything").context == ()
