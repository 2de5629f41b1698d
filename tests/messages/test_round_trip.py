"""Whatever is written comes back as it was."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import KINDS
from agentbench.messages.record import Record
from agentbench.serialization.json_text import from_json, to_json
from tests.messages.samples import BY_FACTORY, contents, records


def test_there_is_a_sample_of_every_factory_and_so_of_every_kind() -> None:
    assert {name for name in dir(Content) if name.startswith("from_")} - {"from_dict"} == set(BY_FACTORY)
    assert len(KINDS) == len(BY_FACTORY)


@pytest.mark.parametrize("name", BY_FACTORY)
def test_every_kind_of_content_comes_back_from_its_dictionary_and_from_json(name: str) -> None:
    @given(BY_FACTORY[name])
    def check(content: Content) -> None:
        assert content.type in KINDS
        assert Content.from_dict(content.to_dict()) == content
        assert Content.from_dict(json.loads(json.dumps(content.to_dict()))) == content
        assert Content.from_dict(content.to_dict(exclude_none=False)) == content

    check()


@given(records)
def test_every_message_response_and_update_comes_back_from_its_dictionary_and_from_json(record: Record) -> None:
    cls = type(record)
    again = cls.from_dict(record.to_dict())
    assert again == record
    assert again.to_dict() == record.to_dict()
    assert cls.from_json(record.to_json()) == record
    assert cls.from_dict(record.to_dict(exclude_none=False)) == record


@given(contents | records)
def test_everything_comes_back_from_a_checkpoint(value: Any) -> None:
    again = from_json(to_json(value))
    assert again == value
    assert again.to_dict() == value.to_dict()


@given(contents | records)
def test_copies_are_equal_and_pickle_retains_everything(value: Any) -> None:
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


@given(contents | records)
def test_a_repr_is_one_line_that_begins_with_the_class_and_shows_no_address(value: Any) -> None:
    shown = repr(value)
    assert shown.startswith(type(value).__name__ + "(")
    assert "\n" not in shown
    assert " at 0x" not in shown


@given(st.lists(contents, max_size=4))
def test_a_dictionary_shares_no_list_and_no_dictionary_with_its_content(given_contents: list[Content]) -> None:
    for content in given_contents:
        before = content.to_dict()
        _scribble(content.to_dict())
        assert content.to_dict() == before


def _scribble(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _scribble(item)
        value["scribbled"] = True
    elif isinstance(value, list):
        for item in value:
            _scribble(item)
        value.append("scribbled")
