from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from agentbench import AgentExecutorResponse, AgentResponse, AgentResponseUpdate, Content, Message
from agentbench._secrets import mask_secrets
from agentbench.notebook.text.redact import fields_of, line_preview, preview


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
