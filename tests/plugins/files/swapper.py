"""Swaps two names as fast as it can, in one call of the kernel (`renameat2` with RENAME_EXCHANGE), until it is killed.

Run as `python swapper.py PLACE LINK TARGET`: LINK is made to lead to TARGET, again whenever it was removed.
"""

import contextlib
import ctypes
import os
import sys
from pathlib import Path

RENAME_EXCHANGE = 2
AT_FDCWD = -100


def main(place: str, link: str, target: str) -> None:
    """Swap, and see to it that one of the two is a link."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    names = os.fsencode(place), os.fsencode(link)
    print("ready", flush=True)
    while True:
        for _ in range(21):  # an odd number, or one of the two states would last longer
            exchange(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
        with contextlib.suppress(OSError):
            if not Path(place).is_symlink() and not Path(link).is_symlink():
                # A writer has put its file in the place of the link.
                Path(link).unlink()
                Path(link).symlink_to(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
