"""Each stored type with damaged content, in a process of its own: a value or a named error, and soon."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from copy import deepcopy
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from tests.parts.errors import raises
from tests.parts.nightly import nightly

ROOT = Path(__file__).parents[2]
N_DAMAGES = 250
SECONDS = 10
ENDLESS = {"__t__": "range", "v": [0, 2**62, 1]}
LONG = {"__t__": "pandas_index", "v": {"range": [0, 2**28, 1], "name": None}}
ATOMS: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        7,
        10**15,
        -(2**63),
        2**62,
        2**70,
        1e308,
        "",
        "x",
        [],
        {},
        [10**15],
        [0, 10**15],
        ENDLESS,
        LONG,
    ),
    *(
        "V0",
        "<U0",
        "<U3",
        "|O",
        "T",
        "<M8[ns]",
        "<i8",
        "<i4",
        "<u8",
        "|b1",
        "<f4",
        ">i8",
        "C",
        "F",
        "right",
        "D",
        "pyarrow",
    ),
    *("category", "zoned", "period", "interval", "masked", "string", "period[D]", "Europe/Berlin", "../x"),
    *({"__t__": "float", "v": "nan"}, {"__t__": "tuple", "v": [1]}, {"__t__": "numpy_scalar", "v": ["<i8", 3]}),
    {"__t__": "ndarray", "v": {"dtype": "<i8", "shape": [2], "bytes": "AAAAAAAAAAD/////////fw=="}},
    {"__t__": "ndarray", "v": {"dtype": "|V0", "shape": [10**15], "bytes": ""}},
    *({"__t__": "range", "v": [0, 2**27, 1]}, {"literal": [1, "a"]}, {"union": ["builtins.int"] * 3}, "builtins.int"),
]


def samples_of_the_library() -> dict[str, list[Any]]:
    from agentbench import (
        AgentResponse,
        AgentResponseUpdate,
        AgentSession,
        Approval,
        ChatResponse,
        ChatResponseUpdate,
        CheckpointInfo,
        Content,
        Message,
        WorkflowCheckpoint,
        WorkflowErrorDetails,
        WorkflowEvent,
        WorkflowMessage,
        WorkflowRunState,
    )
    from agentbench.workflows.events.events import EventStamps
    from agentbench.workflows.executors.message import MessageType
    from tests.serialization.samples import Color, Note, Order, Pair, Right

    call, text = Content.from_function_call("c1", "weather", arguments={"n": [1, 2]}), Content.from_text("a")
    contents = [
        Content.from_text("hi", annotations=[{"type": "citation", "title": "t"}]),
        Content.from_data(b"\x89PNG", "image/png"),
        *(call, Content.from_function_result("c1", result=[text]), Content.from_usage({"input_token_count": 3})),
        *(Content.from_shell_tool_result(outputs=[text]), Content.from_search_tool_result("c", tool_name="t")),
        *(Content.from_function_approval_request("r", call), Content.from_function_approval_response(True, "r", call)),
    ]
    message = Message("user", contents, usages={"a": 1}, additional_properties={"k": {1: 2}})
    session = AgentSession(session_id="s")
    session.state = {"in_memory": {"messages": [message]}, "decision": Approval(True)}
    event = WorkflowEvent.request_info("r", "e", "Ship?", Approval | list[Approval])
    event._stamps = EventStamps(1, "run", 2, 3)
    sent = [WorkflowMessage(message, "a", "b", MessageType.RESPONSE, original_request_info_event=event)]
    details = WorkflowErrorDetails("E", "m", extra={"a": 1})
    checkpoint = WorkflowCheckpoint(
        "flow", "hash", "cp1", messages={"a": sent}, state={"talk": [message], "s": session}
    )
    checkpoint.pending_request_info_events["r"] = event
    return {
        "library": [
            *(*contents, message, ChatResponse(messages=[message], response_format=list[int]), session),
            *(AgentResponse(messages=[message], value={"a": 1}), ChatResponseUpdate(contents=contents)),
            AgentResponseUpdate(contents=contents),
            *(*sent, event, WorkflowEvent.status(WorkflowRunState.IDLE), WorkflowEvent.failed(details), details),
            *(CheckpointInfo.of(checkpoint), Note("a"), Pair(1, 2), Color.RED, Right.READ | Right.WRITE, Order(item=1)),
        ],
        "checkpoints": [checkpoint.to_dict()],
    }


def samples() -> dict[str, list[Any]]:
    from collections import Counter, OrderedDict, defaultdict, deque
    from datetime import datetime, time, timedelta
    from fractions import Fraction

    import numpy as np
    import pandas as pd

    days = pd.date_range("2026-01-01", periods=4, tz="Europe/Berlin")
    frame = pd.DataFrame(
        {
            "whole": [1, 2, 3, 4],
            "kind": pd.Categorical(["a", "b", "a", None]),
            "maybe": pd.array([1, None, 3, 4], "Int64"),
            "text": pd.array(["a", None, "c", "d"], "string"),
            "day": days,
            "month": days.tz_localize(None).to_period("M"),
            "between": pd.interval_range(0, 4),
        }
    )
    many = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["x", "y"])
    arrays = [
        np.arange(6).reshape(2, 3).T,
        np.array(["ab", "c"]),
        np.array([{}, [1], None], dtype=object),
        np.array([(1, "a")], dtype=[("n", "i4"), ("t", "U2")]),
        np.array(["2026-01-01"], "M8[ns]"),
        np.empty(2, "V3"),
    ]
    return {
        "arrays": [*arrays, np.float32(1), np.str_("x"), np.datetime64("2026-01-01")],
        "frames": [frame, frame.set_index(many), frame.set_index("day"), frame["kind"], frame["month"]],
        "indexes": [pd.RangeIndex(4), many, days, pd.Index(["a", None]), pd.period_range("2026", periods=3, freq="D")],
        "pandas arrays": [frame[name].array for name in frame if name != "whole"],
        "pandas scalars": [days[0], pd.Timedelta(1, "s"), pd.Period("2026", "M"), pd.Interval(0, 1), pd.NaT, pd.NA],
        "containers": [
            {1: 2, (3,): 4},
            {1, 2},
            (1, 2),
            deque([1], 3),
            Counter("aab"),
            OrderedDict(a=1),
            defaultdict(int),
        ],
        **samples_of_the_library(),
        "others": [
            1j,
            range(3),
            b"x",
            timedelta(1),
            time(1, fold=1),
            datetime(2026, 1, 1, tzinfo=UTC),
            Fraction(1, 3),
        ],
    }


def places_in(tree: Any) -> list[tuple[Any, Any]]:
    """Return the containers of a tree with each key."""
    steps = enumerate(tree) if isinstance(tree, list) else tree.items() if isinstance(tree, dict) else ()
    return [place for key, inner in steps for place in [(tree, key), *places_in(inner)]]


def damaged(draw: random.Random, trees: list[str]) -> str:
    """Return the text of a tree with one to three damages."""
    tree = json.loads(draw.choice(trees))
    for _ in range(draw.choice([1, 1, 2, 3])):
        owner, key = draw.choice(places_in(tree) or [([None], 0)])
        others = places_in(json.loads(draw.choice(trees)))
        other = draw.choice(others)
        kind = draw.random()
        if kind < 0.6:
            owner[key] = deepcopy(draw.choice(ATOMS))
        elif kind < 0.8:
            owner[key] = other[0][other[1]]
        elif kind < 0.9:
            del owner[key]
        elif isinstance(owner, dict):
            owner[draw.choice(["__t__", "v", "type", "data"])] = owner.pop(key)
        else:
            owner[key] = "NESTED"
    depth = draw.choice([100, 400, 10_000])
    left, right = draw.choice(
        [("[", "]"), ('{"__t__":"tuple","v":[', "]}"), ('{"origin":"builtins.list","args":[', "]}")]
    )
    text = json.dumps(tree).replace('"NESTED"', left * depth + right * depth)
    at, kind = draw.randrange(len(text)), draw.random()
    if kind < 0.1:
        return text[:at] + draw.choice(["", "NaN", "1e999", "9" * 5000, "]", "\\ud800"])
    return text


def damage_all(kind: str) -> None:
    """In a process of its own: print each damaged text before it is read."""
    draw = random.Random(kind)
    trees = [to_json(value) for value in samples()[kind]]
    read = WorkflowCheckpoint.from_json if kind == "checkpoints" else from_json
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    warnings.simplefilter("ignore")
    for _ in range(N_DAMAGES):
        text = damaged(draw, trees)
        print(text, file=sys.stderr, flush=True)
        signal.alarm(SECONDS)
        try:
            value = read(text)
        except WorkflowCheckpointException as error:
            if isinstance(error.__cause__, MemoryError):
                raise
        else:
            use(value)
        signal.alarm(0)


def use(value: Any) -> None:
    with suppress(Exception):  # what was read may hold anything; it must only not end or hang the process
        repr(value)
        to_json(value)


@pytest.mark.parametrize(
    "kind",
    [
        "library",
        "checkpoints",
        "arrays",
        nightly("frames"),
        nightly("indexes"),
        nightly("pandas arrays"),
        nightly("pandas scalars"),
        "containers",
        nightly("others"),
    ],
)
def test_damaged_content_gives_a_value_or_a_named_error(kind: str) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed (extra notebook)")
    command = [sys.executable, "-m", "tests.serialization.test_damaged_types", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("tag", ["set", "frozenset", "dict", "OrderedDict", "Counter"])
def test_keys_that_collide_are_refused_and_not_hashed_without_end(tag: str) -> None:
    numbers = [each * (2**61 - 1) for each in range(50_000)]
    value = numbers if "set" in tag else [[each, 1] for each in numbers]
    with raises(WorkflowCheckpointException, "same"):
        from_json(json.dumps({"__t__": tag, "v": value}))


if __name__ == "__main__":
    damage_all(sys.argv[1])
