"""What another backend needs that takes calls out of the program: the same answers, read with the same care.

In the worker `performed` runs a function, and tells what it comes to as data; in the program `unpack` makes that the
outcome of the job, and `pass_on` a chunk. `JobFuture` is what a job comes to. Values go by `encoded` and `opened`,
traces by `carried` and `within`. `Surroundings` are what a call leaves as it has found it.
"""

from pegboard_process._answer import Answers, performed
from pegboard_process._carrier import carried, within
from pegboard_process._data import NotDataError, decoded, encoded
from pegboard_process._errors import RemoteError, UnexpectedAnswerError
from pegboard_process._future import JobFuture
from pegboard_process._pipe import BEGUN, CHUNK, ITEM, LOST, RAISED, RETURNED, STUCK
from pegboard_process._traces import Surroundings
from pegboard_process._transfer import installed_packs, named, opened, pass_on, unpack

__all__ = [
    "BEGUN",
    "CHUNK",
    "ITEM",
    "LOST",
    "RAISED",
    "RETURNED",
    "STUCK",
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
    "unpack",
    "within",
]
