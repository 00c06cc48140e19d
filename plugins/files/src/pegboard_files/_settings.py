"""The section `files` of the settings."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from pegboard_files._directory.names import Denied

__all__ = ["DEFAULT_DENY", "DEFAULT_MAX_BYTES", "DEFAULT_MAX_DEPTH", "Settings"]

DEFAULT_MAX_BYTES = 10 * 1024 * 1024
DEFAULT_MAX_DEPTH = 64

DEFAULT_DENY = (
    ".git/**",
    ".env*",
    "*.key",
    "*.pem",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh/**",
    ".aws/**",
    ".gnupg/**",
    ".netrc",
    ".git-credentials",
    "pegboard.toml",
    "pegboard.lock",
)
"""Paths that no tool reads or writes by default: history, secrets, keys and Pegboard's own settings."""


def _positive(_: Any, attribute: Any, value: int) -> None:
    if value < 1:
        raise ValueError(f"{attribute.name} must be positive, not {value}")


def _readable(_: Any, __: Any, value: tuple[str, ...]) -> None:
    Denied(value)


@attrs.frozen(kw_only=True)
class Settings:
    """The settings of the pack; each key is also an argument of `FileTools`.

    `base_dir` is the directory; None is the current one when the toolkit is made. `read_only` leaves out the tools that
    write; None means: only if no `base_dir` is set. `deny` are globs of paths that no tool reads or writes.
    `max_bytes` is the largest amount of text that one call shows or writes, `max_depth` the number of names that a
    path may have. `hardlinks` is whether files with several names are allowed (`"allow"`) or refused (`"deny"`). With
    `durability="fsync"` a write waits until the content is on the disk; with `"rename"` it survives the end of the
    process, but perhaps not a power failure. A file is never partly written in either case.
    """

    base_dir: str | None = None
    read_only: bool | None = None
    deny: tuple[str, ...] = attrs.field(default=DEFAULT_DENY, validator=_readable)
    max_bytes: int = attrs.field(default=DEFAULT_MAX_BYTES, validator=_positive)
    max_depth: int = attrs.field(default=DEFAULT_MAX_DEPTH, validator=_positive)
    hardlinks: Literal["allow", "deny"] = attrs.field(
        default="allow", validator=attrs.validators.in_(("allow", "deny"))
    )
    durability: Literal["fsync", "rename"] = attrs.field(
        default="fsync", validator=attrs.validators.in_(("fsync", "rename"))
    )

    @property
    def only_reads(self) -> bool:
        """Whether the tools that write are left out."""
        return self.base_dir is None if self.read_only is None else self.read_only
