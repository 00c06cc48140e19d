"""`pegboard test-pack`: tries a pack's wheel in fresh environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from pegboard_cli._options import json_option, traceback_option
from pegboard_cli._output import exits
from pegboard_cli._output.printing import clean, console, note, print_json, print_table, text
from pegboard_cli._trials.environment import Failed, Installer, checkout_of, members_needed
from pegboard_cli._trials.pythons import Python, find_pythons
from pegboard_cli._trials.trial import Core, Outcome, Trials
from pegboard_cli._trials.wheel import Wheel, admits, read_project, read_wheel

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["command"]

_LOWEST: Final = "lowest"
_NEWEST: Final = "newest"
_STYLES: Final = {"passed": "green", "failed": "bold red"}


def _list(ctx: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    return list(dict.fromkeys(each.strip() for each in value.split(",") if each.strip()))


@click.command("test-pack")
@click.argument("path", type=click.Path(file_okay=False, exists=True, path_type=Path), default=Path())
@click.option(
    "--core",
    "cores",
    default="",
    callback=_list,
    metavar="VERSIONS",
    help="Cores, such as 0.1.0,0.2.1; lowest and newest are those that the pack admits.  [default: newest]",
)
@click.option(
    "--python",
    "versions",
    default="",
    callback=_list,
    metavar="VERSIONS",
    help="Versions of Python, such as 3.11,3.13.  [default: all of this machine that the pack admits]",
)
@json_option
@traceback_option
def command(path: Path, cores: list[str], versions: list[str], as_json: bool) -> int:
    """Try a pack's wheel in fresh environments.

    Builds the wheel of the pack in PATH, by default the current directory, and installs it into a fresh environment for
    each core and each Python. Checks conformance there, and runs the pack's own tests from a copy, where only the
    installed wheel can be imported. Pythons are those of this machine; pip's own variables, such as PIP_FIND_LINKS, say
    where packages come from. In a checkout of Pegboard the core is that of the checkout.

    Exits with 1 if anything fails or an environment cannot be made, and with 2 if there is no wheel to begin with.
    """
    with TemporaryDirectory(prefix="pegboard-test-pack-") as folder:
        trials, checkout = _begin(path.resolve(), Path(folder))
        outcomes = [
            _reported(trials.run(python, core))
            for core in _cores(cores, trials.wheel, checkout)
            for python in _pythons(versions, trials.wheel)
        ]
    if as_json:
        found = [each.to_dict() for each in outcomes]
        print_json({"wheel": trials.wheel.path.name, "environments": found})
    else:
        _print(outcomes)
    return exits.OK if all(each.passed for each in outcomes) else exits.FAILED


def _begin(source: Path, folder: Path) -> tuple[Trials, list[Path]]:
    """Build what is needed. Raises `UsageError` if there is no pack, or it cannot be built."""
    try:
        project = read_project(source)
    except ValueError as error:
        raise click.UsageError(f"{source / 'pyproject.toml'} cannot be read: {error}") from None
    if not project:
        raise click.UsageError(f"there is no pyproject.toml in {source}; name the folder of a pack")
    installer, links = Installer(folder), folder / "wheels"
    links.mkdir()
    try:
        note("building the wheel")
        built = installer.wheels([source], links)
        wheel = read_wheel(built[0])
        checkout = checkout_of(source)
        needed = [] if checkout is None else members_needed(checkout, ["pegboard-testing", *_requirements(project)])
        others = [path for path in needed if path.resolve() != source]
        found = installer.wheels(others, links) if others else []
    except (Failed, ValueError, OSError) as error:
        click.echo(clean(str(error)), err=True)
        raise click.UsageError(f"the wheel of {source} cannot be built; why is said above") from None
    if not wheel.plugins:
        raise click.UsageError(f"{wheel.name} has no entry point in the group pegboard, which makes a pack")
    return Trials(wheel, source, project, folder, installer, links), found


def _requirements(project: Mapping[str, Any]) -> list[str]:
    """All that a pack asks for, its extras and groups too."""
    declared = project.get("project", {})
    several = [declared.get("dependencies", ()), *declared.get("optional-dependencies", {}).values()]
    several += project.get("dependency-groups", {}).values()
    return [each for requirements in several for each in requirements if isinstance(each, str)]


def _cores(wanted: list[str], wheel: Wheel, checkout: list[Path]) -> Iterator[Core]:
    """The cores to try with, and what to install for each."""
    own = [str(path) for path in checkout if path.name.startswith("pegboard-")]
    for each in wanted or [_NEWEST]:
        if each == _LOWEST and wheel.lowest_core is not None:
            yield each, (f"pegboard=={wheel.lowest_core}",)
        elif each in (_LOWEST, _NEWEST):
            yield (each, tuple(own)) if own and not wanted else (each, ())
        else:
            yield each, (f"pegboard=={each}",)


def _pythons(wanted: list[str], wheel: Wheel) -> Iterator[Python | str]:
    """The Pythons of this machine that the option names, by their version where there is none."""
    found = find_pythons()
    if wanted:
        by_release = {each.release: each for each in found.values()}
        yield from (found.get(each) or by_release.get(each) or each for each in wanted)
        return
    yield from (each for each in found.values() if admits(wheel.python, each.release))


def _reported(outcome: Outcome) -> Outcome:
    state = "passed" if outcome.passed else "failed"
    note(f"Python {outcome.python}, core {outcome.core}: {state} after {outcome.seconds} s")
    return outcome


def _print(outcomes: list[Outcome]) -> None:
    columns = ["Python", "Core", "Installed", "Conformance", "Tests", "Seconds"]
    rows: list[list[str | Text]] = [
        [
            each.python,
            each.core,
            *(text(result, _STYLES.get(result, "dim")) for result in (each.installed, each.conformance, each.tests)),
            f"{each.seconds:.1f}",
        ]
        for each in outcomes
    ]
    print_table(console(), columns, rows)
    for each in outcomes:
        if each.reason:
            click.echo(clean(f"\nPython {each.python}, core {each.core}:\n{each.reason}"))
