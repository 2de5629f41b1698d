"""The inputs of a batch: read lazily, each with its key."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral
from typing import Any

from agentbench._display import shorten
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import BatchInputError, UnstorableValueError
from agentbench.serialization.json_text import to_json

Keys = Callable[[Any], Any] | Iterable[Any] | str
_NO_KEY: Any = object()


@dataclass(frozen=True)
class Start:
    """An input that begins at a checkpoint instead of at the beginning, or that is run by a workflow of its own.

    The run of its row begins at an edited copy, in a chain of its own; path, tokens and costs are those of this run.

    Attributes:
        checkpoint: The checkpoint, as loaded from a storage. None begins with `input`.
        changes: Replaces values before the run begins: `{"state": {...}, "messages": {...}}`, with new values of keys
            of the state, and lists of messages by source as in `WorkflowRun.fork`.
        workflow: Runs this row instead of the workflow of the batch, whose graph it shares; only in this process, so
            without `into=` and `backend=`, and with `keys=`.
        answers: Answers to requests that are open in the checkpoint, by request id.
        input: The input of the workflow, if there is no checkpoint.

    Raises:
        TypeError: `checkpoint` is something else, such as an id.
        ValueError: `changes` has other entries, or there are changes or answers without a checkpoint.

    Example:
        checkpoint = await storage.load(info.checkpoint_id)
        batch = run_many(workflow, [Start(checkpoint, {"state": {"tone": tone}}) for tone in ("short", "long")])
    """

    checkpoint: Any
    changes: Mapping[str, Any] = field(default_factory=dict)
    workflow: Any = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    input: Any = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.checkpoint is None and self.input is not None:
            if self.changes or self.answers:
                msg = "A Start without a checkpoint has changes or answers; expected only input= and workflow=."
                raise ValueError(msg)
        elif not isinstance(self.checkpoint, WorkflowCheckpoint):
            msg = f"checkpoint is {shorten(self.checkpoint)}; expected one that `await storage.load(id)` has returned."
            raise TypeError(msg)
        if unknown := [name for name in self.changes if name not in ("state", "messages")]:
            msg = f"changes has the entry {unknown[0]!r}; expected 'state' or 'messages'."
            raise ValueError(msg)

    def __deepcopy__(self, memo: dict[int, Any]) -> Start:
        # The checkpoint is copied when its run begins, and the workflow has a state for each run.
        edited = copy.deepcopy((self.changes, self.answers, self.input), memo)
        return Start(self.checkpoint, edited[0], self.workflow, edited[1], edited[2])


class InputReader:
    """Reads inputs in groups and names them.

    Attributes:
        total: The number of inputs, if it is known: that of a list, or once all were read.
        duplicates: The number of inputs so far whose key occurred before.
    """

    def __init__(self, inputs: Any, keys: Keys | None) -> None:
        if isinstance(keys, str) and _is_frame(inputs) and keys in inputs.columns:
            keys = inputs[keys].tolist()
        if isinstance(keys, (str, bytes, Mapping)):
            msg = f"keys is {shorten(keys)}; expected a function of an input, or one text or number per input."
            raise TypeError(msg)
        self.total = len(inputs) if hasattr(inputs, "__len__") else None
        self.duplicates = 0
        self.is_exhausted = False
        self._read = 0
        self._error: BatchInputError | None = None
        self._inputs = _iterate(inputs)
        self._key_of = keys if callable(keys) else None
        self._keys = None if keys is None or callable(keys) else iter(keys)
        self._seen: set[str] = set()
        self._repeated: dict[str, int] = {}  # few, so that 100,000 inputs need little memory
        given: object = keys
        count = len(given) if isinstance(given, Sized) else None
        if count is not None and self.total not in (None, count):
            raise _wrong_count(count, self.total)

    def take(self, count: int) -> list[tuple[str, int, Any]]:
        """Return up to `count` further inputs: key, number of earlier occurrences of the key, value.

        Raises:
            BatchInputError: An input has no usable key. The inputs before it were returned by earlier calls.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        taken: list[tuple[str, int, Any]] = []
        for value in islice(self._inputs, count):
            try:
                key = self._key(value)
            except BatchInputError as error:
                if not taken:
                    raise
                self._error = error
                return taken
            nth = 0
            if key in self._seen:
                nth = self._repeated[key] = self._repeated.get(key, 0) + 1
                self.duplicates += 1
            self._seen.add(key)
            self._read += 1
            taken.append((key, nth, value))
        if len(taken) < count or self._read == self.total:
            self.is_exhausted, self.total = True, self._read
        return taken

    def explain(self, inputs: Sequence[tuple[str, int, Any]]) -> BatchInputError | None:
        """Return the error for the first of the inputs taken last that has no stored form, if there is one."""
        for position, (key, _, value) in enumerate(inputs, self._read - len(inputs)):
            if isinstance(value, Start) and value.workflow is not None:
                msg = (
                    f"The input {key!r} is a Start(workflow=...), which exists only in this process. Leave out into= "
                    "and backend=."
                )
                return BatchInputError(msg, position=position, key=key)
            try:
                to_json(value)
            except UnstorableValueError as error:
                return BatchInputError(_unstorable(position, error), error, position=position, key=key)
        return None

    @property
    def distinct(self) -> int | None:
        """The number of different inputs, as far as it is known; an estimate until all were read."""
        return None if self.total is None else self.total - self.duplicates

    def _key(self, value: Any) -> str:
        position = self._read
        if self._keys is not None:
            key = next(self._keys, _NO_KEY)
            if key is _NO_KEY:
                raise _wrong_count(position, "more")
        elif self._key_of is not None:
            try:
                key = self._key_of(value)
            except Exception as error:
                msg = f"The function keys= raised {type(error).__name__} for the input at position {position}: {error}."
                raise BatchInputError(msg, error, position=position) from error
        else:
            return _digest(value, position)
        if isinstance(key, bool) or not isinstance(key, (str, Integral)) or key == "":
            msg = f"The key of the input at position {position} is {key!r}; expected a text or a whole number."
            raise BatchInputError(msg, position=position)
        return str(key)


def _digest(value: Any, position: int) -> str:
    if isinstance(value, Start):
        if value.workflow is not None:
            msg = f"The input at position {position} is a Start(workflow=...), which has no hash. Pass keys=."
            raise BatchInputError(msg, position=position)
        begin = value.input if value.checkpoint is None else value.checkpoint.checkpoint_id
        further = {"answers": dict(value.answers)} if value.answers else {}  # so that older keys stay valid
        value = {"checkpoint": begin, "changes": dict(value.changes), **further}
    try:
        text = to_json(value)
    except UnstorableValueError as error:
        msg = f"{_unstorable(position, error)} Without into=, it is enough to pass keys=, which names the inputs."
        raise BatchInputError(msg, error, position=position) from error
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _unstorable(position: int, error: UnstorableValueError) -> str:
    cls = error.value_type
    return (
        f"The input at position {position} cannot be stored, because it is or contains a {cls.__module__}."
        f"{cls.__qualname__}. Pass plain data, a dataclass or a pydantic model, or "
        f"register_state_type({cls.__name__}, ...)."
    )


def _wrong_count(keys: int, inputs: int | str) -> BatchInputError:
    msg = (
        f"keys= has {keys} keys, but there are {inputs} inputs. Pass one key for each input, or a function of an input."
    )
    return BatchInputError(msg, position=keys if isinstance(inputs, str) else min(keys, inputs))


def _is_frame(inputs: Any) -> bool:
    return hasattr(inputs, "itertuples") and hasattr(inputs, "columns")


def _iterate(inputs: Any) -> Iterator[Any]:
    if _is_frame(inputs):
        names = [str(name) for name in inputs.columns]
        return (dict(zip(names, row, strict=True)) for row in inputs.itertuples(index=False, name=None))
    if isinstance(inputs, (str, bytes, Mapping)) or not isinstance(inputs, Iterable):
        text = shorten(inputs)
        msg = f"inputs is {text}; expected a list of inputs, such as [{text}], or any other iterable."
        raise TypeError(msg)
    if inspect.isgenerator(inputs) and inspect.getgeneratorstate(inputs) == inspect.GEN_CLOSED:
        msg = (
            f"The generator {inputs.__name__!r} was read to its end before, so it has no inputs left. Pass a new one, "
            "or a list."
        )
        raise ValueError(msg)
    return iter(inputs)
