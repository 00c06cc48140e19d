"""The tools for documents."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Annotated, Any, Final

from pegboard import ImageBlock, NotOffered, Offer, Param, SettingsError, TextBlock, ToolError, tool
from pegboard_documents._reading import PAGED, NoTextError, ask, kind_of, read_document
from pegboard_documents._records import (
    MOST_ROWS,
    DocumentInfo,
    DocumentTable,
    DocumentText,
    as_written,
    tables_written,
    text_written,
)
from pegboard_files import ConfinedFolder, FileToolError

__all__ = ["DocumentTools", "offers"]

MAX_BYTES: Final = 50_000_000
MOST_KEPT: Final = 20_000_000
"""Characters of texts that are kept for the calls that go on with them."""
_EXTRAS: Final = {
    "pictures": ("document_images", ("pypdfium2", "PIL")),
    "slides": ("document_read of slides", ("pptx",)),
    "tables": ("document_tables of PDF", ("pdfplumber",)),
}


class DocumentTools:
    """Tools that read documents below a directory: `toolkit.register(DocumentTools("reports"))`.

    Raises OSError if the directory cannot be opened.

    Args:
        base_dir: Directory that no path leaves. None: the current one.
    """

    def __init__(self, base_dir: str | None = None) -> None:
        self._folder = ConfinedFolder(base_dir or ".", max_bytes=MAX_BYTES, read_only=True)
        self._texts = _Texts()

    @tool(read_only=True, idempotent=True, open_world=False)
    @as_written(text_written)
    def document_read(
        self,
        path: str,
        pages: str | None = None,
        start: Annotated[int, Param(ge=0)] = 0,
        max_chars: Annotated[int, Param(ge=1, le=200_000)] = 20_000,
    ) -> DocumentText:
        """Read a document as text: pdf, docx, xlsx, pptx, html, epub, csv, txt, md. A long one comes in parts.

        Args:
            path: Path below the base directory
            pages: Pages of a PDF or slides, such as "3", "2-4" or "1,5-"
            start: The character to begin at: next_start of the part before
            max_chars: Characters of this part at most
        """
        with _sentences(path):
            content = self._folder.read(path)
            try:
                text = self._texts.find(content, kind_of(path, content), pages or None)
            except NoTextError as error:
                hint = "; document_images shows them" if _has("pictures") else ""
                raise ToolError(f"{error}{hint}") from None
            return DocumentText.part(text, start, max_chars)

    @tool(read_only=True, idempotent=True, open_world=False)
    def document_info(self, path: str) -> DocumentInfo:
        """Tell what a document is: its kind, pages, sheets or slides, title and author.

        Args:
            path: Path below the base directory
        """
        with _sentences(path):
            content = self._folder.read(path)
            kind = kind_of(path, content)
            found: dict[str, Any] = {
                **dict.fromkeys(("pages", "sheets", "slides", "title", "author")),
                "encrypted": False,
            }
            if kind not in ("csv", "md", "txt"):
                found |= ask(kind, content, "info")
            return DocumentInfo(kind=kind, **found)

    @tool(read_only=True, idempotent=True, open_world=False)
    @as_written(tables_written)
    def document_tables(
        self,
        path: str,
        page: Annotated[int, Param(ge=1)] | None = None,
        sheet: str | None = None,
        max_rows: Annotated[int, Param(ge=1, le=MOST_ROWS)] = 200,
    ) -> list[DocumentTable]:
        """Read the tables of a document: of a PDF with ruled lines, of sheets, Word, slides, HTML or CSV.

        Args:
            path: Path below the base directory
            page: One page of a PDF, or one slide
            sheet: One sheet of a workbook
            max_rows: Rows of each table at most
        """
        with _sentences(path):
            content = self._folder.read(path)
            kind = kind_of(path, content)
            _check_place(kind, page, sheet or None)
            found = ask(kind, content, "tables", page=page, sheet=sheet or None, max_rows=max_rows)["tables"]
            return [DocumentTable(**each, truncated=len(each["rows"]) < each["total_rows"]) for each in found]

    @tool(read_only=True, idempotent=True, open_world=False)
    def document_images(self, path: str, pages: str) -> list[TextBlock | ImageBlock]:
        """Show pages of a PDF as pictures, at most 10 at once.

        Args:
            path: Path below the base directory
            pages: Such as "3", "2-4" or "1,5-"
        """
        with _sentences(path):
            content = self._folder.read(path)
            if (kind := kind_of(path, content)) != "pdf":
                raise ToolError(
                    f"pictures are made of the pages of PDF alone, and it is {kind}; document_read has its text"
                )
            found = ask(kind, content, "images", pages=pages)["pictures"]
        blocks: list[TextBlock | ImageBlock] = []
        for each in found:
            blocks += [TextBlock(f"Page {each['page']}"), ImageBlock.from_bytes(each["content"], each["media_type"])]
        return blocks


class _Texts:
    """The texts of documents that were read last, by their content: a long one is parsed once for all its parts."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[bytes, str, str | None], str] = OrderedDict()

    def find(self, content: bytes, kind: str, pages: str | None) -> str:
        """The text of a document, or of its pages. Raises `ToolError`."""
        import hashlib

        key = hashlib.sha256(content).digest(), kind, pages
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        text = read_document(content, kind, pages).text
        with self._lock:
            self._kept[key] = text
            while sum(map(len, self._kept.values())) > MOST_KEPT:
                self._kept.popitem(last=False)
        return text


@contextmanager
def _sentences(path: str) -> Iterator[None]:
    """Let what is wrong with a document be a sentence that names it."""
    try:
        yield
    except FileToolError:
        raise
    except ToolError as error:
        named = path if path.isprintable() and len(path) <= 200 else repr(path[:200])
        raise ToolError(f"Cannot read {named}: {str(error).rstrip('.')}.") from error


def _check_place(kind: str, page: int | None, sheet: str | None) -> None:
    """Raises `ToolError` for a page or a sheet of a document that has none."""
    if kind in ("txt", "md"):
        raise ToolError(f"tables of a {kind} document are not read as rows; document_read has its text")
    if page is not None and kind not in PAGED:
        raise ToolError(f"a document of the kind {kind} has no pages: leave page out")
    if sheet is not None and kind != "xlsx":
        raise ToolError(f"a document of the kind {kind} has no sheets: leave sheet out")


@cache  # to look for modules that are not there takes longer than to make the tools
def _has(extra: str) -> bool:
    return all(find_spec(module) is not None for module in _EXTRAS[extra][1])


def offers(base_dir: str | None) -> Iterator[Any]:
    """The tools that work here, and what to install for the rest. Raises `SettingsError`."""
    try:
        tools = DocumentTools(base_dir)
    except OSError as error:
        raise SettingsError(f"documents.base_dir cannot be opened: {error.strerror}: {base_dir}") from error
    yield tools if _has("pictures") else Offer(tools, disable=["document_images"])
    for extra, (what, modules) in _EXTRAS.items():
        if not _has(extra):
            yield NotOffered(what, f"needs {' and '.join(modules)}", f'pip install "pegboard-documents[{extra}]"')
