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
    """The section `files` of the settings; each key is also an argument of `FileTools`.

    A file is never partly written, whatever the durability.

    Args:
        base_dir: The directory. None: the one that is current when the toolkit is made.
        read_only: Whether the tools that write are left out. None: if there is no `base_dir`.
        deny: Globs of paths that no tool reads or writes, whatever the case of the letters. A list replaces the
            default.
        max_bytes: Most bytes of text that one call shows or writes; 10 MiB by default.
        max_depth: Most names that a path may have; 64 by default.
        hardlinks: Whether files with several names are allowed (`"allow"`) or refused (`"deny"`).
        durability: `"fsync"` waits until the content is on the disk; with `"rename"` a write survives the end of the
            process, but perhaps not a power failure.
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
