"""What was decided of a call before it waited is decided again when its function is about to start."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pegboard
from pegboard import (
    Approval,
    Computed,
    ExecutionPolicy,
    Injector,
    Locked,
    Middleware,
    Secret,
    Status,
    ToolCall,
    Toolkit,
    ToolResult,
    tool,
)
from tests.support.thinning import first
from tests.support.waiting import begin, eventually, until, within

# Changes -----------------------------------------------------------------------------------------------------------


def forbid(toolkit: Toolkit) -> None:
    toolkit.set_permission("work", "never")


def switch_off(toolkit: Toolkit) -> None:
    toolkit.update_groups("workers", False)


def take_down(toolkit: Toolkit) -> None:
    toolkit.unregister("work")


def remove_group(toolkit: Toolkit) -> None:
    toolkit.remove_groups("workers")


CHANGES = [
    (forbid, Status.DENIED),
    (switch_off, Status.INACTIVE),
    (take_down, Status.NOT_FOUND),
    (remove_group, Status.NOT_FOUND),
]
each_change = pytest.mark.parametrize(("change", "status"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])


class Scene:
    """A toolkit whose tool `work` waits for something before it begins; `change` comes while it waits."""

    def __init__(self, **options: Any) -> None:
        self.began: list[Any] = []
        self.waits = threading.Event()
        self.release = threading.Event()
        self.toolkit = Toolkit(plugins=[self.plugin()], **options)
        self.toolkit.create_group("workers")

    def plugin(self) -> Any:
        return ()

    def register(self, function: Any, **terms: Any) -> None:
        self.toolkit.register(function, name="work", group="workers", **terms)

    def pause(self) -> None:
        self.waits.set()
        assert self.release.wait(60)

    async def pause_later(self) -> None:
        self.waits.set()
        await until(self.release.is_set)

    def changed(self, change: Callable[[Toolkit], object], start: Callable[[], ToolResult]) -> ToolResult:
        """The result of a call that waits while the change is made."""
        with self.toolkit:
            running = begin(start)
            try:
                assert self.waits.wait(60), running.exception(0)
                change(self.toolkit)
            finally:
                self.release.set()
            return within(running.result)


def tools(scene: Scene) -> dict[str, Any]:
    def work() -> str:
        """Work."""
        scene.began.append("sync")
        return "done"

    async def work_later() -> str:
        """Work."""
        scene.began.append("async")
        return "done"

    return {"sync": work, "async": work_later}


class Surrounding(Scene):
    """Waits in middleware."""

    asynchronous = False

    def plugin(self) -> Any:
        class Plugin:
            @staticmethod
            @pegboard.hookimpl
            def provide_middleware() -> list[Middleware]:
                return [Middleware(self.around_later if self.asynchronous else self.around)]

        return Plugin

    def around(self, call: ToolCall, proceed: Callable[[], Any]) -> Any:
        self.pause()
        return proceed()

    async def around_later(self, call: ToolCall, proceed: Callable[[], Any]) -> Any:
        await self.pause_later()
        return await proceed()


class SurroundingLater(Surrounding):
    asynchronous = True


class Approving(Scene):
    """Waits for the approver."""

    def __init__(self) -> None:
        super().__init__(approver=self.approve)

    def approve(self, request: Any) -> bool:
        self.pause()
        return True


class Held(Scene):
    """Waits for a lock that another tool holds."""

    def __init__(self) -> None:
        super().__init__()

        @tool(locks=["bench"])
        def hold() -> str:
            """Hold the lock."""
            self.pause()
            return ""

        self.toolkit.register(hold)

    def changed(self, change: Callable[[Toolkit], object], start: Callable[[], ToolResult]) -> ToolResult:
        holding = begin(lambda: self.toolkit.call_sync("hold"))
        assert self.waits.wait(60)

        def queued(toolkit: Toolkit) -> None:
            assert eventually(lambda: toolkit.stats["waiting"] == 1)
            change(toolkit)

        result = super().changed(queued, start)
        within(holding.result)
        return result


def calls(toolkit: Toolkit) -> dict[str, Callable[[], ToolResult]]:
    async def stream() -> ToolResult:
        (result,) = [each async for each in toolkit.stream([("work", {})]) if isinstance(each, ToolResult)]
        return result

    return {
        "call_sync": lambda: toolkit.call_sync("work"),
        "call": lambda: asyncio.run(toolkit.call("work")),
        "call_many": lambda: asyncio.run(toolkit.call_many([("work", {}), ("absent", {})]))[0],
        "stream": lambda: asyncio.run(stream()),
        "prepared": lambda: toolkit.prepare("work").execute_sync(),
    }


def declared(scene: Scene, kind: str) -> Any:
    function = tools(scene)[kind]
    if isinstance(scene, Approving):
        return tool(requires_approval=True)(function)
    return tool(locks=["bench"])(function) if isinstance(scene, Held) else function


@each_change
@pytest.mark.parametrize("how", first(2, ["call_sync", "stream", "call", "call_many", "prepared"]))
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("wait", [Held, Approving, Surrounding, SurroundingLater])
def test_a_change_while_the_call_waits(wait: type[Scene], kind: str, how: str, change: Any, status: Status) -> None:
    scene = wait()
    scene.register(declared(scene, kind))
    result = scene.changed(change, calls(scene.toolkit)[how])
    assert (result.status, scene.began) == (status, [])


@each_change
def test_while_it_waits_for_a_thread(change: Any, status: Status) -> None:
    scene = Scene(max_threads=1)
    scene.toolkit.register(scene.pause, name="pause", description="Wait.")
    scene.register(tools(scene)["sync"])

    async def main() -> ToolResult:
        first = asyncio.create_task(scene.toolkit.call("pause"))
        await until(scene.waits.is_set)
        second = asyncio.create_task(scene.toolkit.call("work"))
        await until(lambda: scene.toolkit.stats["waiting"] == 1)
        change(scene.toolkit)
        scene.release.set()
        await first
        return await second

    with scene.toolkit:
        result = within(lambda: asyncio.run(main()))
    assert (result.status, scene.began) == (status, [])


@each_change
def test_of_a_prepared_call(change: Any, status: Status) -> None:
    scene = Scene()
    scene.register(tools(scene)["sync"])
    with scene.toolkit as toolkit:
        call = toolkit.prepare("work")
        change(toolkit)
        assert (call.execute_sync().status, scene.began) == (status, [])


@each_change
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_before_the_next_attempt(kind: str, change: Any, status: Status) -> None:
    scene, attempts = Scene(), []

    def work() -> str:
        """Fail, once things have changed."""
        attempts.append(change(scene.toolkit))
        raise ValueError("no")

    async def work_later() -> str:
        """Fail, once things have changed."""
        return work()

    scene.register(work if kind == "sync" else work_later)
    policy = ExecutionPolicy(max_attempts=3, initial_backoff=0.001)
    with scene.toolkit as toolkit:
        result = toolkit.call_sync("work", policy=policy)
    assert (result.status, len(attempts), result.attempts) == (status, 1, 1)
    assert result.metadata["retries"][0]["error"] == "no"


@each_change
def test_while_a_resolver_is_at_work(change: Any, status: Status) -> None:
    class Client:
        pass

    scene = Scene()

    async def client() -> Client:
        change(scene.toolkit)
        return Client()

    def work(client: Client) -> str:
        """Work."""
        scene.began.append("work")
        return "done"

    scene.toolkit.register_injector(Injector(Client, resolve=client))
    scene.register(work)
    with scene.toolkit as toolkit:
        assert (toolkit.call_sync("work").status, scene.began) == (status, [])


class TestPresets:
    def test_those_of_now_are_given(self) -> None:
        scene = Held()

        @tool(locks=["bench"])
        def work(key: str = "none") -> str:
            """Work."""
            return key

        scene.register(work, presets={"key": Secret("an old secret")})
        result = scene.changed(
            lambda toolkit: toolkit.set_presets("work", {"key": "new"}), calls(scene.toolkit)["call"]
        )
        assert result.text == "new"

    def test_what_is_locked_meanwhile_is_no_longer_the_models(self) -> None:
        scene = Held()

        @tool(locks=["bench"])
        def work(path: str) -> str:
            """Work."""
            return path

        scene.register(work)
        toolkit = scene.toolkit
        result = scene.changed(
            lambda toolkit: toolkit.set_presets("work", {"path": Locked("safe")}),
            lambda: asyncio.run(toolkit.call("work", {"path": "/etc/passwd"})),
        )
        assert result.text == "safe"
        assert [note.kind for note in result.notes] == ["dropped"]

    def test_those_that_are_computed(self) -> None:
        scene = Held()

        @tool(locks=["bench"])
        def work(key: str) -> str:
            """Work."""
            return key

        scene.register(work, presets={"key": "plain"})
        result = scene.changed(
            lambda toolkit: toolkit.set_presets("work", {"key": Computed(lambda call: call.name)}),
            calls(scene.toolkit)["call"],
        )
        assert result.text == "work"

    def test_a_parameter_without_a_value_any_more(self) -> None:
        scene = Held()

        @tool(locks=["bench"])
        def work(key: str) -> str:
            """Work."""
            return key

        scene.register(work, presets={"key": "plain"})
        result = scene.changed(lambda toolkit: toolkit.set_presets("work", {}), calls(scene.toolkit)["call"])
        assert result.status is Status.INVALID


class Asked(list[str]):
    """An approver who says no, and remembers of what."""

    def approve(self, request: Any) -> bool:
        self.append(request.tool.name)
        return False


class TestApproval:
    def test_that_became_needed_in_the_queue(self) -> None:
        scene, asked = Held(), Asked()
        scene.register(declared(scene, "sync"))
        scene.toolkit.approver = asked.approve
        result = scene.changed(lambda toolkit: toolkit.set_permission("work", "prompt"), calls(scene.toolkit)["call"])
        assert (result.status, scene.began, asked) == (Status.DENIED, [], ["work"])

    @pytest.mark.parametrize("wait", ["lock", "thread"])
    def test_that_the_predicate_asks_for_by_now(self, wait: str) -> None:
        """As the allow-list of the shell tools: it is no setting of the toolkit's."""
        allowed, asked = [True], Asked()
        scene = Held() if wait == "lock" else Scene(max_threads=1)

        @tool(requires_approval=lambda arguments: not allowed[0], locks=["bench"] if wait == "lock" else ())
        def work() -> str:
            """Work."""
            scene.began.append("work")
            return ""

        scene.register(work)
        if wait == "thread":
            scene.toolkit.register(scene.pause, name="hold", description="Wait.")
        scene.toolkit.approver = asked.approve

        async def main() -> ToolResult:
            first = asyncio.create_task(scene.toolkit.call("hold"))
            await until(scene.waits.is_set)
            second = asyncio.create_task(scene.toolkit.call("work"))
            await until(lambda: scene.toolkit.stats["waiting"] == 1)
            allowed[0] = False
            scene.release.set()
            await first
            return await second

        with scene.toolkit:
            result = within(lambda: asyncio.run(main()))
        assert (result.status, scene.began, asked) == (Status.DENIED, [], ["work"])

    def test_once_given_is_not_asked_for_again(self) -> None:
        asked: list[str] = []

        def approve(request: Any) -> bool:
            asked.append(request.call_id)
            toolkit.create_group("unrelated")
            return True

        with Toolkit(plugins=(), approver=approve) as toolkit:

            @tool(requires_approval=True, locks=["bench"])
            def work() -> str:
                """Work."""
                return "done"

            toolkit.register(work)

            assert toolkit.call_sync("work").text == "done"
        assert len(asked) == 1

    def test_of_another_tool_that_took_the_name_is_another_one(self) -> None:
        asked: list[str] = []

        def other() -> str:
            """Do something else."""
            return "other"

        def approve(request: Any) -> bool:
            asked.append(request.tool.description)
            if len(asked) == 1:
                approving = tool(requires_approval=True)(other)
                toolkit.register(approving, name="work", on_conflict="replace")
            return len(asked) == 1

        with Toolkit(plugins=(), approver=approve) as toolkit:

            @tool(requires_approval=True)
            def work() -> str:
                """Work."""
                return "done"

            toolkit.register(work)

            result = toolkit.call_sync("work")
        assert (result.status, asked) == (Status.DENIED, ["Work.", "Do something else."])

    def test_edited_arguments_of_a_tool_that_went(self) -> None:
        def approve(request: Any) -> Approval:
            toolkit.unregister("work")
            return Approval.edit({"path": "b"})

        with Toolkit(plugins=(), approver=approve) as toolkit:

            @tool(requires_approval=True)
            def work(path: str) -> str:
                """Work."""
                return path

            toolkit.register(work)

            assert toolkit.call_sync("work", {"path": "a"}).status is Status.NOT_FOUND


class TestPreparedElsewhere:
    @pytest.fixture
    def toolkit(self) -> Iterator[Toolkit]:
        with Toolkit(plugins=()) as made:

            def work() -> str:
                """Work."""
                return "done"

            made.register(work)

            yield made

    @pytest.mark.parametrize("how", ["call_sync", "call", "call_many", "prepare", "suspend"])
    @pytest.mark.parametrize("where", ["session", "toolkit", "view", "other toolkit"])
    def test_is_an_error(self, toolkit: Toolkit, where: str, how: str) -> None:
        first = toolkit.session() if where == "toolkit" else toolkit
        other = Toolkit(plugins=())
        second: Any = {"session": toolkit.session(), "toolkit": toolkit, "view": toolkit.view()}.get(where, other)
        second.set_permission("work", "never") if where == "session" else None
        call = first.prepare("work")
        ways: dict[str, Callable[[], Any]] = {
            "call_sync": lambda: second.call_sync(call),
            "call": lambda: asyncio.run(second.call(call)),
            "call_many": lambda: asyncio.run(second.call_many([call, ("absent", {})]))[0],
            "prepare": lambda: second.prepare(call).execute_sync(),
            "suspend": lambda: second.suspend(call),
        }
        with other:
            result = ways[how]()
        assert (result.status, result.error.kind, result.call_id) == (Status.ERROR, "foreign", call.id)
        assert result.text.endswith("belongs to the session that prepared it")
        assert "execute()" in result.error.details["remedy"]
        assert call.result is None
        assert call.execute_sync().text == "done"

    def test_at_home_it_runs(self, toolkit: Toolkit) -> None:
        session = toolkit.session()
        assert session.call_sync(session.prepare("work")).text == "done"
        assert toolkit.call_sync(toolkit.prepare("work")).text == "done"
