"""Attacks on an allow-list: with `echo`, `ls` and a few more on it, no command starts another program.

The other program is `evil`: it is on the search path, in the workspace, and leaves a mark when it runs. `{evil}` is its
absolute path, `{space}` the workspace, and `⏎` a line break within a command.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegboard import Status
from pegboard_shell import ShellTools
from tests.plugins.shell.helpers import run

ALLOWED = ["cat", "echo", "env", "find", "ls", "nice", "nohup", "printf", "sort", "tar", "timeout", "xargs"]
ALLOWED += ["chrt", "flock", "ionice", "taskset"]

CHAINS = """
echo a; evil
echo a ;evil
echo a;evil;
;evil
echo a && evil
echo a&&evil
ls nothing || evil
ls nothing||evil
echo a | evil
echo a|evil
echo a |& evil
echo a & evil
echo a&evil
evil & echo a
echo a &
echo a⏎evil
echo a\r⏎evil
echo a⏎⏎⏎evil⏎
echo a\\⏎evil
echo a\x0bevil
echo a\x0cevil
echo a\x85evil
echo a\u2028evil
echo a\u2029evil
{ evil; }
{ evil
( evil )
(evil)
! evil
if true; then evil; fi
while evil; do break; done
echo() { evil; }; echo
function echo { evil; }
alias echo=evil
time evil
coproc evil
"""

SUBSTITUTION = """
echo $(evil)
echo "$(evil)"
echo a$(evil)b
echo `evil`
echo "`evil`"
echo \\`evil`
echo $(echo $(evil))
echo ${x:-$(evil)}
echo "${x:=`evil`}"
echo ${x[$(evil)]}
echo $((a[$(evil)]))
echo $[a[`evil`]]
echo <(evil)
echo >(evil)
cat <(evil)
cat < <(evil)
echo $'\\x24(evil)'
echo $"$(evil)"
echo "a\\\\$(evil)"
echo 'a'$(evil)'b'
echo 'a'"$(evil)"
echo \\\\$(evil)
echo \\\\`evil`
$(evil)
`evil`
"$(echo evil)"
${SHELL} -c evil
$SHELL -c evil
echo ~$(evil)
"""

QUOTES = """
echo 'a' ; 'evil'
echo 'a\\' & evil
echo 'a\\'; evil; echo '
echo "a" ; evil "
echo "a\\" ; evil
echo 'a
echo "a
echo 'a"; evil
echo "a'; evil
echo a\\
echo '\\''; evil; '
echo "\\\\"; evil; "
'e'"v"il
e\\vil
"evil"
'evil'
evi''l
\\evil
"" evil
'' evil
' evil'
'evil '
"""

REDIRECTION = """
echo a > {space}/new
echo a >> {space}/new
echo a >| {space}/new
echo a &> {space}/new
echo a 2> {space}/new
echo a 1>{space}/new
echo a >{evil}
echo a 3<>{space}/new
> {space}/new
>{space}/new echo a
< {space}/evil echo a
cat << END⏎evil⏎END
cat <<< evil
cat 0< {evil}
echo a >&2
echo a 2>&1 | evil
exec 3>{space}/new
"""

PROGRAMS = """
evil
{evil}
./evil
././evil
.//evil
../space/evil
{space}/evil
{space}/../space/evil
//{evil}
evil.sh
./ls
./echo
{space}/ls
../space/ls
echo/../evil
./echo.sh
ECHO/evil
.
..
/
~/evil
*
./*
ev?l
[e]vil
e{{vil,x}}
{evil} echo
echo\u200b a
ec\u0068o\u0000evil
EVIL
eval evil
exec evil
command evil
builtin echo
source ./evil
. ./evil
sh -c evil
bash -c evil
busybox sh -c evil
python3 -c 'import os; os.system("evil")'
perl -e 'system("evil")'
awk 'BEGIN {{ system("evil") }}'
sudo evil
setsid evil
stdbuf -o0 evil
watch evil
script -c evil
ld.so {evil}
/lib64/ld-linux-x86-64.so.2 {evil}
"""

ENVIRONMENT = """
PATH={space} ls
PATH={space}:$PATH ls
LD_PRELOAD={evil} ls
LD_PRELOAD='{evil}' ls
LD_LIBRARY_PATH=. ls
BASH_ENV={evil} ls
ENV={evil} ls
IFS=e ls
A=1 B=2 evil
A+=x evil
export PATH={space}
env evil
env {evil}
env ./evil
env -i evil
env -u PATH evil
env PATH={space} ls
env PATH={space}:/bin ls
env LD_PRELOAD={evil} ls
env A=b evil
env -- evil
env - evil
env -S evil
env -S 'evil a'
env -Sevil
env -vS evil
env --split-string=evil
env --split-string evil
env -C {space} ./evil
env --chdir={space} ./evil
env -u A -u B evil
env -uA evil
env --unset A evil
env env evil
env nice evil
env --argv0=echo evil
env -a echo evil
"""

ARGUMENTS = """
find . -exec evil ;
find . -exec evil \\;
find . -exec evil {{}} +
find . -execdir ./evil \\;
find . -ok evil \\;
find . -okdir evil \\;
find . -name x -o -exec evil \\;
find -exec evil \\;
find . '-exec' evil ';'
find . -ex""ec evil \\;
find . \\-exec evil \\;
xargs evil
xargs -n 1 evil
xargs -n1 evil
xargs -I x evil x
xargs -Ix evil x
xargs --replace evil
xargs -a {space}/names evil
xargs -P 4 -n 1 -- evil
xargs env evil
nice evil
nice -n 5 evil
nice -5 evil
nice --5 evil
nice -n5 evil
nice --adjustment=5 evil
nice -- evil
nohup evil
nohup -- evil
timeout 5 evil
timeout -s KILL 5 evil
timeout -k 1 5 evil
timeout -k1 5 evil
timeout --signal=KILL 5 evil
timeout --foreground 5 evil
timeout --kill-after 1 5 evil
timeout -- 5 evil
timeout 5 timeout 5 evil
timeout 5 sh -c evil
flock {space}/names evil
flock {space}/names -c evil
flock -n {space}/names evil
ionice evil
ionice -c 3 evil
ionice -c3 -n 7 ./evil
ionice -tc 3 evil
taskset 1 evil
taskset -c 0 evil
chrt 0 evil
chrt -o 0 evil
chrt 0 taskset 1 evil
tar -cf {space}/t --checkpoint=1 --checkpoint-action=exec=evil {space}/ls
tar -cf {space}/t --checkpoint=1 --checkpoint-act=exec=evil {space}/ls
tar -cf {space}/t -I evil {space}/ls
tar -cf {space}/t -Ievil {space}/ls
tar -cIf evil {space}/t {space}/ls
tar cIf evil {space}/t {space}/ls
tar -cf {space}/t --use-compress-program=evil {space}/ls
tar -cf {space}/t --use-comp evil {space}/ls
tar -xf {space}/x.tar --to-command=evil
tar -xf {space}/x.tar --to-com evil
tar -cf {space}/t -F evil -L 1 {space}/ls
tar -cf {space}/t --info-script=evil -L 1 {space}/ls
tar -cf host:x --rsh-command=evil {space}/ls
tar -cf host:x {space}/ls
tar -cfhost:x {space}/ls
tar cf evil@host:x {space}/ls
tar --create --file=host:{space}/x {space}/ls
tar -cf host:x --rmt-command=evil {space}/ls
sort --compress-program=evil -S 1 {space}/names
sort --compress-program evil -S 1 {space}/names
sort --comp=evil -S 1 {space}/names
echo '; evil'
echo '$(evil)' "a;b" '`evil`'
printf '%s\\n' '$(evil)'
ls -- '; evil'
ls --color=auto '$(evil)' '|evil'
cat -- '-evil' '>new'
"""

TABLES = {
    "chains": CHAINS,
    "substitution": SUBSTITUTION,
    "quotes": QUOTES,
    "redirection": REDIRECTION,
    "programs": PROGRAMS,
    "environment": ENVIRONMENT,
    "arguments": ARGUMENTS,
}


def rows() -> Iterator[tuple[str, str]]:
    for name, table in TABLES.items():
        for line in table.strip("\n").split("\n"):
            yield name, line


ATTACKS = list(rows())

Ground = Callable[..., ShellTools]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """The workspace, with programs in it that are not listed."""
    space = tmp_path / "space"
    space.mkdir()
    for folder in (space, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        for name in ("evil", *(["ls", "echo", "echo.sh", "evil.sh", "new-volume"] if folder is space else [])):
            program = folder / name
            program.write_text(f"#!/bin/sh\necho >> '{tmp_path / 'mark'}'\n", encoding="utf-8")
            program.chmod(0o755)
    (space / "names").write_text("b\na\n" * 1000, encoding="utf-8")
    (space / "x.tar").write_bytes(b"")
    return space


@pytest.fixture
def shell(space: Path, tmp_path: Path) -> Ground:
    path = f"{tmp_path / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return lambda **options: ShellTools(space, **{"allow": ALLOWED, "path": path, "sandbox": "none", **options})


def written(line: str, space: Path) -> str:
    """The command of a row."""
    text = line.replace("⏎", "\n").replace("{{", "{").replace("}}", "}")
    return text.replace("{evil}", str(space.parent / "bin" / "evil")).replace("{space}", str(space))


def test_table_is_long_enough() -> None:
    assert len(ATTACKS) == len(set(ATTACKS)) >= 120


@pytest.mark.parametrize("table", TABLES)
def test_no_other_program_runs(table: str, shell: Ground, space: Path, tmp_path: Path) -> None:
    tools = shell()
    before = sorted(space.iterdir())
    mark = tmp_path / "mark"

    for command in (written(line, space) for name, line in ATTACKS if name == table):
        allowed = tools.is_command_allowed(command)
        result = run(tools, command, 10)
        assert not mark.exists(), f"{command!r} ran another program"
        assert sorted(space.iterdir()) == before, f"{command!r} changed a file"
        # What the policy says and what is done agree.
        assert allowed == (result.data is not None), command
        assert result.status in (Status.SUCCESS, Status.DENIED, Status.INVALID), (command, result.text)


@pytest.mark.parametrize("command", ["evil", "./evil", "env evil", "find . -name names -exec evil \\;", "nice {evil}"])
def test_it_can_still_be_approved(command: str, shell: Ground, space: Path, tmp_path: Path) -> None:
    """And the mark that the other tests look for is there when a program did run."""
    tools = shell(approve=lambda request: True)
    assert run(tools, written(command, space)).status is Status.SUCCESS
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("command", "written_out"),
    [
        ("echo '; evil'", "; evil\n"),
        ("echo '$(evil)' \"a;b\" '`evil`'", "$(evil) a;b `evil`\n"),
        ("printf '%s-' 'a b' c", "a b-c-"),
        ("env nice -n 1 timeout 5 echo a", "a\n"),
    ],
)
def test_what_is_harmless_works(command: str, written_out: str, shell: Ground) -> None:
    result = run(shell(), command)
    assert result.data["stdout"] == written_out
