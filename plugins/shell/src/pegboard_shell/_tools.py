"""The tool: running commands under a policy, in a sandbox, with an end."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import isawaitable
from typing import Annotated, Any, TypeAlias, final

import attrs

import pegboard
from pegboard import Approval, ApprovalRequest, Emitter, ExecutionPolicy, Param, Status, Tool, ToolCall, ToolResult
from pegboard_shell._performing import NAME, perform, refused
from pegboard_shell._policy.decision import ArgumentPredicate, Decision, Policy, Verdict
from pegboard_shell._policy.programs import Programs, trusted_directories
from pegboard_shell._sandbox.places import Places
from pegboard_shell._sandbox.sandboxes import MODES, SandboxMode, SandboxUnavailableError, available
from pegboard_shell._settings import DEFAULT_MAX_OUTPUT, DEFAULT_TIMEOUT, Limits
from pegboard_shell._surroundings import Surroundings, minimal_environment, shell_arguments

__all__ = ["ShellTools"]

Answer: TypeAlias = bool | Approval
Approver: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]
Seconds = Annotated[float | None, Param(gt=0)]


@final
class ShellTools:
    """Runs commands in a directory: some at once, others after approval, some never.

    Without `shell` no shell sees a command: it is read as words and quotes. With it nothing is read, and every command
    needs approval or a sandbox. Raises OSError for a `base_dir` that is no directory, ValueError for an invalid value.

    Args:
        base_dir: Where commands run, and what a sandbox lets them change.
        allow: Programs that run at once; all others need approval.
        deny: Programs that never run.
        arguments: Predicates by program: whether an allowed one may run with these arguments. If not, approval is
            requested.
        approve: Function that answers for commands that are not allowed. None: the toolkit's approver. False requests
            no approval: they are refused.
        shell: Whether a shell reads the commands.
        sandbox: `"auto"` takes what there is, `"required"` runs nothing without one, `"none"` takes none.
        network: Whether the sandbox has the network.
        readable: Private places that the sandbox may read.
        environment: Variables of the program that commands see.
        variables: Other variables with their values.
        path: Where programs are looked up. None: the PATH of the program, without what lies in `base_dir`.
        limits: Limits of each process, as `Limits` or a mapping of its fields. None: those of `Limits()`.
        timeout: Seconds for a call that says none; 300 by default.
        max_timeout: Most seconds that a call may ask for.
        grace: Seconds between TERM and KILL.
        max_output: Bytes of each output that are kept; 65,536 by default.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str] = ".",
        *,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        arguments: Mapping[str, ArgumentPredicate] | None = None,
        approve: Approver | bool | None = None,
        shell: bool = False,
        sandbox: SandboxMode = "auto",
        network: bool = False,
        readable: Iterable[str] = (),
        environment: Iterable[str] = (),
        variables: Mapping[str, str] | None = None,
        path: str | None = None,
        limits: Limits | Mapping[str, int | None] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_timeout: float = 24 * 3600.0,
        grace: float = 0.5,
        max_output: int = DEFAULT_MAX_OUTPUT,
    ) -> None:
        _check(approve, sandbox, timeout=timeout, max_timeout=max_timeout, grace=grace, max_output=max_output)
        os.scandir(base_dir).close()  # raises for what is no directory
        self.base_dir = os.path.realpath(base_dir)
        directories = trusted_directories(os.environ.get("PATH", os.defpath) if path is None else path, self.base_dir)
        visible = minimal_environment(os.environ, directories, passed=environment, variables=variables)
        places = Places.of(self.base_dir, os.environ.get("HOME"), readable)
        programs, started_by = Programs(directories, self.base_dir), shell_arguments(visible) if shell else ()
        held = limits if isinstance(limits, Limits) else Limits(**(limits or {}))
        self._policy = Policy(programs, allow=allow, deny=deny, arguments=arguments, shell=started_by)
        self._around = Surroundings(
            self.base_dir, visible, places, sandbox, network, held.by_resource(), grace, max_output
        )
        self._shell = shell
        self._approve = approve
        self._timeout, self._max_timeout = min(timeout, max_timeout), max_timeout
        self._runs: weakref.WeakSet[Any] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"ShellTools({self.base_dir!r}, allow={self.allowed_commands}, sandbox={self._around.sandbox!r})"

    # The policy ------------------------------------------------------------------------------------------------

    @property
    def allowed_commands(self) -> list[str]:
        """The names on the allow-list, in order."""
        return sorted(self._policy.allowed)

    def add_allowed_command(self, *names: str) -> None:
        """Put programs on the allow-list, by name or absolute path; they are looked up now. Raises ValueError."""
        self._policy.add(names)

    def remove_allowed_command(self, *names: str) -> None:
        """Take programs off the allow-list, all or none. Raises KeyError for one that is not on it."""
        self._policy.remove(names)

    def clear_allowed_commands(self) -> None:
        """Empty the allow-list: every command asks from now on."""
        self._policy.clear()

    def is_command_allowed(self, command: str) -> bool:
        """Whether this command would run now without asking for approval."""
        return self.decide(command).verdict is Verdict.ALLOW

    def decide(self, command: str) -> Decision:
        """The decision about this command now, the reason, and the arguments that would be run. Nothing is started."""
        decision = self._policy.decide(command)
        if self._shell and decision.verdict is Verdict.ASK and self._is_confined():
            return attrs.evolve(decision, verdict=Verdict.ALLOW)  # a shell needs approval or a sandbox
        if decision.verdict is Verdict.ASK and self._approve is False:
            return attrs.evolve(decision, verdict=Verdict.DENY)
        return decision

    def _is_confined(self) -> bool:
        if self._around.sandbox == "none":
            return False
        try:
            available("required", self._around.places)
        except SandboxUnavailableError:
            return self._around.sandbox == "required"  # then it will not run at all
        return True

    # The tool --------------------------------------------------------------------------------------------------

    def tools(self) -> Iterator[Any]:
        """The tool for toolkits. There the toolkit asks for approval, unless `approve` says who does."""
        declare = pegboard.tool(
            name=NAME,
            requires_approval=self._approval_reason,
            destructive=True,
            idempotent=False,
            open_world=True,
            policy=ExecutionPolicy(timeout=None),  # the tool's own is the one that counts
        )
        yield declare(partial(self._execute))

    def _approval_reason(self, arguments: Mapping[str, Any]) -> str | None:
        if self._approve is not None:
            return None
        decision = self.decide(arguments["command"])
        return decision.reason if decision.verdict is Verdict.ASK else None

    # The model's own parameter is called `timeout`: the seed says so.
    async def execute_shell_command(self, command: str, timeout: float | None = None) -> ToolResult:  # noqa: ASYNC109
        """Run a command outside of a toolkit, under the same policy; see the tool of this name.

        A command that is not allowed asks `approve`; without one it is refused. Never raises for what a command can be.
        """
        return await self._run(command, timeout)

    async def _execute(
        self,
        command: str,
        timeout: Seconds = None,  # noqa: ASYNC109 - as above
        *,
        emitter: Emitter | None = None,
        call: ToolCall | None = None,
    ) -> ToolResult:
        """Run one program with its arguments and return its exit code and what it wrote.

        No shell reads the command, unless this one was set up so: quotes work, but pipes, redirections, variables and
        file name patterns do not. The program gets no input and ends with the call; nothing stays in the background.

        Args:
            command: The program and its arguments, such as: grep -n "two words" notes.txt
            timeout: Seconds after which the command is ended; leave it out for the default
        """
        return await self._run(command, timeout, emitter, in_toolkit=call is not None)

    async def _run(
        self,
        command: str,
        requested: float | None,
        emitter: Emitter | None = None,
        *,
        in_toolkit: bool = False,
        edited: bool = False,
    ) -> ToolResult:
        seconds = self._timeout if requested is None else requested
        if not 0 < seconds <= self._max_timeout:
            most = f"{self._max_timeout:g} s"
            return refused(Status.INVALID, "timeout", f"timeout must be above 0 and at most {most}, not {seconds!r}")
        decision = self.decide(command)
        around = self._around
        if self._shell and decision.verdict is Verdict.ALLOW:  # for the sake of its sandbox, which it must have then
            around = attrs.evolve(around, sandbox="required")
        # A toolkit has asked for approval by now, or knows that none is needed.
        approved = edited or (in_toolkit and self._approve is None)
        if decision.verdict is Verdict.ASK and not approved:
            sent: dict[str, Any] = {"command": command} | ({} if requested is None else {"timeout": requested})
            answer = await self._answer(decision, sent)
            if answer.decision == "deny":
                return _not_run(answer.reason)
            if answer.arguments is not None:  # what is denied stays denied, even after an edit
                sent |= answer.arguments
                command, requested = str(sent["command"]), sent.get("timeout")
                return await self._run(command, requested, emitter, in_toolkit=in_toolkit, edited=True)
        if decision.verdict is Verdict.INVALID:
            return refused(Status.INVALID, "command", decision.reason)
        if decision.verdict is Verdict.DENY:
            return _not_run(decision.reason)
        return await perform(decision.argv, around, seconds, emitter, self._runs, in_toolkit=in_toolkit)

    async def _answer(self, decision: Decision, arguments: Mapping[str, Any]) -> Approval:
        if not callable(self._approve):
            remedy = "ShellTools(allow=[...]) lists what runs without approval, approve= is the function that approves"
            return Approval.deny(f"{decision.reason}, and there is no approver (to allow it: {remedy})")
        tool = Tool.from_function(self._execute, name=NAME)
        return await _consent(self._approve, ApprovalRequest(tool, "", dict(arguments), decision.reason))

    def close(self) -> None:
        """Stop what runs. Commands that are started later run as before."""
        for run in list(self._runs):
            run.stop()


async def _consent(approver: Approver, request: ApprovalRequest) -> Approval:
    """The approver's answer; anything but a clear yes is a no. An approver that is not async blocks the event loop."""
    try:
        answer = approver(request)
        answer = await answer if isawaitable(answer) else answer
    except Exception as error:  # noqa: BLE001 - an approver that fails must not let the command through
        return Approval.deny(f"asking for approval failed: {error}")
    if isinstance(answer, Approval):
        return answer
    return Approval.approve() if answer is True else Approval.deny("it was not approved")


def _not_run(reason: str) -> ToolResult:
    return refused(Status.DENIED, "denied", f"The command was not run: {reason or 'it was not approved'}")


def _check(approve: object, sandbox: str, **amounts: Any) -> None:
    if approve is True:
        raise ValueError("approve takes a function that approves, or False; allow= lists what runs without approval")
    if sandbox not in MODES:
        raise ValueError(f"sandbox takes one of {', '.join(MODES)}, not {sandbox!r}")
    for name, amount in amounts.items():
        if not (isinstance(amount, int | float) and amount > 0 and math.isfinite(amount)):
            raise ValueError(f"{name} must be a number, positive and finite, not {amount!r}")
