"""What cannot be stored is refused at once: what it is, where it is, what to do."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage
from tests.ids import steady
from tests.parts.errors import raises
from tests.serialization.samples import Note, Order, Pair


class Shout(str):
    pass


class Numbers(list[int]):
    pass


class Plain:
    pass


@dataclass
class Memo:
    text: str
    size: int = field(init=False, default=0)

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()


def local_pair() -> Any:
    made: Any = namedtuple("made", "a")
    return made(1)


def local_class() -> Any:
    @dataclass
    class Local:
        a: int = 1

    return Local


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("value", "path", "cls"),
    [
        (LOCK, "", type(LOCK)),
        ({"conv": [1, 2, 3, Note(LOCK)]}, "['conv'][3].text", type(LOCK)),
        ({"a": {(1, 2): LOCK}}, "['a'][(1, 2)]", type(LOCK)),
        ([Pair(1, LOCK)], "[0][1]", type(LOCK)),
        ([deque([Plain()])], "[0][0]", Plain),
        ({"m": Order(item=Plain())}, "['m'].item", Plain),
        ([OrderedDict(a=Plain())], "[0]['a']", Plain),
        ({Shout("key"): 1}, " key 'key'", Shout),
        ([WorkflowMessage(Note(Plain()), "a")], "[0].data.text", Plain),
        ([WorkflowEvent.request_info("r", "e", 1, local_class())], "[0].response_type", local_class()),
        ([Numbers([1])], "[0]", Numbers),
        ([local_class()()], "[0]", local_class()),
        pytest.param([{Plain: 1}, {1, frozenset({Plain()})}], "[1] member", Plain, id="a member of a set"),
    ],
    ids=steady,
)
def test_the_error_names_the_part_its_class_and_its_path(value: Any, path: str, cls: type) -> None:
    with pytest.raises(UnstorableValueError) as caught:
        to_json(value)
    assert caught.value.path.startswith(path) if path else caught.value.path == ""
    assert caught.value.value_type.__qualname__ == cls.__qualname__
    assert caught.value.path in str(caught.value)
    assert isinstance(caught.value, WorkflowCheckpointException)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (LOCK, "on_checkpoint_restore"),
        (Shout("a"), "as a plain str"),
        (Numbers(), "as a plain list"),
        (Plain(), "register_state_type"),
        (local_class()(), "top level of a module"),
        (lambda: 1, "on_checkpoint_restore"),
        (ValueError("a"), "WorkflowErrorDetails.from_exception"),
        (local_pair(), "top level of a module"),
    ],
    ids=steady,
)
def test_the_error_says_what_to_do(value: Any, words: str) -> None:
    with pytest.raises(UnstorableValueError, match=words):
        to_json(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    for value in (loop, {"a": [loop]}, deep):
        with pytest.raises(UnstorableValueError):
            to_json(value)


def test_what_a_dataclass_holds_besides_its_fields_is_not_dropped_silently() -> None:
    memo = Memo("a b")
    memo.cursor = 3  # type: ignore[attr-defined]
    with raises(UnstorableValueError, "'cursor'"):
        to_json(memo)


def test_cached_properties_are_made_again_and_need_no_storing() -> None:
    memo = Memo("a b")
    assert memo.words == ["a", "b"]
    again = from_json(to_json(memo))
    assert "words" not in vars(again)
    assert again.words == ["a", "b"]


def test_parts_whose_own_code_fails_do_not_break_the_search() -> None:
    class Angry(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError

        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(UnstorableValueError) as caught:
        to_json([{(1, Shout("x")): 1}, Angry()])
    assert caught.value.value_type is Shout
    with pytest.raises(UnstorableValueError) as caught:
        to_json({"a": Angry()})
    assert caught.value.path == "['a']"
