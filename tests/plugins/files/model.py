"""What the tools must do to the bytes of a file, as simply as it can be said: with a list of lines."""

import codecs

BOM = codecs.BOM_UTF8
Lines = list[bytes]


class RefusedError(Exception):
    """The tool must refuse, and change nothing."""


def split(content: bytes) -> Lines:
    """Lines with their ends; only a line feed ends one."""
    lines = [part + b"\n" for part in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def ending(line: bytes) -> bytes:
    """What ends a line: nothing, LF or CRLF."""
    return b"\r\n" if line.endswith(b"\r\n") else b"\n" if line.endswith(b"\n") else b""


def place(number: int, total: int) -> int:
    """A line's index; negative numbers count from the end."""
    index = number - 1 if number > 0 else total + number
    if not 0 <= index < total:
        raise RefusedError
    return index


def new_lines(content: bytes, end: bytes) -> bytes:
    """New text with the line ends of the file, without that of the last line."""
    return content.replace(b"\r\n", b"\n").removesuffix(b"\n").replace(b"\n", end)


def replaced_lines(content: bytes, first: int, last: int, new: bytes) -> bytes:
    lines = split(content)
    start, stop = place(first, len(lines)), place(last, len(lines))
    if start > stop:
        raise RefusedError
    mark = BOM if start == 0 and content.startswith(BOM) else b""
    end = ending(lines[start]) or (ending(lines[start - 1]) if start else b"") or b"\n"
    middle = new_lines(new, end) + ending(lines[stop]) if new else b""
    return b"".join([*lines[:start], mark, middle, *lines[stop + 1 :]])


def inserted(content: bytes, number: int, new: bytes) -> bytes:
    lines = split(content)
    if not 1 <= number <= len(lines) + 1:
        raise RefusedError
    if not lines:
        return new
    if number <= len(lines):
        at = number - 1
        mark = BOM if at == 0 and content.startswith(BOM) else b""
        end = ending(lines[at]) or (ending(lines[at - 1]) if at else b"") or b"\n"
        moved = [lines[at].removeprefix(mark), *lines[number:]]
        return b"".join([*lines[:at], mark, new_lines(new, end), end, *moved])
    end = ending(lines[-1])
    if end:
        return content + new_lines(new, end) + end
    end = (ending(lines[-2]) if len(lines) > 1 else b"") or b"\n"
    return content + end + new_lines(new, end)


def edited(content: bytes, old: bytes, new: bytes, count: int) -> bytes:
    plain = old.replace(b"\r\n", b"\n")
    for spelled in (old, plain.replace(b"\n", b"\r\n"), plain):
        if spelled in content:
            break
    else:
        raise RefusedError
    if content.count(spelled) != count:
        raise RefusedError
    lines = split(content)
    at = content[: content.index(spelled)].count(b"\n")
    end = ending(lines[at]) or (ending(lines[at - 1]) if at else b"")
    if end:
        new = new.replace(b"\r\n", b"\n").replace(b"\n", end)
    return content.replace(spelled, new)


def viewed(content: bytes, first: int, last: int) -> list[str]:
    """The numbered lines that the model sees, without the header."""
    lines = split(content)
    if not lines:
        return []
    total = len(lines)
    start, stop = (number if number > 0 else total + 1 + number for number in (first, last))
    start, stop = max(start, 1), min(stop, total)
    if start > stop:
        raise RefusedError
    shown = []
    for number in range(start, stop + 1):
        line = lines[number - 1].removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            line = line.removeprefix(BOM)
        text = line.decode(errors="surrogateescape")
        text = "".join(f"<{ord(c) - 0xDC00:02X}>" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)
        shown.append(f"{number}: {text}")
    return shown
