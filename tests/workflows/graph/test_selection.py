import asyncio
import logging
import threading
from typing import Any

import pytest

from agentbench import Executor, WorkflowBuilder, WorkflowContext, executor
from agentbench.workflows.graph.edge_groups import EdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup, SwitchSelection
from tests.parts.errors import raises
from tests.parts.graphs import always

Case, Default = SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault


def never(data):
    return False


def broken(data):
    raise KeyError(data)


def select(group, data=None):
    return asyncio.run(group.select(data))


# ------------------------------------------------------------------------------------------------------------- fan-out


def test_a_fan_out_needs_a_list_of_two_targets_each_named_once():
    for targets in ([], ["b"]):
        with raises(ValueError, "target"):
            FanOutEdgeGroup("a", targets)
    with raises(ValueError, "'b'"):
        FanOutEdgeGroup("a", ["b", "c", "b"])
    with raises(TypeError, "'bc'"):
        FanOutEdgeGroup("a", "bc")


def test_a_fan_out_without_function_reaches_all_targets():
    group = FanOutEdgeGroup("sensor", ["db", "cache"])
    group.target_ids.clear()  # a list of the caller's own
    assert group.target_executor_ids == group.target_ids == select(group) == ["db", "cache"]
    assert [edge.id for edge in group.edges] == ["sensor->db", "sensor->cache"]


def test_a_selection_function_gets_the_data_and_its_own_list_of_targets():
    calls = []

    def pick(data, targets):
        calls.append((data, list(targets)))
        targets.pop()
        return targets

    group = FanOutEdgeGroup("a", ["b", "c"], pick)
    assert select(group, 7) == select(group, 7) == ["b"]
    assert calls == [(7, ["b", "c"])] * 2
    with raises(TypeError, "'a'"):
        FanOutEdgeGroup("a", ["b", "c"], "b")  # type: ignore[arg-type]


async def _last(data, targets):
    await asyncio.sleep(0)
    return targets[1:]


@pytest.mark.parametrize(
    ("function", "selected"),
    [(_last, ["c"]), (lambda data, targets: [], []), (lambda data, targets: ("c", "b", "c"), ["c", "b"])],
    ids=["awaited", "none", "each once"],
)
def test_the_selected_targets_are_taken_in_the_order_of_the_function(function, selected):
    assert select(FanOutEdgeGroup("a", ["b", "c"], function)) == selected


def test_selecting_an_id_outside_the_group_says_what_the_group_reaches():
    group = FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: ["b", "z"], selection_func_name="by_tag")
    with raises(RuntimeError, "'by_tag'", "'z'", "'b'", "'c'"):
        select(group)


@pytest.mark.parametrize("answer", ["b", None])
def test_a_selection_that_is_no_list_of_ids_is_refused(answer):
    with raises(RuntimeError, "return"):
        select(FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: answer))


def test_a_fan_out_is_written_with_the_name_of_its_function_and_cannot_select_without_it():
    named = FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: targets, selection_func_name="N")
    assert named.to_dict()["selection_func_name"] == "N"
    assert FanOutEdgeGroup("a", ["b", "c"], lambda d, t: t).to_dict()["selection_func_name"] == "<lambda>"
    restored = EdgeGroup.from_dict(named.to_dict())
    with raises(RuntimeError, "'N'"):
        select(restored)
    broadcast = EdgeGroup.from_dict(FanOutEdgeGroup("a", ["b", "c"]).to_dict())
    assert select(broadcast) == ["b", "c"]


# -------------------------------------------------------------------------------------------------------------- switch


@pytest.mark.parametrize(
    ("cases", "complaint"),
    [
        ([Default("d")], "1 case"),
        ([Case(always, "x"), Case(always, "y")], "0 of them defaults"),
        ([Default("d")] * 2, "2 of them defaults"),
    ],
)
def test_a_switch_needs_a_case_and_exactly_one_default(cases, complaint):
    with pytest.raises(ValueError, match=complaint):
        SwitchCaseEdgeGroup("a", cases)


def test_a_switch_refuses_what_is_no_case():
    with raises(TypeError, "case"):
        SwitchCaseEdgeGroup("a", ["x", Default("d")])  # type: ignore[list-item]


def test_a_default_that_is_not_last_is_warned_about_and_counts_last_all_the_same(caplog):
    with caplog.at_level(logging.WARNING):
        SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")])
        assert caplog.text == ""
        group = SwitchCaseEdgeGroup("a", [Default("d"), Case(always, "x")])
    assert "to 'd'" in caplog.text
    assert select(group).target_id == "x"


async def _is_even(data):
    await asyncio.sleep(0)
    return data % 2 == 0


def test_the_first_case_that_holds_wins_and_the_default_takes_the_rest():
    group = SwitchCaseEdgeGroup("a", [Case(never, "x"), Case(_is_even, "y"), Case(always, "z"), Default("d")])
    assert select(group, 2) == SwitchSelection("y", "_is_even", ())
    assert select(group, 3) == SwitchSelection("z", "always", ())
    assert select(SwitchCaseEdgeGroup("a", [Case(never, "x"), Default("d")])) == SwitchSelection("d", "default", ())


def test_a_condition_that_raises_counts_as_false_and_is_reported(caplog):
    async def late(data):
        await asyncio.sleep(0)
        raise ValueError(data)

    group = SwitchCaseEdgeGroup("a", [Case(broken, "x"), Case(late, "y"), Default("d")])
    with caplog.at_level(logging.WARNING):
        target_id, case_name, warnings = select(group, "tag")
    assert (target_id, case_name, len(warnings)) == ("d", "default", 2)
    assert "'broken'" in warnings[0]
    assert "KeyError: 'tag'" in warnings[0]
    assert warnings[0] in caplog.text


def test_cases_with_one_target_share_one_edge():
    group = SwitchCaseEdgeGroup("a", [Case(never, "x"), Case(always, "y"), Default("x")])
    assert [edge.id for edge in group.edges] == ["a->x", "a->y"]
    assert group.target_ids == ["x", "y"]
    assert [case.target_id for case in group.cases] == ["x", "y", "x"]


def test_a_switch_is_written_with_its_cases_and_cannot_decide_without_their_conditions():
    group = SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")], id="s")
    assert group.to_dict() == {
        "id": "s",
        "type": "SwitchCaseEdgeGroup",
        "edges": [{"source_id": "a", "target_id": "x"}, {"source_id": "a", "target_id": "d"}],
        "selection_func_name": None,
        "cases": [
            {"target_id": "x", "type": "Case", "condition_name": "always"},
            {"target_id": "d", "type": "Default"},
        ],
    }
    restored = EdgeGroup.from_dict(group.to_dict())
    with raises(RuntimeError, "'always'"):
        select(restored)
    with raises(RuntimeError, "'x'"):
        select(SwitchCaseEdgeGroup("a", [Case(None, "x"), Default("d")]))


def test_a_deep_clone_has_cases_of_its_own_and_decides_alike():
    group = SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")])
    fresh = group.clone()
    assert fresh.default is not group.default
    assert fresh.cases[0] is not group.cases[0]
    assert select(fresh) == select(group)
    assert group.clone(deep=False).cases[0] is group.cases[0]


async def test_the_selection_function_of_a_switch_is_plain_while_its_conditions_are():
    async def waits(data):
        return bool(data)

    def chosen(condition, data):
        return SwitchCaseEdgeGroup("a", [Case(condition, "b"), Default("c")]).selection_func(data, ["b", "c"])

    assert [chosen(bool, data) for data in (1, 0)] == [["b"], ["c"]]
    assert await chosen(waits, 1) == ["b"]
    with raises(RuntimeError, "async def"):
        chosen(lambda data: asyncio.sleep(0), 1)


@pytest.mark.parametrize("copy", [False, True])
async def test_the_targets_of_a_fan_out_get_one_object_or_a_copy_each(copy: bool) -> None:
    sent = {"lines": ["a"]}
    seen: list[dict[str, list[str]]] = []

    @executor(id="start")
    async def start(text: str, ctx: WorkflowContext[dict[str, Any]]) -> None:
        await ctx.send_message(sent)

    def target(name: str) -> Executor:
        @executor(id=name)
        async def change(data: dict[str, Any], ctx: WorkflowContext[Any]) -> None:
            data["lines"].append(name)
            seen.append(data)

        return change

    builder = WorkflowBuilder(start_executor=start)
    await builder.add_fan_out_edges(start, [target("b"), target("c")], copy=copy).build().run("x")
    assert [each is sent for each in seen] == [not copy] * 2
    assert sent == {"lines": ["a"] if copy else ["a", "b", "c"]}
    assert [each["lines"] for each in seen] == ([["a", "b"], ["a", "c"]] if copy else [["a", "b", "c"]] * 2)


async def test_a_message_that_cannot_be_copied_for_each_target_says_where() -> None:
    @executor(id="start")
    async def start(text: str, ctx: WorkflowContext[object]) -> None:
        await ctx.send_message(threading.Lock())

    @executor(id="b")
    async def b(data: object, ctx: WorkflowContext[Any]) -> None: ...

    @executor(id="c")
    async def c(data: object, ctx: WorkflowContext[Any]) -> None: ...

    with pytest.raises(TypeError) as caught:
        await WorkflowBuilder(start_executor=start).add_fan_out_edges(start, [b, c], copy=True).build().run("x")
    assert any("copies a lock for each target" in note for note in caught.value.__notes__)


def test_a_group_that_copies_says_so_in_its_dictionary() -> None:
    group = FanOutEdgeGroup("a", ["b", "c"], copy=True)
    assert group.to_dict()["copy"] is True
    assert FanOutEdgeGroup.from_dict(group.to_dict()).copies
    assert "copy" not in FanOutEdgeGroup("a", ["b", "c"]).to_dict()
