"""Mutants that behave as the original does, so that no test could tell them apart, each with the reason."""

from __future__ import annotations

SPEED = "the same answer by a slower way"
CALLED = "a nested type is called instead of inlined, or inlined instead of called"
WRAPPERS = "only a TypedDict is both, and nothing else that is one of them gets a plan"

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "_types/codegen",
        "emit",
        "writer.is_long and not isinstance(plan.shape, shapes.Scalar)",
        "(writer.is_long)",
    ): CALLED,
    ("_types/codegen", "is_long", "self.depth > _MAX_BLOCKS", "(self.depth >= _MAX_BLOCKS)"): CALLED,
    ("_types/codegen", "is_long", "len(self._lines) > _MAX_LINES", "(len(self._lines) >= _MAX_LINES)"): CALLED,
    ("_types/codegen", "block", "len(self._lines) == before", "True"): "a `pass` more",
    ("_types/codegen", "_assign", "target != source", "True"): "a local is assigned to itself",
    ("_types/codegen", "_condition", "type(limit) in (int, float)", "False"): SPEED,
    ("_types/codegen", "_emit_choice", "all(isinstance(value, str) for value, _ in shape.pairs)", "False"): SPEED,
    ("_types/codegen", "_emit_items", "inline is not None", "False"): SPEED,
    ("_types/codegen", "_emit_items", "shape.build is not list", "True"): "a list is copied",
    (
        "_types/codegen",
        "_inline_scalar",
        "not isinstance(shape, shapes.Scalar) or shape.checks or shape.type not in _FALLBACKS",
        "True",
    ): SPEED,
    ("_types/codegen", "_emit_fixed_items", "shape.build is tuple", "False"): SPEED,
    ("_types/codegen", "_emit_mapped", "shape.key is not None", "True"): "text keys are as many as they were",
    (
        "_types/codegen",
        "_arguments",
        "all(parameter.isidentifier() and not keyword.iskeyword(parameter) for parameter in parameters)",
        "False",
    ): SPEED,
    ("_types/codegen", "_takes_in_order", "isinstance(build, type)", "True"): SPEED,
    ("_types/codegen", "_emit_attempts", "len(plans) == 1", "False"): CALLED,
    (
        "_tools/plan",
        "_write_accept",
        'f"if text is not None and keys != members and {exact}(text) != members:"',
        "f'if text is not None and {exact}(text) != members:'",
    ): SPEED,
    ("_tools/plan", "_refuse_surplus", "self.hidden", "True"): "nothing is in an empty set",
    (
        "_tools/plan",
        "_refuse_surplus",
        "extra.plan or _UNCHANGED",
        "(extra.plan)",
    ): "what a model sends has a plan",
    ("_tools/plan", "_passed", "spelled", "False"): SPEED,
    ("_tools/plan", "_value", "slot.name in self.view.presets", "True"): SPEED,
    ("_types/unions", "_tags", "isinstance(value, str)", "True"): "the next condition asks the same of all",
    ("_types/unions", "_unstructurer", "all(plan.unstructure is shapes.identity for plan in plans)", "False"): SPEED,
    **{
        (
            "_types/unions",
            "_instance_test",
            before,
            after,
        ): "a Literal writes values of its types as they are, fit or not"
        for before, after in (
            ("type(value) is type(choice) and value == choice", "(value == choice)"),
            ("type(value) is type(choice) and value == choice", "(type(value) is type(choice))"),
        )
    },
    **{
        ("_types/unions", "_instance_test", 'issubclass(cls, dict) and hasattr(cls, "__total__")', after): WRAPPERS
        for after in ("(hasattr(cls, '__total__'))", "(issubclass(cls, dict))")
    },
    ("builtin/types", "_array_writer", "build is list and write is identity", "False"): SPEED,
    ("builtin/types", "_rank", "isinstance(value, str)", "False"): "another order, as fixed as this one",
    ("builtin/types", "_mapping_writer", "write is identity", "False"): SPEED,
    **{
        (
            "builtin/types",
            "__call__",
            "cls is not None and isinstance(annotation, type) and issubclass(annotation, cls)",
            after,
        ): "a predicate that raises does not match"
        for after in (
            "(isinstance(annotation, type) and issubclass(annotation, cls))",
            "(cls is not None and issubclass(annotation, cls))",
        )
    },
    ("builtin/readings", "_duration", "value < dt.timedelta(0)", "(value <= dt.timedelta(0))"): "zero is written alone",
    ("_types/json_kinds", "count_members", "type(member) not in _LEAVES", "True"): SPEED,
    ("_types/json_kinds", "count_members", "type(item) not in _LEAVES", "True"): SPEED,
}
"""By module, function, what was there and what is there now."""
