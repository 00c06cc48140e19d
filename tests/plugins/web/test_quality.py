"""What is counted as kept, over pages whose code and headings are known."""

from pathlib import Path

import pytest

from pegboard_web import _html
from tests.plugins.web.quality import Kept, kept_below, kept_of, main

GUIDE = """\
<nav><h3>Menu</h3></nav><main><h1>Guide <a class="headerlink" href="#guide">¶</a></h1><p>First, run it.</p>
<blockquote><pre><code>&gt;&gt;&gt; run(1 &lt; 2)


True</code></pre></blockquote><ul><li>Then<h2>stop <a href="#x">it_now</a></h2>
<pre>if <a href="b.html#grammar">done</a>:
    stop()</pre></li></ul></main>"""
TABLE = "<h1>Functions</h1><table><tr><td>f</td><td><pre>one\ntwo</pre></td></tr></table><pre> </pre>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "guide.html").write_text(GUIDE, encoding="utf-8")
    (tmp_path / "table.html").write_text(TABLE, encoding="utf-8")
    (tmp_path / "large.html").write_text("<pre>code</pre>" + "<" * (_html.MOST_MARKS + 1), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("<h1>No page</h1>", encoding="utf-8")
    return tmp_path


def test_counts_what_is_kept_of_all_pages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kept_of(GUIDE.encode()) == Kept(1, 0, 2, 2, 2, 2)
    assert kept_below(folder) == Kept(3, 1, 2, 3, 3, 3)  # a cell of a table has no code block
    assert main([str(folder)]) == 0
    assert capsys.readouterr().out == ("3 pages, 1 refused: 2 of 3 code blocks (66.7%), 3 of 3 headings (100.0%)\n")


def test_what_is_lost_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = "# Guide\n\n```\n>>> run(1 < 2)\n\nTrue\n```\n\n## stop\n\nif done:\n    stop()\n"
    monkeypatch.setattr(_html, "read", lambda given: {"title": "", "text": converted})
    assert kept_of(GUIDE.encode()) == Kept(1, 0, 0, 2, 1, 2)


def test_a_folder_without_pages(tmp_path: Path) -> None:
    assert str(kept_below(tmp_path)) == "0 pages, 0 refused: 0 of 0 code blocks (0.0%), 0 of 0 headings (0.0%)"
