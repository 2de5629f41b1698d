"""Values of any size as a tree of short rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook.text.value_tree import Entry, TreeRow, ValueTree


def rows(value: object, path: Sequence[int] = (0,)) -> list[TreeRow]:
    return list(ValueTree([Entry("root", value)]).level(path).rows)


def test_a_level_names_its_values_with_type_and_text() -> None:
    tree = ValueTree([Entry("count", 3), Entry("draft", {"title": "T", "words": ["a", "b"]}, "changed")])
    level = tree.level()
    assert [(row.name, row.kind, row.text, row.note, row.opens) for row in level.rows] == [
        ("count", "int", "3", "", False),
        ("draft", "dict (2)", "{'title': 'T', 'words': ['a', 'b']}", "changed", True),
    ]
    assert [row.name for row in tree.level([1]).rows] == ["title", "words"]
    assert [row.text for row in tree.level([1, 1]).rows] == ["a", "b"]


def test_a_long_level_comes_in_portions() -> None:
    tree = ValueTree([Entry("all", list(range(450)))])
    first, last = tree.level([0]), tree.level([0], 400)
    assert (len(first.rows), first.more) == (200, 250)
    assert ([row.name for row in last.rows][:2], last.more) == (["400", "401"], 0)


def test_secrets_are_neither_shown_nor_opened_nor_copied() -> None:
    tree = ValueTree([Entry("settings", {"api_key": {"value": "sk-1"}, "model": "m"})])
    key, model = tree.level([0]).rows
    assert (key.text, key.opens, model.text) == ("•••", False, "m")
    assert tree.level([0, 0]).rows == ()
    assert "sk-1" not in tree.full_text([0]) + tree.full_text([0, 0]) + tree.level().rows[0].text


class Login(NamedTuple):
    user: str
    password: str


def test_items_of_a_named_tuple_are_shown_by_their_names_and_secret_ones_masked() -> None:
    level = ValueTree([Entry("login", Login("ann", "hunter2"), path="login")]).level([0])
    assert [(row.name, row.text, row.path) for row in level.rows] == [
        ("user", "ann", "login.user"),
        ("password", "•••", None),
    ]


JSON: Any = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_every_row_that_opens_has_the_rows_that_it_promises(value: object) -> None:
    tree = ValueTree([Entry("root", value)])

    def walk(path: list[int]) -> None:
        for place, row in enumerate(tree.level(path).rows):
            below = tree.level([*path, place]).rows
            assert bool(below) == row.opens
            walk([*path, place])

    walk([])
