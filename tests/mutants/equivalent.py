"""Mutants that behave as the original does, so that no test could tell them apart, each with the reason."""

from __future__ import annotations

SPEED = "the same answer by a slower way"
CALLED = "a nested type is called instead of inlined, or inlined instead of called"

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("_bounds", "_rebuilt", "title is None", "False"): "a title of None is left out",
    (
        "_compile",
        "emit",
        "writer.is_long and not isinstance(plan.shape, Scalar)",
        "(writer.is_long)",
    ): CALLED,
    ("_compile", "_assign", "target != source", "True"): "a local is assigned to itself",
    ("_compile", "_condition", "type(limit) in (int, float)", "False"): SPEED,
    ("_compile", "_emit_choice", "all(isinstance(value, str) for value, _ in shape.pairs)", "False"): SPEED,
    ("_compile", "_emit_items", "inline is not None", "False"): SPEED,
    ("_compile", "_emit_items", "shape.build is not list", "True"): "a list is copied",
    (
        "_compile",
        "_inline_scalar",
        "not isinstance(shape, Scalar) or shape.checks or shape.type not in _FALLBACKS",
        "True",
    ): SPEED,
    ("_compile", "_emit_fixed_items", "shape.build is tuple", "False"): SPEED,
    ("_compile", "_emit_mapped", "shape.key is not None", "True"): "text keys are as many as they were",
    (
        "_compile",
        "_arguments",
        "all(parameter.isidentifier() and not keyword.iskeyword(parameter) for parameter in parameters)",
        "False",
    ): SPEED,
    ("_compile", "_takes_in_order", "isinstance(build, type)", "True"): SPEED,
    ("_compile", "_emit_attempts", "len(plans) == 1", "False"): CALLED,
    (
        "_plan",
        "build",
        'f"if text is not None and keys != members and {exact}(text) != members:"',
        "f'if text is not None and {exact}(text) != members:'",
    ): SPEED,
    **{
        ("_plan", "_absent", "default is None or default is True or default is False", after): SPEED
        for after in (
            "False",
            "(default is True or default is False)",
            "(default is None or default is False)",
            "(default is None or default is True)",
        )
    },
}
"""By module, function, what was there and what is there now."""
