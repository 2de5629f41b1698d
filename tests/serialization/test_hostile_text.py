"""Whatever the text, reading gives a value or a clear error: no code runs, nothing is imported, memory stays small."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import UnknownStoredTypeError, WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from agentbench.serialization.standard_types import STANDARD_DECODERS
from tests.ids import steady
from tests.parts.errors import raises
from tests.serialization.samples import EXAMPLES, Note, values

HERE = "tests.serialization.samples"
TAGS: list[Any] = [*STANDARD_DECODERS, "workflow_message", "workflow_event", "os.system", "", None, 5]
if find_spec("pandas") is not None:
    TAGS += ["ndarray", "numpy_scalar", "dataframe", "series", "pandas_index", "pandas_array", "pandas_scalar"]
NAMES = [
    f"{HERE}.Note",
    f"{HERE}.Color",
    f"{HERE}.Order",
    f"{HERE}.Pair",
    f"{HERE}.Right",
    "os.system",
    "builtins.dict",
]


def read(text: str) -> None:
    with contextlib.suppress(WorkflowCheckpointException):
        from_json(text)


def tagged(tag: Any, value: Any) -> str:
    return json.dumps({"__t__": tag, "v": value})


@pytest.fixture(scope="module", autouse=True)
def _all_kinds_are_loaded() -> None:
    # What reads arrays and frames is loaded by the library's own table; the tests below then see all other imports.
    for tag in TAGS:
        read(tagged(tag, None))
    read(tagged("ZoneInfo", "No/Where"))  # Python looks for its own table of zones


@given(values(), st.data())
def test_a_mutated_text_gives_a_value_or_a_named_error_and_imports_nothing(value: Any, data: st.DataObject) -> None:
    text = to_json(value)
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 8)))
    middle = data.draw(
        st.sampled_from(["", '"', "{", "]", "-1", "1e999", "NaN", "null", '"__t__"', text, "\\ud800", ","])
    )
    before = set(sys.modules)
    read(text[:at] + middle + text[end:])
    assert set(sys.modules) - before == set()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(NAMES),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.sampled_from(["text", "fields", "v", "dtype", "shape", "kind", "items"]), inner),
            st.builds(lambda tag, found: {"__t__": tag, "v": found}, st.sampled_from(TAGS), inner),
            st.builds(
                lambda tag, name, found: {"__t__": tag, "v": [name, found]},
                st.sampled_from(TAGS),
                st.sampled_from(NAMES),
                inner,
            ),
        ),
        max_leaves=8,
    )
)
def test_made_up_tags_give_a_value_or_a_named_error_and_import_nothing(found: Any) -> None:
    before = set(sys.modules)
    read(json.dumps(found))
    assert set(sys.modules) - before == set()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nul",
        "[1,",
        "NaN",
        "[Infinity]",
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 10_000,
        tagged("int", "zz"),
        tagged("int", 5),
        tagged("float", "1.5"),
        tagged("bytes", "%%%"),
        tagged("range", [0, 1, 0]),
        tagged("UUID", "no"),
        tagged("Decimal", "one"),
        tagged("Decimal", [0, [1], 5]),
        tagged("Fraction", [1, 0]),
        tagged("Fraction", ["1e999999999", 1]),
        tagged("date", "2026-13-01"),
        tagged("timezone", [5]),
        tagged("ZoneInfo", "../../etc/passwd"),
        tagged("ZoneInfo", "/etc/localtime"),
        tagged("ZoneInfo", "No/Where"),
        tagged("pattern", ["(", 0]),
        tagged("pattern", [5, 0]),
        tagged("defaultdict", ["eval", []]),
        tagged("dict", [[[], 1]]),
        tagged("set", [[]]),
        '{"__t__":"tuple"}',
        '{"__t__":"no such kind","v":1}',
        '{"__t__":["tuple"],"v":1}',
    ],
    ids=lambda text: text[:40],
)
def test_malformed_text_is_refused_by_name(text: str) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(text)


@pytest.mark.parametrize("tag", ["tuple", "set", "frozenset", "dict", "OrderedDict", "Counter"])
def test_an_endless_range_is_not_unrolled(tag: str) -> None:
    with raises(WorkflowCheckpointException, "range"):
        from_json(f'{{"__t__":"{tag}","v":{tagged("range", [0, 10**15, 1])}}}')


ENDLESS = {"__t__": "range", "v": [0, 2**62, 1]}


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("dataclass", [f"{HERE}.Note", ENDLESS]),
        ("model", [f"{HERE}.Order", {"fields": {"item": 1}, "set": ENDLESS}]),
        ("model", [f"{HERE}.Order", {"fields": {"item": 1}, "unset": ENDLESS}]),
        ("namedtuple", [f"{HERE}.Pair", ENDLESS]),
        ("content", {"type": "text", "annotations": ENDLESS}),
        ("workflow_message", ENDLESS),
        ("workflow_event", {"type": "output", "stamps": ENDLESS}),
        ("type", {"union": [{"literal": [number]} for number in range(5000)]}),
        ("type", {"literal": [number * (2**61 - 1) for number in range(50_000)]}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_endless_or_takes_minutes_is_refused(tag: str, value: Any) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(tagged(tag, value))


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("dataclass", ["os.system", {}]),
        ("dataclass", ["subprocess.Popen", {"args": "true"}]),
        ("dataclass", [f"{HERE}.Color", {}]),
        ("model", [f"{HERE}.Note", {"fields": {}}]),
        ("enum", [f"{HERE}.Note", "RED"]),
        ("flag", [f"{HERE}.Color", 1]),
        ("namedtuple", ["builtins.tuple", {}]),
        ("namedtuple", [f"{HERE}.Note", {}]),
        ("dataclass", ["no.such.module.Thing", {}]),
        ("dataclass", [{"origin": "builtins.list", "args": ["builtins.int"]}, {}]),
        ("registered", ["nobody", {}]),
        ("type", "os.system"),
        ("type", {"origin": "os.system", "args": []}),
        ("type", {"unknown": 1}),
    ],
    ids=str,
)
def test_a_name_that_is_not_of_the_kind_is_refused(tag: str, value: Any) -> None:
    with pytest.raises(UnknownStoredTypeError):
        from_json(tagged(tag, value))


def test_a_module_that_is_not_loaded_is_not_imported() -> None:
    assert "xmlrpc.client" not in sys.modules
    with pytest.raises(UnknownStoredTypeError) as caught:
        from_json(tagged("type", "xmlrpc.client.ServerProxy"))
    assert caught.value.type_name == "xmlrpc.client.ServerProxy"
    assert "xmlrpc.client" not in sys.modules


def test_the_getattr_of_a_module_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    lazy = types.ModuleType("lazy_door")
    lazy.__getattr__ = asked.append  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_door", lazy)
    for kind in ("type", "dataclass"):
        with pytest.raises(UnknownStoredTypeError):
            from_json(tagged(kind, "lazy_door.Thing" if kind == "type" else ["lazy_door.Thing", {}]))
    assert asked == []


def test_the_constructor_of_a_class_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(Note, "__init__", lambda self, *_: ran.append("init"))
    monkeypatch.setattr(Note, "__setattr__", lambda self, *_: ran.append("setattr"))
    note = from_json(tagged("dataclass", [f"{HERE}.Note", {"text": "a", "tags": []}]))
    assert note.text == "a"
    assert ran == []


@pytest.mark.parametrize("value", EXAMPLES[13:17], ids=steady)
def test_marks_in_the_data_of_users_stay_data(value: Any) -> None:
    assert from_json(to_json(value)) == value
    assert from_json(to_json([value, {"a": value}])) == [value, {"a": value}]


def test_reading_finds_the_librarys_own_types_in_a_process_that_has_not_loaded_them() -> None:
    write = (
        "from agentbench.workflows.events.events import *; from agentbench.workflows.executors.message import *;"
        "from agentbench.workflows.executors.approval import Approval;"
        "from agentbench.serialization.json_text import to_json;"
        "event = WorkflowEvent.request_info('r', 'e', 'Ship?', Approval | list[Approval]);"
        "message = WorkflowMessage(WorkflowErrorDetails('E', 'm'), 'a', original_request_info_event=event);"
        "print(to_json([message, event, Approval(True), WorkflowRunState.IDLE, MessageType.RESPONSE]))"
    )
    read = (
        "import sys; from agentbench.checkpoints.checkpoint import WorkflowCheckpoint;"
        "from agentbench.serialization.json_text import from_json;"
        "assert not [name for name in sys.modules if name.startswith('agentbench.workflows.')];"
        "found = from_json(sys.stdin.read()); print(found[0].original_request_info_event.response_type, *found[2:])"
    )
    text = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True, check=True).stdout
    done = subprocess.run([sys.executable, "-c", read], input=text, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == [
        "agentbench.workflows.executors.approval.Approval",
        "|",
        "list[agentbench.workflows.executors.approval.Approval]",
        *["Approval(approved=True,", "reason='',", "edited=None)", "IDLE", "response"],
    ]
