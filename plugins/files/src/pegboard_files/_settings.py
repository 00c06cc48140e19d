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
"""What no tool touches unless the settings say otherwise: history, secrets, keys and the board's own settings."""


def _positive(_: Any, attribute: Any, value: int) -> None:
    if value < 1:
        raise ValueError(f"{attribute.name} must be positive, not {value}")


def _readable(_: Any, __: Any, value: tuple[str, ...]) -> None:
    Denied(value)


@attrs.frozen(kw_only=True)
class Settings:
    """What can be set; each key is also an argument of `FileTools`.

    `base_dir` is the directory, None the current one of the moment of assembly. `read_only` keeps the tools that write
    off the board; None means: unless a `base_dir` is set. `deny` are globs of paths that no tool touches.
    `max_bytes` is the largest amount of text that one call shows or writes, `max_depth` the number of names that a
    path may have. `hardlinks` says whether files with several names are files like any other. `durability` says
    whether a write waits until the disk has it (`"fsync"`), or survives the end of the process but perhaps not that of
    the power (`"rename"`); whole it is in both cases.
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
        """Whether the tools that write stay off the board."""
        return self.base_dir is None if self.read_only is None else self.read_only
