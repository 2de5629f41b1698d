import pytest

from agentbench.workflows.graph.edges import Case, Default, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault


def is_spam(data: str) -> bool:
    return "spam" in data


def test_a_case_writes_target_kind_and_condition_name():
    assert SwitchCaseEdgeGroupCase(is_spam, "bin").to_dict() == {
        "target_id": "bin",
        "type": "Case",
        "condition_name": "is_spam",
    }


def test_a_given_condition_name_wins_over_that_of_the_callable():
    case = SwitchCaseEdgeGroupCase(is_spam, "bin", condition_name="looks like spam")
    assert case.condition_name == "looks like spam"
    assert case.condition is is_spam


def test_a_case_without_condition_raises_when_it_is_asked():
    case = SwitchCaseEdgeGroupCase(None, "bin")
    assert case.to_dict() == {"target_id": "bin", "type": "Case"}
    with pytest.raises(RuntimeError, match="switch case to 'bin'"):
        case.condition("x")


def test_a_case_read_back_names_its_missing_condition():
    case = SwitchCaseEdgeGroupCase.from_json(SwitchCaseEdgeGroupCase(is_spam, "bin").to_json())
    assert case == SwitchCaseEdgeGroupCase(is_spam, "bin")
    with pytest.raises(RuntimeError, match="'is_spam'"):
        case.condition("x")


def test_a_condition_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="switch case to 'bin' is 'spam'"):
        SwitchCaseEdgeGroupCase("spam", "bin")  # type: ignore[arg-type]


def test_a_default_writes_target_and_kind():
    default = SwitchCaseEdgeGroupDefault("inbox")
    assert default.to_dict() == {"target_id": "inbox", "type": "Default"}
    assert SwitchCaseEdgeGroupDefault.from_dict(default.to_dict()) == default


@pytest.mark.parametrize("make", [lambda: SwitchCaseEdgeGroupCase(is_spam, ""), lambda: SwitchCaseEdgeGroupDefault("")])
def test_a_branch_without_target_is_refused(make):
    with pytest.raises(ValueError, match="id of its target"):
        make()


def test_branches_are_equal_by_target_and_condition_name():
    assert SwitchCaseEdgeGroupCase(lambda d: True, "x") == SwitchCaseEdgeGroupCase(lambda d: False, "x")
    assert SwitchCaseEdgeGroupCase(is_spam, "x") != SwitchCaseEdgeGroupCase(is_spam, "y")
    assert SwitchCaseEdgeGroupDefault("x") != SwitchCaseEdgeGroupCase(is_spam, "x")
    assert SwitchCaseEdgeGroupDefault("x") != SwitchCaseEdgeGroupDefault("y")
    assert len({SwitchCaseEdgeGroupCase(is_spam, "x"), SwitchCaseEdgeGroupCase(is_spam, "x")}) == 1
    assert len({SwitchCaseEdgeGroupDefault("x"), SwitchCaseEdgeGroupDefault("x")}) == 1
    assert SwitchCaseEdgeGroupCase(is_spam, "x") != "x"


def test_reprs_name_condition_and_target():
    target = object()
    assert repr(SwitchCaseEdgeGroupCase(is_spam, "bin")) == "SwitchCaseEdgeGroupCase(is_spam -> 'bin')"
    assert repr(SwitchCaseEdgeGroupDefault("in")) == "SwitchCaseEdgeGroupDefault('in')"
    assert repr(Case(is_spam, target)) == f"Case(is_spam, {target!r})"
    assert repr(Case(is_spam, target, condition_name="n")) == f"Case(n, {target!r})"
    assert repr(Default(target)) == f"Default({target!r})"
