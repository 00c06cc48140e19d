"""`pegboard new`: starts a pack that passes its own tests and checks."""

from __future__ import annotations

import datetime as dt
import keyword
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

import click
from attrs import frozen

import pegboard
from pegboard import PegboardError
from pegboard.inspection import write_file
from pegboard_cli._options import json_option, traceback_option
from pegboard_cli._output.printing import clean, print_json

__all__ = ["Pack", "command"]

TEMPLATE: Final = Path(__file__).parents[1] / "template"
_SUFFIX: Final = ".in"
_LONGEST: Final = 40
# Where two packs have a tool of one name, it is called <pack>__<tool>, and 64 characters are the most.
_LONGEST_TOPIC: Final = 15


@frozen
class Pack:
    """The names of a new pack, all made from that of its distribution."""

    distribution: str

    @classmethod
    def named(cls, name: str) -> Pack:
        """Read a name. Raises `UsageError` for one that installers or Python would refuse."""
        distribution = re.sub(r"[-_.]+", "-", name).lower()
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", distribution):
            raise click.UsageError(f"{name!r} is no name for a pack; take letters, digits and -, such as acme-dice")
        module = distribution.replace("-", "_")
        if module in {"pegboard", *sys.stdlib_module_names} or keyword.iskeyword(module) or len(module) > _LONGEST:
            raise click.UsageError(f"{name!r} is taken by Python or Pegboard, or too long; take one such as acme-dice")
        return cls(distribution)

    @property
    def module(self) -> str:
        """The name to import."""
        return self.distribution.replace("-", "_")

    @property
    def _topic(self) -> str:
        """What the pack is about: `dice` for `acme-dice`."""
        last = self.distribution.rpartition("-")[2]
        return last if last.isidentifier() else self.module

    @property
    def words(self) -> Mapping[str, str]:
        """What the template's placeholders stand for."""
        major, minor = pegboard.__version__.split(".")[:2]
        plugin = self.module.removeprefix("pegboard_")
        return {
            "distribution": self.distribution,
            "module": self.module,
            "plugin": plugin,
            "variable": plugin.upper(),
            "tool": f"{self._topic[:_LONGEST_TOPIC]}_repeat",
            "description": f"Tools of {self.distribution} for LLM agents",
            "requirement": f"pegboard>={major}.{minor},<{major}.{int(minor) + 1}",
            "year": str(dt.datetime.now(dt.UTC).year),
        }


@click.command("new")
@click.argument("pack", metavar="PACK")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Where to make its folder."
)
@json_option
@traceback_option
def command(pack: str, into: Path, as_json: bool) -> None:
    """Start a pack of your own.

    PACK is the name of the distribution, such as acme-dice. A folder of that name gets a module with settings, a type
    and a tool, tests, a README, a licence, and a workflow that tests and publishes it. All pass as they are: begin by
    putting your own tool there.
    """
    named = Pack.named(pack)
    folder = into / named.distribution
    if folder.is_symlink():
        raise PegboardError(f"{folder} is a link, and a pack is not written through one; take another name or --into")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PegboardError(f"{folder} is there already, and not empty; take another name or --into another folder")
    written = _write(named, folder)
    if as_json:
        print_json({"folder": str(folder), "files": written, "module": named.module, "plugin": named.words["plugin"]})
        return
    for name in written:
        click.echo(clean(f"{folder / name}"))
    click.echo()
    run = f'pip install -e ".[dev]" && pytest && pegboard call {named.words["tool"]} --arg text=ho'
    click.echo(clean(f"Next: cd {folder} && {run}"))
    module = folder / "src" / named.module / "__init__.py"
    click.echo(clean(f"Then put your own tool into {module} and run: pegboard test-pack --core lowest,newest"))


def _write(pack: Pack, folder: Path) -> list[str]:
    """Fill in the template; the files that were written, sorted."""
    files = {}
    for source in sorted(TEMPLATE.rglob(f"*{_SUFFIX}")):
        name = source.relative_to(TEMPLATE).as_posix().removesuffix(_SUFFIX).replace("module", pack.module)
        files[name] = Template(source.read_text(encoding="utf-8")).substitute(pack.words)
    for name, content in sorted(files.items()):
        target = folder / name
        write_file(target, content, "a file of the pack")
    return sorted(files)
