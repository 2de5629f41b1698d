"""The format with pickles: it reads what agent-framework wrote, and nothing in it runs."""

from __future__ import annotations

import builtins
import copyreg
import datetime
import json
import os
import pickle
import pickletools
import subprocess
import sys
import types
from base64 import b64decode, b64encode
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.pickled import (
    NameFinder,
    decode_checkpoint_value,
    decode_found,
    encode_checkpoint_value,
    encode_readable,
)
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource, WorkflowRunState
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from tests.ids import steady
from tests.parts.errors import raises
from tests.serialization.samples import Color, Note, Order, Point, Word

THEIRS = Path(__file__).resolve().parents[1] / "checkpoints" / "data" / "agent_framework.json"
HERE = "tests.serialization.samples"


def payload(data: bytes, label: str = "builtins:int") -> dict[str, str]:
    return {"__pickled__": b64encode(data).decode(), "__type__": label}


def through_json(value: Any, **options: Any) -> Any:
    return decode_checkpoint_value(json.loads(json.dumps(encode_checkpoint_value(value))), **options)


# ------------------------------------------------------------------------------------------------- what they wrote


@pytest.fixture
def order_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("orders")
    monkeypatch.setitem(sys.modules, "orders", module)
    code = "from dataclasses import dataclass\n@dataclass\nclass Order:\n    item: str\n    amount: int = 1\n"
    exec(code, vars(module))
    return module.Order


@pytest.mark.parametrize("allowed", [{"orders:Order"}, {"*"}], ids=str)
def test_a_checkpoint_of_agent_framework_becomes_one_of_ours(order_class: Any, allowed: set[str]) -> None:
    stored = json.loads(THEIRS.read_text())
    checkpoint = WorkflowCheckpoint.from_dict(decode_checkpoint_value(stored, allowed_types=allowed))

    first, second = checkpoint.messages["e1"]
    assert first == WorkflowMessage("hello", "e1")
    assert type(second) is WorkflowMessage
    assert second.data == order_class("tea", 2)
    assert second.target_id == "e2"
    assert second.type is MessageType.STANDARD
    for event in (checkpoint.pending_request_info_events["r1"], second.original_request_info_event):
        assert type(event) is WorkflowEvent
        assert event.to_dict() == WorkflowEvent.request_info("r1", "e1", "Ship it?", bool).to_dict()
        assert event.origin is WorkflowEventSource.EXECUTOR
    assert checkpoint.state == {
        "pair": (1, 2),
        "at": datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC),
        "tags": {"a"},
        "raw": b"x\x00",
        "number": {"1": "one"},
        "nested": [{"t": (1, (2,))}],
        "id": UUID(int=7),
        "price": Decimal("1.50"),
        "counts": {"a": 1},
        "groups": {"a": [1]},
        "queue": deque([1], 3),
        "z": 1 + 2j,
        "r": range(3),
        "sl": slice(1, 2),
        "fz": frozenset({1}),
        "state": "IDLE",
    }
    assert checkpoint.iteration_count == 3


def test_a_class_that_is_not_allowed_is_named_with_what_to_do() -> None:
    stored = json.loads(THEIRS.read_text())
    with raises(WorkflowCheckpointException, "'orders:Order'"):
        decode_checkpoint_value(stored)


# ---------------------------------------------------------------------------------------------------- what we write


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2.5, True, "a", {"b": [None]}],
        (1, [2]),
        {1, 2},
        b"x",
        bytearray(b"y"),
        1j,
        range(2),
        slice(1),
        datetime.datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime.timedelta(1),
        UUID(int=1),
        Decimal("1.0"),
        OrderedDict(a=1),
        defaultdict(list, a=[1]),
        deque([1], 2),
        Counter("aab"),
        WorkflowRunState.IDLE,
        WorkflowMessage({"a": (1,)}, "e", type=MessageType.RESPONSE),
        {"__pickled__": "gAQu", "__type__": "builtins:int"},
        [{"__pickled__": 1, "__type__": 2, "more": (3,)}],
    ],
    ids=steady,
)
def test_values_of_python_and_of_the_library_need_no_permission(value: Any) -> None:
    again = through_json(value)
    assert type(again) is type(value)
    assert again == value


def test_classes_of_users_come_back_when_they_are_allowed() -> None:
    value = {"note": Note(Point(1)), "word": Word.YES, "color": Color.RED, "order": Order(item=1)}
    allowed = {f"{HERE}:{name}" for name in ("Note", "Point", "Word", "Color", "Order")}
    with pytest.raises(WorkflowCheckpointException):
        through_json(value)
    assert through_json(value, allowed_types={"*"}) == value
    assert {key: item for key, item in through_json(value, allowed_types=allowed).items() if key != "order"} == {
        key: item for key, item in value.items() if key != "order"
    }


def test_keys_of_dictionaries_become_text() -> None:
    assert through_json({1: "a", None: "b", (1,): "c"}) == {"1": "a", "None": "b", "(1,)": "c"}


@pytest.mark.parametrize("entry", ["orders.Order", "orders:", ":Order", "a b:C", "orders:f.<locals>.C", "", 5, Note])
def test_an_allowed_type_has_a_module_and_a_name(entry: Any) -> None:
    with raises(ValueError, "'module:qualname'"):
        decode_checkpoint_value(1, allowed_types={entry})


@pytest.mark.parametrize("value", [Note("a"), (Note("a"),), Path("a"), Color.RED], ids=steady)
def test_what_is_written_to_be_read_again_is_checked_against_what_is_allowed(value: Any) -> None:
    with raises(UnstorableValueError, "allowed_checkpoint_types") as caught:
        encode_readable({"v": [value]}, NameFinder(()), "state")
    assert caught.value.path == "state['v'][0]"
    written = encode_readable({"v": [value]}, NameFinder({"*"}), "state")
    assert written == encode_checkpoint_value({"v": [value]})
    assert decode_found(written, NameFinder({"*"})) == {"v": [value]}


# ------------------------------------------------------------------------------------------------------- attacks


class Planted:
    """What it reduces to is called when it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.reduced = function, arguments

    def __reduce__(self) -> Any:
        return self.reduced


ran: list[str] = []


def sentinel(*_: Any) -> str:
    ran.append("ran")
    return "ran"


@pytest.fixture(autouse=True)
def _nothing_runs() -> Iterator[None]:
    ran.clear()
    yield
    assert ran == []


@pytest.mark.parametrize(
    "planted",
    [
        Planted(sentinel),
        Planted(os.system, "true"),
        Planted(eval, "__import__(f'{__name__}')"),
        Planted(exec, "1"),
        Planted(builtins.__import__, "os"),
        Planted(subprocess.Popen, "true"),
        Planted(getattr, datetime.datetime, "now"),
        Planted(getattr, datetime.datetime, "__subclasses__"),
        Planted(getattr, WorkflowRunState, "__class__"),
        Planted(getattr, WorkflowRunState, "_member_map_"),
        Planted(getattr, WorkflowMessage, "from_dict"),
        Planted(getattr, ZoneInfo, "from_file"),
        Planted(copyreg._reconstructor, sentinel, object, None),  # type: ignore[attr-defined]
        Planted(list, range(10**12)),
        Planted(deque, range(10**12)),
        Planted(bytes, 10**12),
        Planted(bytearray, 10**12),
        Planted(int, Decimal("1e999999999")),
    ],
    ids=lambda planted: f"{planted.reduced[0].__name__} {steady(planted.reduced[1])}",
)
def test_a_planted_call_is_refused_in_every_protocol(planted: Planted) -> None:
    for protocol in range(5):
        data = pickle.dumps(planted, protocol)
        with pytest.raises(WorkflowCheckpointException):
            decode_checkpoint_value(payload(data), allowed_types={"builtins:complex"})


@pytest.mark.parametrize(
    "text",
    [
        b"\x80\x04\x8c\x10agentbench._clock\x8c\x0alogging.os\x93.",
        b"\x80\x04\x8c\x15agentbench.exceptions\x8c\x11logging.os.system\x93\x8c\x04true\x85R.",
        b"\x80\x04\x8c\x12agentbench._extras\x8c\x07require\x93.",
        b"\x80\x04\x8c\x22agentbench.workflows.events.events\x8c\x16WorkflowEvent.__init__\x93.",
        b"\x80\x04\x8c\x11openai.types.chat\x8c\x06typing\x93.",
        b"cos\nsystem\n(S'true'\ntR.",
        b"(S'true'\nios\nsystem\n.",
        b"(cos\nsystem\nS'true'\no.",
        b"(cdatetime\ndate\nI2026\nI1\nI1\no.",
        b"ccopyreg\n__newobj__\n(cbuiltins\nbytearray\nI1000000000000\ntR.",
        b"ccopyreg\n__newobj__\n(I1\ntR.",
        b"cbuiltins\nbytes\n(I1000000000000\nt\x81.",
        b"cbuiltins\nbytes\n(I1000000000000\nt}\x92.",
        b"\x80\x02\x82\x01.",
        b"Pname\n.",
        b"",
        b"garbage",
        b"\x80\x04.",
    ],
    ids=steady,
)
def test_names_by_detours_and_odd_opcodes_are_refused(text: bytes) -> None:
    with pytest.raises(WorkflowCheckpointException):
        decode_checkpoint_value(payload(text))


def test_a_planted_call_by_way_of_an_alias_is_refused() -> None:
    text = b"ctypes\nGenericAlias\n(cbuiltins\nbytes\n)tR(I1000000\ntR."
    with raises(WorkflowCheckpointException, "memory"):
        decode_checkpoint_value(payload(text, "builtins:bytes"))


def build(module: str, name: str, state: Any) -> bytes:
    """A pickle that changes what a name stands for."""
    head = f"c{module}\n{name}\n".encode()
    return head + pickle.dumps(state, 0)[:-1] + b"b."


@pytest.mark.parametrize("state", [{"planted": 1}, (None, {"planted": 1})], ids=str)
def test_a_pickle_cannot_change_a_class_of_the_process(state: Any) -> None:
    with pytest.raises(WorkflowCheckpointException):
        decode_checkpoint_value(payload(build("agentbench.workflows.events.events", "WorkflowErrorDetails", state)))
    with pytest.raises(WorkflowCheckpointException):
        decode_checkpoint_value(payload(build(HERE, "Note", state)), allowed_types={f"{HERE}:Note"})
    assert not hasattr(Note, "planted")


def test_a_pickle_cannot_change_a_member_of_an_enum() -> None:
    data = (
        b"cagentbench.workflows.executors.message\nMessageType\n(S'standard'\ntR"
        + pickle.dumps({"_value_": "x"}, 0)[:-1]
        + b"b."
    )
    with pytest.raises(WorkflowCheckpointException):
        decode_checkpoint_value(payload(data))
    assert MessageType.STANDARD.value == "standard"


def test_a_payload_that_is_not_what_it_says_is_refused() -> None:
    with raises(WorkflowCheckpointException, "builtins:list", "builtins:tuple"):
        decode_checkpoint_value(payload(pickle.dumps((1, 2)), "builtins:list"))


def test_everything_runs_only_where_that_is_allowed() -> None:
    data = pickle.dumps(Planted(sentinel))
    with raises(WorkflowCheckpointException, "sentinel"):
        decode_checkpoint_value(payload(data, "builtins:str"))
    assert decode_checkpoint_value(payload(data, "builtins:str"), allowed_types={"*"}) == "ran"
    ran.clear()


@given(st.data())
def test_a_mutated_pickle_gives_a_value_or_a_named_error(data: st.DataObject) -> None:
    stored = json.loads(THEIRS.read_text())
    payloads = [found for found in _payloads(stored) if "Order" not in str(b64decode(found["__pickled__"]))]
    found = data.draw(st.sampled_from(payloads))
    decode_checkpoint_value(found)  # loads the library's own modules, if they are not
    raw = bytearray(b64decode(found["__pickled__"]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    before = set(sys.modules)
    with suppress(WorkflowCheckpointException):
        decode_checkpoint_value(payload(bytes(raw), found["__type__"]))
    new = set(sys.modules) - before
    assert [name for name in new if not name.startswith("encodings.")] == []  # Python's own, of text in a pickle


def _payloads(value: Any) -> list[dict[str, str]]:
    if isinstance(value, list):
        return [found for item in value for found in _payloads(item)]
    if not isinstance(value, dict):
        return []
    return [value] if "__pickled__" in value else [found for item in value.values() for found in _payloads(item)]


def test_our_pickles_name_only_our_modules_and_pythons() -> None:
    data = b64decode(encode_checkpoint_value(WorkflowMessage(1, "a"))["__pickled__"])
    names = {argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)}
    assert {name for name in names if "." in name} == {"agentbench.workflows.executors.message"}
