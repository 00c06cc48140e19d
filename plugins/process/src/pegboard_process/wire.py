"""What another backend needs that takes calls out of the program: the same answers, read with the same care.

In the worker `performed` runs a function, and gives its outcome as data; `reported` is what it emits, and
`reason_of` an exception in a line. In the program `unpack` makes the outcome of the job of that, and `pass_on` passes
a chunk on. `JobFuture` is the outcome of a job. Values go by `encoded` and `opened`, traces by `carried` and `within`.
`Surroundings` are what a call leaves as it has found it.
"""

from pegboard_process._answer import Answers, performed, reason_of, reported
from pegboard_process._carrier import carried, within
from pegboard_process._data import NotDataError, decoded, encoded
from pegboard_process._errors import RemoteError, UnexpectedAnswerError
from pegboard_process._future import JobFuture
from pegboard_process._pipe import BEGUN, CHUNK, ITEM, RAISED, RETURNED, STUCK, UNREADABLE
from pegboard_process._traces import Surroundings
from pegboard_process._transfer import installed_packs, named, opened, pass_on, unpack

__all__ = [
    "BEGUN",
    "CHUNK",
    "ITEM",
    "RAISED",
    "RETURNED",
    "STUCK",
    "UNREADABLE",
    "Answers",
    "JobFuture",
    "NotDataError",
    "RemoteError",
    "Surroundings",
    "UnexpectedAnswerError",
    "carried",
    "decoded",
    "encoded",
    "installed_packs",
    "named",
    "opened",
    "pass_on",
    "performed",
    "reason_of",
    "reported",
    "unpack",
    "within",
]
