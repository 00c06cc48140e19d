"""On which floor each module of the core stands. An import may go down or stay on its floor, never up."""

from typing import Final

FLOORS: Final[dict[str, int]] = {
    # 1: ground stones: content blocks, errors, markers, JSON-Schema operations
    "pegboard._content": 1,
    "pegboard._effects": 1,
    "pegboard._errors": 1,
    "pegboard._jsonable": 1,
    "pegboard._markers": 1,
    # 2: the nouns: tools, calls, results, and every extension protocol
    "pegboard._approval": 2,
    "pegboard._call": 2,
    "pegboard._declare": 2,
    "pegboard._extension": 2,
    "pegboard._policy": 2,
    "pegboard._result": 2,
    "pegboard._shapes": 2,
    "pegboard._tool": 2,
    # 3: hookspecs, type table, docstrings
    "pegboard._docstrings": 3,
    "pegboard._hints": 3,
    "pegboard.hookspecs": 3,
    # 4: signature reading, injection, conversion, repair
    "pegboard._admission": 4,
    "pegboard._conversion": 4,
    "pegboard._explain": 4,
    "pegboard._injection": 4,
    "pegboard._invocation": 4,
    "pegboard._problems": 4,
    "pegboard._scope": 4,
    "pegboard._signature": 4,
    # 5: call plan
    "pegboard._plan": 5,
    # 6: discovery and plugin loading, built-in plugins
    "pegboard.builtin": 6,
    "pegboard.builtin.converters": 6,
    "pegboard.builtin.injectors": 6,
    # 7: registry, groups, execution, approval
    # 8: session, toolkit
    # 9: the face, testing, __main__
    "pegboard": 9,
}
