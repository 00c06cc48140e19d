"""Programs that mean harm: they end in time, reach nothing, and cost the host little."""

import resource
import time
from pathlib import Path

import pytest

from pegboard import Status, Toolkit
from tests.plugins.code.desk import Tools, coded, ran

SECONDS = 2.0
MEGABYTES = 150

BOMBS = {
    "loop": "while True:\n    pass",
    "loop that catches": "while True:\n    try:\n        while True:\n            pass\n    except:\n        pass",
    "loop with finally": (
        "while True:\n    try:\n        1 / 0\n    except:\n        continue\n    finally:\n        continue"
    ),
    "loop of host calls": "while True:\n    try:\n        exit()\n    except Exception:\n        pass",
    "loop of shows": "while True:\n    try:\n        show(1)\n    except Exception:\n        pass",
    "loop of descriptions": "while True:\n    await describe_tool('rows')",
    "big power": "x = 7 ** (10 ** 8)",
    "power tower": "x = 9 ** 9 ** 9",
    "digits": "2 ** 20000",
    "shift": "1 << (10 ** 10)",
    "factorial": "import math\nmath.factorial(10 ** 7)",
    "string": "'a' * 10 ** 10",
    "doubling string": "s = 'a'\nwhile True:\n    s += s",
    "bytes": "b'a' * 10 ** 10",
    "list": "[0] * 10 ** 9",
    "growing list": "x = []\nwhile True:\n    x.append(0)",
    "growing dict": "x = {}\nfor i in range(10 ** 9):\n    x[i] = i",
    "growing set": "set(range(10 ** 9))",
    "range to list": "list(range(10 ** 9))",
    "width": "f'{1:>10000000000}'",
    "format width": "'{:>10000000000}'.format(1)",
    "percent width": "'%10000000000d' % 1",
    "replace": "('a' * 10 ** 6).replace('a', 'b' * 10 ** 6)",
    "join": "('x' * 10 ** 6).join(['a'] * 10 ** 6)",
    "product": "import itertools\nlist(itertools.product(range(1000), repeat=4))",
    "permutations": "import itertools\nlist(itertools.permutations(range(12)))",
    "sort": "sorted(range(10 ** 8), key=lambda x: -x)",
    "sum": "sum(range(10 ** 12))",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "mutual recursion": "def f():\n    return g()\ndef g():\n    return f()\nf()",
    "recursion in eq": "class A:\n    def __eq__(self, other):\n        return self == other\nA() == A()",
    "recursion in repr": "class A:\n    def __repr__(self):\n        return repr(self)\nrepr(A())",
    "deep list": "x = []\nfor i in range(10 ** 6):\n    x = [x]\nx",
    "nested brackets": "(" * 5000 + ")" * 5000,
    "nested unary": "-" * 20000 + "1",
    "long sum": "+".join(["1"] * 40000),
    "shared lists": "a = [0] * 1000\nb = [a] * 1000\nc = [b] * 1000\nc",
    "shared argument": "a = [0] * 1000\nb = [a] * 1000\nc = [b] * 1000\nawait get_weather(city=c)",
    "a list in itself": "a = []\na.append(a)\na",
    "regex": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "regex alternatives": "import re\nre.match('(a|aa)+$', 'a' * 60 + 'b')",
    "regex count": "import re\nre.compile('(((a{100}){100}){100}){100}')",
    "json": "import json\njson.loads('[' * 100000)",
    "decimal": "import decimal\ndecimal.Decimal(10) ** 999999",
    "sleep": "import time\ntime.sleep(3600)",
    "async sleep": "import asyncio\nawait asyncio.sleep(3600)",
    "print": "while True:\n    print('a' * 1000)",
    "large print": "print('a' * 20_000_000)",
    "gather": "import asyncio\nawait asyncio.gather(*[wait(seconds=0.0) for _ in range(10000)])",
    "exception chain": (
        "e = None\nwhile True:\n    try:\n        raise ValueError(str(e) * 2) from e\n"
        "    except ValueError as error:\n        e = error"
    ),
    "types that explode": "x0 = (1, 2)\n" + "\n".join(f"x{n + 1} = (x{n}, x{n})" for n in range(28)) + "\nx28",
    "hash collisions": "x = {}\nfor i in range(10 ** 7):\n    x[i * (2 ** 61 - 1)] = i",
    "eval": "eval('+'.join(['1'] * 10 ** 6))",
    "exec": "exec('x = 1\\n' * 10 ** 6)",
}

SECRET = "pegboard-secret-3f9c"
ESCAPES = [
    "open('{path}').read()",
    "import pathlib\npathlib.Path('{path}').read_text()",
    "import pathlib\npathlib.Path('{path}').write_text('x')",
    "import pathlib\nlist(pathlib.Path('{folder}').iterdir())",
    "import os\nos.listdir('{folder}')",
    "import os\nos.remove('{path}')",
    "import os\nos.system('cat {path}')",
    "import os\nos.environ['PEGBOARD_TEST_SECRET']",
    "import os\nos.getenv('PEGBOARD_TEST_SECRET')",
    "import os\nos.fork()",
    "import sys\nsys.modules['os'].system('cat {path}')",
    "import subprocess\nsubprocess.run(['cat', '{path}'])",
    "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "import urllib.request\nurllib.request.urlopen('file://{path}').read()",
    "import ctypes\nctypes.string_at(0)",
    "import importlib\nimportlib.import_module('os')",
    "import builtins\nbuiltins.open('{path}')",
    "import pickle\npickle.loads(b'cos\\nsystem\\n(Vcat {path}\\ntR.')",
    "import inspect\ninspect.currentframe()",
    "import gc\ngc.get_objects()",
    "import threading\nthreading.Thread(target=print).start()",
    "import asyncio\nasyncio.create_subprocess_shell('cat {path}')",
    "__import__('os').system('cat {path}')",
    "().__class__.__bases__[0].__subclasses__()",
    "().__class__.__mro__[1].__subclasses__()",
    "(lambda: 0).__globals__",
    "(lambda: 0).__code__",
    "(lambda: 0).__closure__",
    "get_weather.__globals__",
    "get_weather.__self__.calls",
    "get_weather.__func__",
    "show.__globals__['__builtins__']",
    "getattr((), '__cl' + 'ass__')",
    "getattr(get_weather, '__glo' + 'bals__')",
    "'{{0.__class__.__init__.__globals__}}'.format(get_weather)",
    "f'{{get_weather.__class__.__mro__}}'",
    "type('X', (object,), {{}})",
    "type(get_weather)()",
    "class A:\n    __slots__ = ()\nA.__subclasses__()",
    "try:\n    1 / 0\nexcept Exception as e:\n    x = e.__traceback__.tb_frame.f_back\nx",
    "try:\n    await get_weather(city='Atlantis')\nexcept Exception as e:\n    x = e.__cause__.__traceback__\nx",
    "globals()['__builtins__']",
    "locals()['__builtins__']",
    "vars()",
    "__builtins__",
    "__loader__",
    "__spec__",
    'eval(\'__import__("os").system("cat {path}")\')',
    "exec('import os\\nx = os.popen(\"cat {path}\").read()')\nx",
    "breakpoint()",
    "input()",
    "help()",
    "compile('1', 'a', 'eval')",
    "memoryview(b'a')",
    "import tomllib\ntomllib.load(open('{path}', 'rb'))",
    "import csv\nlist(csv.reader(open('{path}')))",
    "import random\nrandom.SystemRandom().random()",
]


def peak() -> int:
    """Megabytes that this process has ever taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def seconds(toolkit: Toolkit, name: str) -> float:
    """How long a bomb runs; it ends with a result of no great size."""
    began = time.monotonic()
    result = ran(toolkit, BOMBS[name])
    took = time.monotonic() - began
    assert result.status in (Status.SUCCESS, Status.ERROR, Status.INVALID, Status.TIMEOUT), name
    assert len(result.text) < 10_000_000, name
    return took


@pytest.mark.slow
@pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])
def test_bombs_end_in_time_and_cost_the_host_little(check: bool) -> None:
    tools = Tools()
    with coded(tools, timeout=SECONDS, check=check) as toolkit:
        ran(toolkit, "1")
        before = peak()
        late = {name: took for name in BOMBS if (took := seconds(toolkit, name)) > SECONDS + 1}
        # The processors of a machine that does other things too may be away for seconds: then it is late once.
        late = {name: took for name in late if (took := seconds(toolkit, name)) > SECONDS + 1}
        assert late == {}
        assert peak() - before < MEGABYTES
        assert ran(toolkit, "1 + 1").data == 2
    assert len(BOMBS) >= 50


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(True, marks=pytest.mark.slow, id="checked"),
        pytest.param(False, id="unchecked"),
    ],  # none to hinder it
)
def test_nothing_is_reached(check: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.txt"
    path.write_text(f"key = '{SECRET}'\n")
    monkeypatch.setenv("PEGBOARD_TEST_SECRET", SECRET)
    with coded(check=check) as toolkit:
        for code in ESCAPES:
            result = ran(toolkit, code.format(path=path, folder=tmp_path))
            assert SECRET not in result.text, code
            assert SECRET not in str(result.data), code
            assert "secret.txt" not in str(result.data), code
            assert not str(result.data).startswith("<frame"), code
    assert path.read_text() == f"key = '{SECRET}'\n"
    assert [each.name for each in tmp_path.iterdir()] == ["secret.txt"]
    assert len(ESCAPES) >= 50


def test_a_worker_that_dies_costs_its_program_alone() -> None:
    from pegboard_code._workers import workers

    def kill() -> str:
        for worker in list(workers._busy):
            worker.kill()
        return "killed"

    with coded() as toolkit:
        toolkit.register(kill)
        result = ran(toolkit, "await kill()\n1")
        assert result.status is Status.ERROR
        assert "the sandbox ended before the program did" in result.text
        assert ran(toolkit, "2").data == 2
