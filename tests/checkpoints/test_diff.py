"""What differs between two checkpoints: every kind of value, the laws, and what must never raise."""

from __future__ import annotations

import copy
import enum
import math
from collections import Counter, OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.checkpoints.difference.changes import ItemId, Member
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage
from tests.parts.errors import raises


def checkpoint(**state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint("flow", "hash", state=state)


def changes(before: Any, after: Any) -> list[tuple[str, str]]:
    """Path and kind of all changes of one value, the path without its beginning."""
    found = diff_checkpoints(checkpoint(x=before), checkpoint(x=after))
    return [(change.path.removeprefix("state.x"), change.op) for change in found]


@dataclass
class Note:
    text: str
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Turn:
    message_id: str
    text: str


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


class Plain:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Hostile:
    """Raises whatever one does with it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparing")

    def __hash__(self) -> int:
        raise RuntimeError("no hashing")

    def __repr__(self) -> str:
        raise RuntimeError("no showing")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


Point = namedtuple("Point", "x y")


# ----------------------------------------------------------------------------------------------- kinds of values


def test_types_count() -> None:
    cases: list[tuple[Any, Any]] = [
        (1, True),
        (1, 1.0),
        (0, False),
        ("1", 1),
        (None, False),
        ([], ()),
        ({}, None),
        (b"a", "a"),
        (b"a", bytearray(b"a")),
    ]
    for before, after in cases:
        assert changes(before, after) == [("", "changed")]


def test_values_made_alike_do_not_differ() -> None:
    cases: list[Any] = [
        lambda: math.nan,
        lambda: [math.nan, {"a": float("nan")}],
        lambda: {float("nan")},
        lambda: Note("a", ["b"]),
        lambda: Slotted(1, [2]),
        lambda: Plain(a=1),
        lambda: Plain(),
        lambda: ValueError("a", 1),
        lambda: Point(1, 2),
        lambda: deque([1, 2]),
        lambda: {1: "a", (2, 3): "b"},
        lambda: partial(int, "1", base=2),
        lambda: Colour.RED,
        lambda: int,
    ]
    for make in cases:
        assert changes(make(), make()) == []


def test_a_difference_is_reported_where_it_is() -> None:
    cases: list[tuple[Any, Any, list[tuple[str, str]]]] = [
        ({"a": 1}, {"a": 2}, [(".a", "changed")]),
        ({"a": 1}, {"b": 1}, [(".a", "removed"), (".b", "added")]),
        ({"a b": {"c": 1}}, {"a b": {"c": 2}}, [("['a b'].c", "changed")]),
        ({1: "a"}, {True: "a"}, [("[1]", "removed"), ("[True]", "added")]),
        ({(1, 2): 0}, {(1, 2): 1}, [("[(1, 2)]", "changed")]),
        (Note("a"), Note("b"), [(".text", "changed")]),
        (Note("a", ["b"]), Note("a", ["b", "c"]), [(".tags[1]", "added")]),
        (Slotted(1, 2), Slotted(1, 3), [(".right", "changed")]),
        (Plain(a=1), Plain(a=1, b=2), [(".b", "added")]),
        (Point(1, 2), Point(1, 3), [(".y", "changed")]),
        (ValueError("a"), ValueError("b"), [(".args[0]", "changed")]),
        ({"a", "b"}, {"a", "c"}, [("{'b'}", "removed"), ("{'c'}", "added")]),
        (frozenset({1}), frozenset({True}), [("{1}", "removed"), ("{True}", "added")]),
        (Colour.RED, Colour.BLUE, [("", "changed")]),
        (int, str, [("", "changed")]),
        (len, max, [("", "changed")]),
        (partial(int, "1"), partial(int, "2"), [(".args[0]", "changed")]),
        (deque([1]), deque([1, 2]), [("[1]", "added")]),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), [("", "reordered")]),
        (object(), object(), [("", "changed")]),
    ]
    for before, after, expected in cases:
        assert changes(before, after) == expected


def test_a_field_that_was_never_set_is_not_there() -> None:
    half = Slotted.__new__(Slotted)
    half.left = 1
    assert changes(half, Slotted(1, 2)) == [(".right", "added")]


def test_models_differ_by_field() -> None:
    pydantic = pytest.importorskip("pydantic")

    config = pydantic.ConfigDict(extra="allow")
    Model = pydantic.create_model("Model", __config__=config, name=(str, ...), parts=(list[int], []))  # noqa: N806

    assert changes(Model(name="a"), Model(name="a", parts=[])) == []
    assert changes(Model(name="a"), Model(name="b", parts=[1])) == [(".name", "changed"), (".parts[0]", "added")]
    assert changes(Model(name="a", more=1), Model(name="a", more=2)) == [(".more", "changed")]


def test_arrays_and_frames_differ_as_wholes() -> None:
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    alike = [
        lambda: np.array([1.0, np.nan]),
        lambda: np.float64("nan"),
        lambda: np.array([[1, 2], [3, 4]]),
        lambda: np.array([1, None, "a"], dtype=object),
        lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        lambda: pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]}),
        lambda: pd.DataFrame({"name": ["x"], "shape": [1], "dtype": [np.nan], "equals": [None], "id": [1]}),
        lambda: [pd.DataFrame({"id": [1], "name": ["x"]}), pd.NaT, pd.Timestamp("2020"), np.float64("nan")],
        lambda: pd.Series([1, 2], name="s"),
        lambda: pd.Timestamp("2020-01-01"),
    ]
    for make in alike:
        assert changes(make(), make()) == []
    different = [
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([1], dtype=object), np.array([True], dtype=object)),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]})),
        (pd.Series([1], name="s"), pd.Series([1], name="t")),
    ]
    for before, after in different:
        assert changes(before, after) == [("", "changed")]
    assert changes([np.zeros(2), 1], [np.zeros(2), np.zeros(2), 1]) == [("[1]", "added")]


# --------------------------------------------------------------------------------------------------------- lists


def test_lists_are_compared_in_order() -> None:
    cases: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("abc", "abcd", [("[3]", "added")]),
        ("abc", "ab", [("[2]", "removed")]),
        ("abc", "xabc", [("[0]", "added")]),
        ("abcd", "bcde", [("[0]", "removed"), ("[3]", "added")]),
        ("abc", "axc", [("[1]", "changed")]),
        ("abcdef", "abXYdef", [("[2]", "changed"), ("[3]", "added")]),
        ("abc", "cab", [("", "reordered")]),
        ("aab", "aba", [("", "reordered")]),
        ("ab", "", [("[0]", "removed"), ("[1]", "removed")]),
    ]
    for before, after, expected in cases:
        assert changes(list(before), list(after)) == expected
        assert changes(tuple(before), tuple(after)) == expected


def test_an_appended_conversation_is_an_added_item() -> None:
    conv = [f"turn {i}" for i in range(12)]
    (change,) = diff_checkpoints(checkpoint(conv=conv), checkpoint(conv=[*conv, "x"]))
    assert (change.path, change.op, change.before, change.after) == ("state.conv[12]", "added", None, "x")
    assert change.keys == ("state", "conv", 12)
    assert str(change) == "+ state.conv[12] = 'x'"


def test_things_with_ids_are_compared_by_id() -> None:
    before = [Turn("m1", "a"), Turn("m2", "b"), Turn("m3", "c")]
    after = [Turn("m3", "c"), Turn("m1", "changed"), Turn("m4", "d")]
    assert changes(before, after) == [
        ("[message_id='m1'].text", "changed"),
        ("[message_id='m2']", "removed"),
        ("[message_id='m4']", "added"),
        ("", "reordered"),
    ]
    (*_, order) = diff_checkpoints(checkpoint(x=before), checkpoint(x=after))
    assert (order.before, order.after) == (["m1", "m3"], ["m3", "m1"])


@pytest.mark.parametrize("name", ["message_id", "id", "request_id", "call_id"])
def test_the_id_may_be_a_key_too(name: str) -> None:
    before = [{name: "a", "n": 1}, {name: "b", "n": 2}]
    after = [{name: "b", "n": 3}, {name: "a", "n": 1}]
    assert changes(before, after) == [(f"[{name}='b'].n", "changed"), ("", "reordered")]


def test_an_id_that_is_there_twice_or_not_everywhere_is_none() -> None:
    assert changes([{"id": 1}, {"id": 1}], [{"id": 1}, {"id": 1}, {"id": 2}]) == [("[id=2]", "added")]
    assert changes([{"id": 1, "n": 1}, {"id": 1, "n": 2}], [{"id": 1, "n": 3}, {"n": 2}]) == [
        ("[0].n", "changed"),
        ("[1].id", "removed"),
    ]
    both = [{"id": 1, "call_id": "a"}, {"id": 1, "call_id": "b"}]
    assert changes(both, both[::-1]) == [("", "reordered")]
    (change,) = diff_checkpoints(checkpoint(x=both), checkpoint(x=both[::-1]))
    assert change.before == ["a", "b"]


def test_what_has_no_order_in_common_is_paired_place_by_place() -> None:
    before, after = [{"n": i} for i in range(700)], [{"n": -i - 1} for i in range(700)]
    assert changes(before, after) == [(f"[{i}].n", "changed") for i in range(700)]


def test_in_long_lists_the_common_items_are_found() -> None:
    before = [f"line {i}" for i in range(3000)]
    after = [line for i, line in enumerate(before[500:]) if i % 500 != 7] + ["new"]
    found = changes(before, after)
    assert Counter(op for _, op in found) == {"removed": 505, "added": 1}
    assert found[-1] == (f"[{len(after) - 1}]", "added")


# ----------------------------------------------------------------------------------------------- what must not raise


def test_what_cannot_be_compared_counts_as_changed_and_never_raises() -> None:
    assert changes(Hostile(), Hostile()) == [("", "changed")]
    same = Hostile()
    assert changes([same, 1], [same, 2]) == [("[1]", "changed")]
    assert changes([Hostile(), 1], [1, Hostile(), 2])
    found = diff_checkpoints(checkpoint(x=Hostile()), checkpoint(x={"a": Hostile()}))
    assert "its repr raised" in str(found)


def test_a_mapping_that_cannot_be_read_counts_as_changed() -> None:
    class Broken(dict[str, int]):
        def items(self) -> Any:
            raise OSError("the disk is gone")

    assert changes(Broken(a=1), Broken(a=2)) == [("", "changed")]


def test_values_inside_themselves_are_compared_once() -> None:
    def ring(leaf: int) -> list[Any]:
        ring: list[Any] = [leaf]
        ring.append({"again": ring})
        return ring

    assert changes(ring(1), ring(1)) == []
    assert changes(ring(1), ring(2)) == [("[0]", "changed")]


def test_values_of_any_depth_are_compared() -> None:
    def deep(leaf: int) -> Any:
        value: Any = leaf
        for _ in range(5000):
            value = {"k": [value]}
        return value

    ((path, op),) = changes(deep(1), deep(2))
    assert op == "changed"
    assert len(path) < 500


def test_parts_that_are_shared_many_times_are_not_walked_many_times() -> None:
    def woven(leaf: int) -> Any:
        value: Any = [leaf]
        for _ in range(60):
            value = [value, value]
        return value

    assert changes(woven(1), woven(1)) == []
    assert 0 < len(changes(woven(1), woven(2))) < 2000


# ------------------------------------------------------------------------------------------------------- checkpoints


async def test_the_parts_of_a_checkpoint_have_readable_paths() -> None:
    def make(executor: int, waiting: list[str], message: str, asked: str) -> WorkflowCheckpoint:
        return WorkflowCheckpoint(
            "flow",
            "hash",
            state={"_executor_state": {"writer": {"count": executor}}, "_fan_in_buffers": {"join": {"a": waiting}}},
            messages={"plan": [WorkflowMessage(message, "plan")]},
            pending_request_info_events={"r-1": WorkflowEvent.request_info("r-1", "review", asked, bool)},
            iteration_count=executor,
            metadata={"seq": executor, "run_id": f"run-{executor}", "tags": [f"t{executor}"]},
        )

    found = diff_checkpoints(make(1, ["x"], "a", "fine?"), make(2, ["x", "y"], "b", "good?"))
    assert [(change.path, change.before, change.after) for change in found] == [
        ("iteration_count", 1, 2),
        ("executors.writer.count", 1, 2),
        ("fan_in_buffers.join.a[1]", None, "y"),
        ("messages.plan[0].data", "a", "b"),
        ("requests['r-1'].data", "fine?", "good?"),
        ("metadata.tags[0]", "t1", "t2"),
    ]


def test_ids_times_and_traces_are_no_content() -> None:
    def make(trace: str) -> WorkflowCheckpoint:
        message = WorkflowMessage("a", "plan", trace_contexts=[{"traceparent": trace}], source_span_ids=[trace])
        return WorkflowCheckpoint("flow", "hash", messages={"plan": [message]}, metadata={"seq": len(trace)})

    before, after = make("1"), make("22")
    found = diff_checkpoints(before, after)
    assert not found
    assert len(found) == 0
    assert (found.before.checkpoint_id, found.after.checkpoint_id) == (before.checkpoint_id, after.checkpoint_id)


def test_another_graph_is_compared_part_by_part() -> None:
    def make(digest: str, **executors: str) -> WorkflowCheckpoint:
        signature = {"start_executor": "a", "executors": executors}
        return WorkflowCheckpoint("flow", digest, metadata={"graph_signature": signature})

    found = diff_checkpoints(make("1", a="Step"), make("2", a="Step", b="Ask"))
    assert [(c.path, c.op) for c in found] == [("graph_signature_hash", "changed"), ("graph.executors.b", "added")]


def test_what_to_dict_gives_can_be_compared_too() -> None:
    before, after = checkpoint(a=1), checkpoint(a=2)
    assert diff_checkpoints(before.to_dict(), after) == diff_checkpoints(before, after)
    with raises(WorkflowCheckpointException, "workflow_name"):
        diff_checkpoints({}, after)


def test_a_diff_is_a_text_that_can_be_read() -> None:
    before = checkpoint(n=1, text="a" * 500 + "b", order=[1, 2], api_key="sk-123", tags={"old"})
    after = checkpoint(n=2, text="a" * 500 + "c", order=[2, 1], api_key="sk-456", tags=set())
    head, first, second, *lines = str(diff_checkpoints(before, after)).splitlines()
    assert head == "CheckpointDiff: 1 removed, 3 changed, 1 reordered"
    assert first.split()[:2] == ["before", before.checkpoint_id]
    assert second.split()[:2] == ["after", after.checkpoint_id]
    assert lines == [
        "~ state.n: 1 -> 2",
        f"~ state.text: …'{'a' * 20}b' -> …'{'a' * 20}c'",
        "> state.order: reordered [1, 2] -> [2, 1]",
        "~ state.api_key: ••• -> •••",
        "- state.tags{'old'} = 'old'",
    ]
    assert repr(diff_checkpoints(before, before)) == (
        f"CheckpointDiff({before.checkpoint_id!r}, {before.checkpoint_id!r}, changes=0)"
    )
    assert repr(diff_checkpoints(before, after)[0]) == "<CheckpointChange ~ state.n: 1 -> 2>"


def test_a_long_key_does_not_make_a_long_path() -> None:
    (change,) = diff_checkpoints(checkpoint(), checkpoint(**{"k" * 5 + " " * 100_000: 1}))
    assert len(change.path) < 200


# ------------------------------------------------------------------------------------------------------------- laws

atoms = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(width=16) | st.text(max_size=3) | st.binary(max_size=2)
)
keys = st.text("ab ", min_size=1, max_size=3)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(atoms, inner, max_size=3)
        | st.builds(Note, st.text(max_size=2), st.lists(st.text(max_size=1), max_size=3))
        | st.sets(st.integers(0, 3) | st.booleans() | st.text(max_size=1))
        | st.builds(Slotted, inner, inner)
    ),
    max_leaves=12,
)
states = st.dictionaries(keys, values, max_size=4)
dict_values = st.recursive(atoms, lambda inner: st.dictionaries(keys, inner, max_size=4), max_leaves=12)
dict_states = st.dictionaries(keys, dict_values, max_size=4)


def canonical(value: Any) -> Any:
    """A form that is equal for values of equal content, written without a look at the comparison."""
    if isinstance(value, float) and math.isnan(value):
        return "float", "nan"
    if isinstance(value, (Note, Slotted)):
        fields = vars(value) if isinstance(value, Note) else {"left": value.left, "right": value.right}
        return type(value).__name__, canonical(dict(fields))
    if isinstance(value, dict):
        return "dict", frozenset((canonical(key), canonical(item)) for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return "set", frozenset(map(canonical, value))
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(map(canonical, value))
    return type(value).__name__, value


@given(states)
def test_law_nothing_differs_from_itself(state: dict[str, Any]) -> None:
    one = checkpoint(**state)
    assert not diff_checkpoints(one, one)
    assert not diff_checkpoints(one, copy.deepcopy(one))


@given(states, states)
def test_law_a_diff_is_empty_if_and_only_if_the_content_is_equal(a: dict[str, Any], b: dict[str, Any]) -> None:
    found = diff_checkpoints(checkpoint(**a), checkpoint(**b))
    assert bool(found) is (canonical(a) != canonical(b))


@given(states, states)
def test_law_added_and_removed_change_places_with_the_sides(a: dict[str, Any], b: dict[str, Any]) -> None:
    there, back = (diff_checkpoints(checkpoint(**x), checkpoint(**y)) for x, y in ((a, b), (b, a)))
    assert bool(there) is bool(back)
    swap = {"added": "removed", "removed": "added", "changed": "changed", "reordered": "reordered"}

    def outside_lists(found: CheckpointDiff) -> Counter[tuple[str, str]]:
        # Where lists differ there may be several shortest ways from one to the other.
        return Counter((c.path, c.op) for c in found if not any(isinstance(key, int) for key in c.keys))

    assert Counter({(path, swap[op]): n for (path, op), n in outside_lists(there).items()}) == outside_lists(back)


@given(dict_states, dict_states)
def test_law_the_changes_lead_from_one_to_the_other(a: dict[str, Any], b: dict[str, Any]) -> None:
    result = {"state": copy.deepcopy(a)}
    for change in diff_checkpoints(checkpoint(**a), checkpoint(**b)):
        at: Any = result
        for key in change.keys[:-1]:
            at = at[key]
        if change.op == "removed":
            del at[change.keys[-1]]
        else:
            at[change.keys[-1]] = change.after
    assert canonical(result["state"]) == canonical(b)


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_law_the_changes_of_a_list_account_for_every_item(a: list[int], b: list[int]) -> None:
    found = diff_checkpoints(checkpoint(x=a), checkpoint(x=b))
    if [change.op for change in found] == ["reordered"]:
        assert sorted(a) == sorted(b)
        return
    gone = Counter(c.before for c in found if c.op != "added")
    come = Counter(c.after for c in found if c.op != "removed")
    assert Counter(a) - gone + come == Counter(b)
    assert all(a[c.keys[-1]] == c.before for c in found if c.op == "removed")
    assert all(b[c.keys[-1]] == c.after for c in found if c.op != "removed")


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)))
def test_law_things_with_ids_change_places_with_the_sides_exactly(
    order: list[int], left: set[int], right: set[int]
) -> None:
    a = [{"id": i} for i in sorted(left)]
    b = [{"id": i} for i in order if i in right]
    found = diff_checkpoints(checkpoint(x=a), checkpoint(x=b))
    by_op = {op: {c.keys[-1].value for c in found if c.op == op} for op in ("added", "removed")}
    assert by_op == {"added": right - left, "removed": left - right}
    both = [i for i in order if i in left & right]
    assert any(c.op == "reordered" for c in found) is (both != sorted(both))


def test_steps_to_items_and_members_differ_from_keys() -> None:
    found = diff_checkpoints(checkpoint(x=[], y=set()), checkpoint(x=[{"id": 1}], y={1}))
    assert [change.keys[-1] for change in found] == [ItemId("id", 1), Member(1)]


@pytest.mark.parametrize("wrong", ["cp-1", CheckpointInfo("flow", "cp-1", 0, "now"), None])
def test_what_holds_nothing_to_compare_has_to_be_loaded_first(wrong: Any):
    told = rf"received a {type(wrong).__name__}; expected .*`await storage\.load\(checkpoint_id\)`.*diff\(a, b, source"
    for pair in ((wrong, checkpoint()), (checkpoint(), wrong)):
        with pytest.raises(TypeError, match=told):
            diff_checkpoints(*pair)
