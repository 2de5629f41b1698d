from __future__ import annotations

from typing import Any

import pytest

from agentbench.exceptions import FormInvalid
from agentbench.notebook.form_fields import field_for
from agentbench.notebook.form_model import FormModel, FormState


def model_of(**annotations: Any) -> FormModel:
    return FormModel([field_for(annotation, path=path) for path, annotation in annotations.items()], dict)


def test_typing_again_takes_back_the_complaint_and_the_state():
    model = model_of(a=int)
    with pytest.raises(FormInvalid):
        model.begin_sending()
    model.set_raw({"a": "1"})
    assert (model.state, model.errors) == (FormState.EDITING, {})


def test_overrides_count_once_and_change_no_field():
    model = model_of(a=int)
    model.set_raw({"a": "1"})
    assert model.begin_sending({"a": "2"}) == {"a": 2}
    assert model.raw == {"a": "1"}


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
