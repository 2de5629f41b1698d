"""A view of a list that only grows: what it held at one moment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.workflows.run.list_view import ListView


@given(st.lists(st.integers()), st.lists(st.integers()), st.slices(12))
def test_what_is_added_later_is_not_seen(now: list[int], later: list[int], part: slice) -> None:
    items = list(now)
    view = ListView(items)
    items += later
    assert (list(view), len(view), view[part], repr(view)) == (now, len(now), now[part], f"ListView({now})")


def test_there_is_nothing_beyond_its_end() -> None:
    items = [1, 2]
    view = ListView(items)
    items.append(3)
    assert (view[-1], view[1]) == (2, 2)
    with pytest.raises(IndexError):
        view[2]
