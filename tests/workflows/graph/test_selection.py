import asyncio
import logging

import pytest

from agentbench.workflows.graph.edge_groups import EdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup, SwitchSelection

Case, Default = SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault


def always(data):
    return True


def never(data):
    return False


def broken(data):
    raise KeyError(data)


def select(group, data=None):
    return asyncio.run(group.select(data))


# ------------------------------------------------------------------------------------------------------------- fan-out


@pytest.mark.parametrize("targets", [[], ["b"]])
def test_a_fan_out_needs_two_targets(targets):
    with pytest.raises(ValueError, match="at least two target ids"):
        FanOutEdgeGroup("a", targets)


def test_a_fan_out_names_each_target_once():
    with pytest.raises(ValueError, match=r"\['b'\] more than once"):
        FanOutEdgeGroup("a", ["b", "c", "b"])


def test_a_text_is_no_list_of_targets():
    with pytest.raises(TypeError, match="got the text 'bc'"):
        FanOutEdgeGroup("a", "bc")


def test_a_selection_function_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="selection function of the fan-out from 'a'"):
        FanOutEdgeGroup("a", ["b", "c"], "b")  # type: ignore[arg-type]


def test_a_fan_out_lists_its_ends():
    group = FanOutEdgeGroup("sensor", ["db", "cache", "audit"])
    assert group.source_executor_ids == ["sensor"]
    assert group.target_executor_ids == group.target_ids == ["db", "cache", "audit"]
    assert [edge.id for edge in group.edges] == ["sensor->db", "sensor->cache", "sensor->audit"]


def test_the_list_of_targets_is_a_copy():
    group = FanOutEdgeGroup("a", ["b", "c"])
    group.target_ids.clear()
    assert group.target_ids == ["b", "c"]


def test_a_fan_out_without_function_reaches_everyone():
    assert select(FanOutEdgeGroup("a", ["b", "c"])) == ["b", "c"]


def test_a_selection_function_gets_the_data_and_its_own_list_of_targets():
    seen = []

    def pick(data, targets):
        seen.append((data, list(targets)))
        targets.pop()
        return targets

    group = FanOutEdgeGroup("a", ["b", "c"], pick)
    assert select(group, 7) == select(group, 7) == ["b"]
    assert seen == [(7, ["b", "c"])] * 2


def test_an_async_selection_function_is_awaited():
    async def pick(data, targets):
        await asyncio.sleep(0)
        return targets[1:]

    assert select(FanOutEdgeGroup("a", ["b", "c"], pick)) == ["c"]


def test_an_empty_selection_chooses_nobody_and_a_repeated_id_counts_once():
    assert select(FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: [])) == []
    assert select(FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: ("c", "b", "c"))) == ["c", "b"]


def test_selecting_an_id_outside_the_group_says_what_the_group_reaches():
    group = FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: ["b", "z"], selection_func_name="by_tag")
    with pytest.raises(RuntimeError, match=r"'by_tag'.*chose \['z'\].*targets are \['b', 'c'\]"):
        select(group)


@pytest.mark.parametrize("answer", ["b", None, 3])
def test_a_selection_that_is_no_list_of_ids_is_refused(answer):
    with pytest.raises(RuntimeError, match="must return a list"):
        select(FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: answer))


def test_an_exception_of_the_selection_function_reaches_the_caller():
    def pick(data, targets):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        select(FanOutEdgeGroup("a", ["b", "c"], pick))


def test_a_given_function_name_wins():
    group = FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: targets, selection_func_name="N")
    assert group.to_dict()["selection_func_name"] == "N"
    assert FanOutEdgeGroup("a", ["b", "c"], lambda d, t: t).to_dict()["selection_func_name"] == "<lambda>"
    assert FanOutEdgeGroup("a", ["b", "c"]).to_dict()["selection_func_name"] is None


def test_a_fan_out_read_back_refuses_to_select_without_its_function():
    group = EdgeGroup.from_dict(FanOutEdgeGroup("a", ["b", "c"], lambda d, t: t, selection_func_name="N").to_dict())
    assert isinstance(group, FanOutEdgeGroup)
    with pytest.raises(RuntimeError, match="selection function 'N' of fan-out group"):
        select(group)


def test_a_broadcast_read_back_still_broadcasts():
    group = EdgeGroup.from_dict(FanOutEdgeGroup("a", ["b", "c"]).to_dict())
    assert isinstance(group, FanOutEdgeGroup)
    assert group.selection_func is None
    assert select(group) == ["b", "c"]


# -------------------------------------------------------------------------------------------------------------- switch


@pytest.mark.parametrize(
    ("cases", "complaint"),
    [
        ([], "0 case"),
        ([Default("d")], "1 case"),
        ([Case(always, "x"), Case(always, "y")], "0 defaults"),
        ([Default("d"), Default("e")], "2 defaults"),
    ],
)
def test_a_switch_needs_a_case_and_exactly_one_default(cases, complaint):
    with pytest.raises(ValueError, match=complaint):
        SwitchCaseEdgeGroup("a", cases)


def test_a_switch_refuses_what_is_no_case():
    with pytest.raises(TypeError, match="as a case"):
        SwitchCaseEdgeGroup("a", ["x", Default("d")])  # type: ignore[list-item]


def test_a_default_that_is_not_last_is_warned_about_and_still_asked_last(caplog):
    with caplog.at_level(logging.WARNING):
        group = SwitchCaseEdgeGroup("a", [Default("d"), Case(always, "x")])
    assert "not its last case" in caplog.text
    assert select(group).target_id == "x"


def test_a_default_in_the_last_place_is_not_warned_about(caplog):
    with caplog.at_level(logging.WARNING):
        SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")])
    assert caplog.text == ""


def test_the_first_case_that_holds_wins():
    group = SwitchCaseEdgeGroup("a", [Case(never, "x"), Case(always, "y"), Case(always, "z"), Default("d")])
    assert select(group) == SwitchSelection("y", "always", ())


def test_the_default_takes_what_no_case_takes():
    assert select(SwitchCaseEdgeGroup("a", [Case(never, "x"), Default("d")])) == SwitchSelection("d", "default", ())


def test_an_async_condition_is_awaited():
    async def is_even(data):
        await asyncio.sleep(0)
        return data % 2 == 0

    group = SwitchCaseEdgeGroup("a", [Case(is_even, "even"), Default("odd")])
    assert select(group, 2).target_id == "even"
    assert select(group, 3).target_id == "odd"


def test_a_condition_that_raises_counts_as_false_and_is_reported(caplog):
    group = SwitchCaseEdgeGroup("a", [Case(broken, "x"), Case(always, "y"), Default("d")])
    with caplog.at_level(logging.WARNING):
        target_id, case_name, warnings = select(group, "tag")
    assert (target_id, case_name) == ("y", "always")
    assert len(warnings) == 1
    assert "'broken'" in warnings[0]
    assert "KeyError: 'tag'" in warnings[0]
    assert warnings[0] in caplog.text


def test_an_async_condition_that_raises_counts_as_false():
    async def late(data):
        await asyncio.sleep(0)
        raise ValueError(data)

    selection = select(SwitchCaseEdgeGroup("a", [Case(late, "x"), Default("d")]), 1)
    assert (selection.target_id, len(selection.warnings)) == ("d", 1)


def test_the_default_takes_it_when_all_conditions_raise():
    selection = select(SwitchCaseEdgeGroup("a", [Case(broken, "x"), Case(broken, "y"), Default("d")]), 1)
    assert (selection.target_id, len(selection.warnings)) == ("d", 2)


def test_cancellation_inside_a_condition_is_not_swallowed():
    async def cancelled(data):
        raise asyncio.CancelledError

    async def main():
        await SwitchCaseEdgeGroup("a", [Case(cancelled, "x"), Default("d")]).select(1)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def test_two_cases_with_one_target_share_one_edge():
    group = SwitchCaseEdgeGroup("a", [Case(never, "x"), Case(always, "x"), Default("d")])
    assert [edge.id for edge in group.edges] == ["a->x", "a->d"]
    assert group.target_ids == ["x", "d"]
    assert [case.target_id for case in group.cases] == ["x", "x", "d"]


def test_a_switch_whose_branches_all_lead_to_one_target_is_legal():
    group = SwitchCaseEdgeGroup("a", [Case(never, "x"), Default("x")])
    assert [edge.id for edge in group.edges] == ["a->x"]


def test_a_switch_can_be_used_as_a_selection_function():
    group = SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")])

    async def main():
        return await group.selection_func(1, group.target_ids)  # type: ignore[misc]

    assert asyncio.run(main()) == ["x"]


def test_a_switch_writes_its_cases_and_no_selection_function():
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


def test_a_switch_read_back_refuses_to_decide_and_names_the_missing_condition():
    group = EdgeGroup.from_dict(SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")]).to_dict())
    assert isinstance(group, SwitchCaseEdgeGroup)
    assert group.default == Default("d")
    with pytest.raises(RuntimeError, match="'always'"):
        select(group)


def test_a_case_that_was_built_without_condition_fails_the_decision():
    with pytest.raises(RuntimeError, match="switch case to 'x'"):
        select(SwitchCaseEdgeGroup("a", [Case(None, "x"), Default("d")]))


def test_a_deep_clone_has_cases_of_its_own_and_decides_alike():
    group = SwitchCaseEdgeGroup("a", [Case(always, "x"), Default("d")])
    fresh = group.clone()
    assert fresh.to_dict() == group.to_dict()
    assert fresh.default is not group.default
    assert fresh.cases[0] is not group.cases[0]
    assert select(fresh) == select(group)
    assert group.clone(deep=False).cases[0] is group.cases[0]
