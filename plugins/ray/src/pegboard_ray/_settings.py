"""What a program can say of the cluster."""

from typing import Any, Final

import attrs

__all__ = ["REMEDY_FOR_SECRETS", "Settings"]

REMEDY_FOR_SECRETS: Final = (
    "say secrets = true in the settings of ray, read it from the worker's environment, or let the tool run here, with "
    'backend="thread"'
)
"""What to do where a secret would have to leave the program."""


@attrs.frozen
class Settings:
    """The section `ray` of the settings."""

    address: str | None = None
    """Of a cluster, as `ray.init` takes it; None for a Ray on this machine, which ends with the last toolkit."""
    runtime_env: dict[str, Any] = attrs.field(factory=dict)
    """What workers need beyond what is installed there, as Ray has it: `pip`, `working_dir`, `env_vars`."""
    tools: list[str] = attrs.field(factory=list)
    """`"module:attribute"`: where workers find what is in no pack. The attribute is whatever `register` takes."""
    secrets: bool = False
    """Whether `Secret` presets may leave the program."""
    in_flight: int = attrs.field(default=256, validator=attrs.validators.ge(1))
    """Calls that Ray has at once; further ones wait in the program."""
    patience: float = attrs.field(default=20.0, validator=attrs.validators.ge(0))
    """Seconds that a cluster has for getting the resources that no node has; a Ray on this machine has none."""
    grace: float = attrs.field(default=0.5, validator=attrs.validators.ge(0))
    """Seconds in which a tool that takes its token, or yields, may end by itself. Then it is killed."""
    options: dict[str, Any] = attrs.field(factory=dict)
    """More for `ray.init`, such as `num_cpus` and `object_store_memory` of a Ray on this machine."""
