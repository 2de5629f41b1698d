from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import FormInvalid
from agentbench.notebook.form_fields import field_for
from agentbench.notebook.form_model import FormModel, FormState
from agentbench.notebook.form_types import shape_of_type


def model_of(**annotations: Any) -> FormModel:
    return FormModel([field_for(annotation, path=path) for path, annotation in annotations.items()], dict)


def test_what_was_typed_stays_after_a_failed_try():
    model = model_of(a=int, b=str)
    model.set_raw({"a": "1,5", "b": "text"})
    with pytest.raises(FormInvalid) as caught:
        model.begin_sending()
    assert list(caught.value.errors) == ["a"]
    assert model.state is FormState.INVALID
    assert model.raw == {"a": "1,5", "b": "text"}


def test_only_touched_fields_complain_before_the_first_try():
    model = model_of(a=int, b=int)
    model.set_raw({"a": "x"})
    assert not model.validate()
    assert list(model.errors) == ["a", "b"]
    assert list(model.visible_errors) == ["a"]
    with pytest.raises(FormInvalid):
        model.begin_sending()
    assert list(model.visible_errors) == ["a", "b"]


def test_an_untouched_field_is_no_empty_text():
    model = model_of(a=str)
    with pytest.raises(FormInvalid):
        model.value()
    model.set_raw({"a": ""})
    assert model.value() == {"a": ""}


def test_typing_again_takes_back_the_complaint_and_the_state():
    model = model_of(a=int)
    with pytest.raises(FormInvalid):
        model.begin_sending()
    model.set_raw({"a": "1"})
    assert (model.state, model.errors) == (FormState.EDITING, {})


def test_an_unknown_field_or_a_value_that_is_no_text_changes_nothing():
    model = model_of(a=int, b=int)
    with pytest.raises(KeyError, match="'a', 'b'"):
        model.set_raw({"a": "1", "c": "2"})
    with pytest.raises(TypeError, match="int 2"):
        model.set_raw({"a": "1", "b": 2})  # type: ignore[dict-item]
    assert model.raw == {}


def test_a_sent_answer_stays_until_it_is_accepted_and_is_then_dropped():
    model = model_of(a=int)
    model.set_raw({"a": "4"})
    answer = model.begin_sending()
    assert (answer, model.state, model.live, model.raw) == ({"a": 4}, FormState.SENDING, False, {"a": "4"})
    model.accept(answer, "now")
    assert (model.state, model.value(), model.raw) == (FormState.ANSWERED, {"a": 4}, {})


def test_a_refused_answer_is_in_the_fields_again_with_the_reason():
    model = model_of(a=int)
    model.set_raw({"a": "4"})
    model.begin_sending()
    model.refuse("not today")
    assert (model.state, model.refusal, model.live, model.raw) == (FormState.REFUSED, "not today", True, {"a": "4"})
    model.begin_sending()
    assert model.refusal == ""


def test_overrides_count_once_and_change_no_field():
    model = model_of(a=int)
    model.set_raw({"a": "1"})
    assert model.begin_sending({"a": "2"}) == {"a": 2}
    assert model.raw == {"a": "1"}


def test_an_expired_form_holds_nothing():
    model = model_of(a=int)
    model.set_raw({"a": "1"})
    model.expire()
    assert (model.state, model.live, model.raw) == (FormState.EXPIRED, False, {})


def test_a_check_across_fields_runs_once_each_field_is_fine():
    def ordered(values: Any) -> dict[str, str]:
        return {} if values["low"] < values["high"] else {"high": "Must be above low."}

    fields = [field_for(int, path="low"), field_for(int, path="high")]
    model = FormModel(fields, dict, check=ordered)
    model.set_raw({"low": "3"})
    model.validate()
    assert model.errors == {"high": "An answer is needed here."}
    model.set_raw({"high": "2"})
    model.validate()
    assert model.errors == {"high": "Must be above low."}


def test_an_optional_field_may_stay_empty_but_not_hold_nonsense():
    model = FormModel([replace(field_for(int, path="a"), required=False)], dict)
    assert model.value() == {}
    model.set_raw({"a": "x"})
    assert not model.validate()


def test_listeners_hear_which_fields_changed_and_who_typed():
    model = model_of(a=int, b=int)
    heard: list[Any] = []
    stop = model.on_change(lambda change: heard.append(([draft.key for draft in change.texts], change.origin)))
    model.set_raw({"b": "1"}, origin="view-1")
    model.validate()
    stop()
    stop()
    model.set_raw({"a": "1"})
    assert heard == [(["b"], "view-1"), ([], None)]


def test_an_accepted_answer_can_be_changed():
    model = FormModel(shape_of_type(int), lambda value: value)
    model.set_raw({"value": "4"})
    model.accept(model.begin_sending(), None)
    model.reopen()
    assert (model.state, model.raw) == (FormState.EDITING, {"value": "4"})


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.none() | st.text()), max_size=20))
def test_no_check_ever_changes_what_was_typed(steps: list[tuple[str, str | None]]):
    model = model_of(a=int | None, b=float)
    typed: dict[str, str | None] = {}
    for path, text in steps:
        model.set_raw({path: text})
        typed[path] = text
        valid = model.validate()
        assert model.raw == typed
        if valid:
            model.value()
        else:
            with pytest.raises(FormInvalid):
                model.value()


def test_states_print_as_their_text():
    assert f"{FormState.EDITING}" == "editing"
    assert {FormState.ANSWERED} == {"answered"}
