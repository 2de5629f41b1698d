from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from agentbench import AgentExecutorResponse, AgentResponse, AgentResponseUpdate, Content, Message
from agentbench._secrets import mask_secrets
from agentbench._text.escape import esc
from agentbench._text.phrases import duration_text
from agentbench._text.redact import fields_of, line_preview, preview
from agentbench._text.value_tree import Entry, TreeRow, ValueTree


@dataclass
class Login:
    user: str
    password: str = "hunter2"


@dataclass(frozen=True)
class Key:
    owner: str
    secret: str = "hunter2"


class Account(NamedTuple):
    user: str
    password: str = "hunter2"


class Settings(BaseModel):
    url: str
    api_key: str


def test_a_value_under_a_secret_name_is_masked_at_any_depth():
    assert mask_secrets({"a": [{"api-key": "k", "n": 1}], "Authorization": "Bearer x"}) == {
        "a": [{"api-key": "•••", "n": 1}],
        "Authorization": "•••",
    }


def test_objects_with_secret_fields_become_text_without_them():
    assert mask_secrets(Login("ann")) == "Login(user='ann', password=•••)"
    assert mask_secrets([Settings(url="u", api_key="k")]) == ["Settings(url='u', api_key=•••)"]
    assert mask_secrets((SecretStr("s"), 1)) == ("•••", 1)


HOLDERS = [
    Account("ann"),
    [Account("ann")],
    {"a": (Account("ann"),)},
    {Key("ann"), 1},
    frozenset([Account("ann")]),
    deque([Login("ann")]),
    Login("ann"),
    Settings(url="ann", api_key="hunter2"),
    {"who": "ann", b"password": "hunter2"},
    {"who": "ann", "accessToken": "hunter2"},
    type("Names", (list,), {})([{"who": "ann", "password": "hunter2"}]),
]


def test_no_holder_of_a_secret_shows_it():
    for value in HOLDERS:
        for shown in (str(mask_secrets(value)), preview(value), line_preview(value)):
            assert "hunter2" not in shown
            assert "•••" in shown
            assert "ann" in shown


def test_containers_with_a_secret_stay_containers_of_their_kind():
    assert mask_secrets(deque([Account("ann")])) == deque(["Account(user='ann', password=•••)"])
    assert mask_secrets({Account("ann"), 1}) == {"Account(user='ann', password=•••)", 1}
    plain = frozenset([("a", 1)])
    assert mask_secrets(plain) is plain


def test_a_value_inside_itself_ends_the_walk():
    loop: dict[str, Any] = {"token": "t"}
    loop["self"] = loop
    assert mask_secrets(loop) == {"token": "•••", "self": "…"}


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "password", "b", "api_key"]), inner),
    )
)
def test_no_text_under_a_secret_name_survives(value: Any):
    def texts(masked: Any) -> list[object]:
        if isinstance(masked, dict):
            return [masked[name] for name in masked if name in ("password", "api_key")] + [
                found for item in masked.values() for found in texts(item)
            ]
        return [found for item in masked for found in texts(item)] if isinstance(masked, list) else []

    assert all(found in (None, "•••") for found in texts(mask_secrets(value)))


def test_previews_are_one_line_of_limited_length():
    assert line_preview("a\n  b\tc") == "a b c"
    cut = line_preview("x" * 500)
    assert len(cut) == 120
    assert cut.endswith("…")
    assert line_preview({"password": "p", "n": 1}) == "{'password': •••, 'n': 1}"


def test_fields_of_an_object_are_those_a_person_would_name():
    @dataclass
    class Note:
        text: str
        hidden: str = field(default="h", repr=False)

    class Thing:
        def __init__(self) -> None:
            self.shown, self._inner = 1, 2

    assert dict(fields_of(Note("t"))) == {"text": "t"}
    assert dict(fields_of(Thing())) == {"shown": 1}
    assert dict(fields_of({"k": 1})) == {"k": 1}
    assert dict(fields_of(7)) == {}
    assert dict(fields_of(Note)) == {}


def test_the_arguments_of_a_models_calls_are_masked_inside_their_json():
    call = Content.from_function_call("c", "send", arguments='{"to": "Ada", "api_key": "hunter2"}')
    answer = AgentResponse(messages=[Message("assistant", [call])])
    for value in (call, [answer], AgentExecutorResponse("secretary", answer)):
        text = preview(value)
        assert "hunter2" not in text
        assert "Ada" in text
        assert "•••" in text
    harmless = Content.from_function_call("c", "send", arguments='{"to":  "Ada"}')
    assert preview(harmless) == 'calls send with {"to":  "Ada"}'
    asked = Content.from_function_approval_request("c", harmless)
    assert preview(Message("assistant", [harmless, asked])) == 'to call send with {"to":  "Ada"}'


def test_a_piece_of_streamed_arguments_is_not_shown():
    piece = Content.from_function_call("c", "send", arguments='{"api_key": "hunt')
    assert "hunt" not in preview(AgentResponseUpdate(contents=[piece]))


def test_a_table_in_a_line_is_its_size_and_its_columns():
    table = pd.DataFrame({"day": ["mon", "tue"], "mm": [3, 54]})
    assert line_preview(table) == "DataFrame, 2 rows, 2 columns: day, mm"
    assert line_preview({"rain": table}) == "{'rain': DataFrame, 2 rows, 2 columns: day, mm}"
    assert line_preview(table["mm"]) == "Series 'mm', 2 rows, int64"
    assert "54" in preview(table)  # where there is room for it, the table itself


def test_an_answer_is_what_it_says():
    message = Message("assistant", ["54 mm fell."], author_name="writer")
    response: AgentResponse[Any] = AgentResponse(messages=[message])
    node = AgentExecutorResponse("writer", response, full_conversation=[message])
    assert {line_preview(each) for each in (message, response, node)} == {"54 mm fell."}
    assert line_preview(AgentResponseUpdate(contents=[Content.from_text("54 mm")])) == "54 mm"


def test_messages_in_a_list_are_who_speaks_and_what_is_said():
    messages = [Message("user", "Go"), Message("assistant", [Content.from_text("Gone")])]
    assert preview(messages) == "[user: 'Go', assistant: 'Gone']"


# ---- escape

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Secret:
    def get_secret_value(self) -> str:
        return "hunter2"

    def __repr__(self) -> str:
        return "Secret(hunter2)"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@given(st.text())
def test_markup_never_survives_and_plain_text_comes_back(text: str):
    escaped = esc(text, limit=None)
    assert not set("<>\"'") & set(escaped)
    if "\\" not in escaped:  # nothing had to be spelled out
        assert html.unescape(escaped) == text.replace("\r\n", "\n")


@given(st.text())
def test_no_control_or_bidi_character_passes_into_any_target(text: str):
    for into in ("html", "svg", "text", "line"):
        assert not CONTROL.search(esc(text, into=into, limit=None))


def test_hidden_characters_are_spelled_out():
    assert esc("a\u202eb\x00c\U000e0041", into="text") == "a\\u202eb\\u0000c\\U000e0041"


def test_emoji_that_are_joined_stay_whole():
    assert esc("\U0001f468\u200d\U0001f469", into="text") == "\U0001f468\u200d\U0001f469"


def test_a_cut_preview_says_how_much_is_missing():
    assert esc("x" * 5000).endswith("… (2,952 more characters)")


def test_previews_of_large_values_stop_early():
    assert len(preview(list(range(10**6)))) < 200
    assert len(preview(dict.fromkeys(range(1000), "x" * 10**6), limit=500)) < 20_000


def test_previews_hold_no_memory_addresses():
    assert "0x" not in preview([object()])
    assert preview([Broken()]) == "[<Broken: its repr raised RuntimeError>]"


# ---- phrases


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0003, "0.3 ms"),
        (0.412, "412 ms"),
        (1.84, "1.8 s"),
        (59.9, "59.9 s"),
        (60, "1 min 0 s"),
        (125.9, "2 min 5 s"),
        (3720, "1 h 2 min"),
        (3_600_000, "1,000 h 0 min"),
    ],
)
def test_a_duration_is_in_units_that_people_read(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


# ---- value tree


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


class ValueTreeLogin(NamedTuple):
    user: str
    password: str


def test_items_of_a_named_tuple_are_shown_by_their_names_and_secret_ones_masked() -> None:
    level = ValueTree([Entry("login", ValueTreeLogin("ann", "hunter2"), path="login")]).level([0])
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
