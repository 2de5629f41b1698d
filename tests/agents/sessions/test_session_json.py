"""How each kind of value is written in the state of a session, and that it comes back."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

pytest.importorskip("pydantic")

from hypothesis import HealthCheck, Phase, given, settings
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel, SecretStr, computed_field

from agentbench import AgentResponse, AgentSession, ChatResponse, Content, Message, SecretString, register_state_type
from agentbench.serialization import class_names, registry, state_types
from tests.agents.sessions import stored_types
from tests.ids import steady
from tests.parts.errors import raises


@pytest.fixture(autouse=True)
def _own_register() -> Iterator[None]:
    """Each test registers for itself; what the library registers when it is first needed stays."""
    for module in ("agentbench.messages.state_types", "agentbench.workflows.persist.snapshot"):
        import_module(module)
    tables: list[dict[Any, Any]] = [
        class_names._REGISTERED,
        class_names._NAMES,
        state_types._BY_NAME,
        state_types._BY_IDENTIFIER,
        state_types._BY_STORED_NAME,
        state_types._OTHER_NAMES,
        state_types._WITH_FORM,
        registry._BY_CLASS,
    ]
    before = [table.copy() for table in tables]
    yield
    for table, held in zip(tables, before, strict=True):
        table.clear()
        table.update(held)


def forget_all() -> None:
    """As in a process where nothing was written or registered yet."""
    known = {name: cls for name, cls in state_types._BY_STORED_NAME.items() if name.startswith("agentbench.")}
    state_types._BY_IDENTIFIER.clear()
    state_types._BY_STORED_NAME.clear()
    state_types._BY_STORED_NAME.update(known)
    state_types._BY_IDENTIFIER["message"] = {"agentbench.Message": Message}


def written(value: Any) -> Any:
    """The JSON of a value in the state."""
    session = AgentSession(session_id="s")
    session.state["k"] = value
    return json.loads(json.dumps(session.to_dict()))["state"]["k"]


def read(data: Any) -> Any:
    return AgentSession.from_dict({"session_id": "s", "state": {"k": data}}).state["k"]


def again(value: Any) -> Any:
    return read(written(value))


class Color(Enum):
    RED = "r"


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    YES = "yes"


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Note:
    text: str
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)


class Meta(BaseModel):
    turn_count: int = 0
    topic: str = "unknown"


# ---- plain values ----------------------------------------


def test_what_json_has_is_written_as_it_is() -> None:
    values: list[Any] = ["", "ä\u2028", 0, -1, 1.5, True, False, None, [], {}, [1, [2, {"a": None}]]]
    for value in values:
        assert written(value) == value
        assert again(value) == value
        assert type(again(value)) is type(value)


def test_numbers_that_json_lacks_come_back() -> None:
    for value in (float("inf"), float("-inf"), 1 << 20_000, -(1 << 20_000)):
        text = json.dumps(AgentSession.to_dict(session_with(value)), allow_nan=False)
        assert AgentSession.from_dict(json.loads(text)).state["k"] == value


def session_with(value: Any) -> AgentSession:
    session = AgentSession()
    session.state["k"] = value
    return session


def test_what_is_written_and_read_shares_nothing_with_the_state() -> None:
    session = session_with([{"a": [1]}])
    data = session.to_dict()
    session.state["k"][0]["a"].append(2)
    restored = AgentSession.from_dict(data)
    data["state"]["k"][0]["a"].append(3)
    assert restored.state == {"k": [{"a": [1]}]}


@pytest.mark.parametrize(
    ("value", "expected"), [((1, (2,)), [1, [2]]), ({3, 1, 2}, [1, 2, 3]), (frozenset("ba"), ["a", "b"])]
)
def test_tuples_and_sets_become_lists_in_a_fixed_order(value: Any, expected: Any) -> None:
    assert written(value) == expected
    assert again(value) == expected


def test_keys_become_text() -> None:
    assert written({1: "a", None: "b", Word.YES: "d"}) == {"1": "a", "None": "b", "yes": "d"}
    assert written({True: "c", 1.5: "e"}) == {"True": "c", "1.5": "e"}


def test_two_keys_of_one_text_are_refused_rather_than_one_lost() -> None:
    with raises(TypeError, "session.state['k']['a']['1']", "1"):
        written({"a": {1: "x", "1": "y"}})


@pytest.mark.parametrize(
    "value",
    [
        datetime(2024, 1, 2, 3, 4, 5, 6),
        datetime(2024, 1, 2, tzinfo=UTC),
        datetime(2024, 1, 2, tzinfo=timezone(timedelta(hours=-3))),
        date(2024, 1, 2),
        time(1, 2),
        timedelta(days=1, microseconds=1),
        UUID(int=7),
        b"\x00\xff",
        bytearray(b"x"),
        Path("a/b"),
        Decimal("1.10"),
        Color.RED,
        Level.LOW,
        Word.YES,
        Pair(1, "a"),
        Note("a", datetime(2024, 1, 2), ("x",), {"type": "message"}),
        deque([1], maxlen=2),
        Counter("aab"),
        1 + 2j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_pythons_own_types_and_data_classes_come_back_tagged(value: Any) -> None:
    assert set(written(value)) == {"__t__", "v"}
    assert again(value) == value
    assert type(again(value)) is type(value)
    assert again([{"deep": (value,)}]) == [{"deep": [value]}]


# ---- objects with their own form ----------------------------------------


class SearchHistory:
    """As the documentation of sessions has it."""

    def __init__(self, queries: list[str]) -> None:
        self.queries = queries

    def to_dict(self) -> dict[str, Any]:
        return {"type": "search_history", "queries": self.queries}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SearchHistory:
        return cls(queries=data["queries"])


def test_an_object_is_written_as_its_own_form_with_the_name_of_its_class() -> None:
    assert written(SearchHistory(["a"])) == {
        "type": "search_history",
        "queries": ["a"],
        "__qualname__": f"{__name__}.SearchHistory",
    }


def test_an_object_comes_back_on_a_cold_start_once_its_class_is_registered() -> None:
    data = written(SearchHistory(["a"]))
    forget_all()
    assert type(read(data)) is dict
    register_state_type(SearchHistory)
    assert read(data).queries == ["a"]


def test_an_object_comes_back_from_data_that_name_only_its_type() -> None:
    register_state_type(SearchHistory)
    assert read({"type": "search_history", "queries": ["a"]}).queries == ["a"]
    assert read([{"x": {"type": "searchhistory", "queries": ["b"]}}])[0]["x"].queries == ["b"]


def test_messages_and_responses_are_known_from_the_start() -> None:
    value = {
        "m": [Message("user", ["hi"], author_name="ada", additional_properties={"at": datetime(2024, 1, 2)})],
        "c": Content.from_function_call("c1", "f", arguments={"type": "message"}),
        "r": ChatResponse(messages=[Message("assistant", ["a"])], response_id="r"),
        "a": AgentResponse(messages=[Message("assistant", ["a"])], agent_id="x"),
    }
    assert again(value) == value
    assert written(value["m"])[0]["__qualname__"] == "agentbench.Message"


def test_what_an_object_wrote_of_itself_is_not_taken_for_objects() -> None:
    """Its dictionaries may have types of their own, which another class happens to have too."""

    @register_state_type
    class Text(BaseModel):
        type: str = "text"

    assert type(read({"type": "text"})) is Text
    message = Message("user", [Content.from_text("hi")])
    assert again(message) == message
    assert written(message) == {**message.to_dict(), "__qualname__": "agentbench.Message"}
    assert read(message.to_dict()) == message


def test_an_object_with_only_to_dict_is_written_as_that_dictionary() -> None:
    class OneWay:
        def to_dict(self) -> dict[str, Any]:
            return {"a": (1, 2)}

    assert again(OneWay()) == {"a": [1, 2]}


def test_a_form_that_is_no_dictionary_or_has_keys_of_ours_comes_back() -> None:
    class Odd:
        def __init__(self, form: Any) -> None:
            self.form = form

        def to_dict(self) -> Any:
            return self.form

        @classmethod
        def from_dict(cls, data: Any) -> Any:
            return cls(data)

    for form in (["x"], {"__qualname__": "a", "type": "b"}, {"__value__": 1}, {"__t__": "tuple", "v": []}, {"type": 5}):
        found = again(Odd(form))
        assert type(found) is Odd
        assert found.form == form


def test_a_class_with_encode_and_decode_is_written_by_them() -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

        def to_dict(self) -> dict[str, Any]:
            raise NotImplementedError

    register_state_type(Point, encode=lambda point: point.x, decode=Point, identifier="tests.point")
    assert written(Point(3)) == {"__t__": "registered", "v": ["tests.point", 3]}
    assert again(Point(3)).x == 3


def test_a_class_that_moved_is_found_by_its_identifier() -> None:
    data = {**written(SearchHistory(["a"])), "__qualname__": "old_place.SearchHistory"}
    register_state_type(SearchHistory)
    assert type(read(data)) is SearchHistory


def test_the_name_of_a_class_distinguishes_classes_of_one_type(caplog: pytest.LogCaptureFixture) -> None:
    other = type("SearchHistory", (SearchHistory,), {"__module__": "elsewhere"})
    register_state_type(SearchHistory)
    with caplog.at_level(logging.WARNING, "agentbench"):
        register_state_type(other)
    assert "'search_history' now means elsewhere.SearchHistory" in caplog.text
    assert [type(each) for each in again([SearchHistory([]), other([])])] == [SearchHistory, other]


def test_two_unregistered_classes_of_one_type_come_back_each_as_itself(caplog: pytest.LogCaptureFixture) -> None:
    def made() -> Any:
        class Settings(BaseModel):
            a: int = 1

        return Settings

    one, two = made(), made()
    two.__module__ = "elsewhere"
    with caplog.at_level(logging.WARNING, "agentbench"):
        data = written([one(), two()])
    assert "Type 'settings' is written by" in caplog.text
    assert [type(each) for each in read(data)] == [one, two]


# ---- pydantic ----------------------------------------


def test_a_model_is_written_with_its_type() -> None:
    assert written(Meta(turn_count=5)) == {
        "turn_count": 5,
        "topic": "unknown",
        "type": "meta",
        "__qualname__": f"{__name__}.Meta",
    }


def test_a_model_comes_back_as_itself_and_stays_a_dictionary_where_it_is_not_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = written({"a": [Meta(turn_count=5)], "b": {"c": Meta()}})
    assert read(data) == {"a": [Meta(turn_count=5)], "b": {"c": Meta()}}
    forget_all()
    with caplog.at_level(logging.WARNING, "agentbench"):
        assert read(data)["a"][0]["turn_count"] == 5
    assert "session.state['k']['a'][0] stays a dictionary" in caplog.text
    assert "register_state_type" in caplog.text


def test_a_model_may_name_its_type_itself() -> None:
    class Preferences(BaseModel):
        language: str = "en"

        @classmethod
        def _get_type_identifier(cls) -> str:
            return "prefs"

    register_state_type(Preferences)
    assert written(Preferences())["type"] == "prefs"
    assert read({"type": "prefs", "language": "de"}) == Preferences(language="de")


def test_a_model_with_all_that_pydantic_can_restore_comes_back() -> None:
    class Shade(Enum):
        DARK = 1

    class Inner(BaseModel):
        model_config = ConfigDict(extra="allow")
        at: datetime

    class Rich(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)
        inner: Inner
        many: dict[int, list[Inner]]
        shade: Shade
        tags: frozenset[str]
        pair: tuple[int, str]
        data: bytes
        home: HttpUrl
        where: Path
        said: Message
        any: Any
        no: int = Field(alias="number")

        @computed_field  # type: ignore[prop-decorator]
        @property
        def double(self) -> int:
            return 2 * self.no

    inner = Inner(at=datetime(2024, 1, 2), type="note", more=[1])  # type: ignore[call-arg]
    rich = Rich(
        inner=inner,
        many={1: [inner]},
        shade=Shade.DARK,
        tags=frozenset("ab"),
        pair=(1, "a"),
        data=b"\xff",
        home=HttpUrl("https://example.com/"),
        where=Path("a"),
        said=Message("user", ["hi"]),
        any={"type": "message", "at": datetime(2024, 1, 2)},
        number=4,
    )
    assert again(rich) == rich
    assert "double" not in written(rich)


@pytest.mark.parametrize("root", [[1, 2], {"type": "x", "a": 1}, "text", {"__value__": 3}], ids=steady)
def test_a_root_model_comes_back(root: Any) -> None:
    class Root(RootModel[Any]):
        pass

    register_state_type(Root)
    assert again(Root(root)) == Root(root)


# ---- dictionaries that look alike ----------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"type": "message"},
        {"type": "message", "role": "user", "contents": ["x"]},
        {"type": "meta", "turn_count": 5},
        {"__t__": "tuple", "v": [1]},
        {"__t__": "plain", "v": {}},
        {"__t__": "plain", "v": {"__t__": "plain", "v": {"type": "message"}}},
        {"__t__": "unheard of", "v": 1},
        {"__t__": "tuple", "v": [1], "more": 1},
        {"__qualname__": f"{__name__}.Meta"},
        {"__qualname__": "unheard.Of", "type": "unheard"},
        {"__qualname__": "unheard.Of", "a": {"type": "message"}},
        {"__field_type__": "x", "type": "meta"},
        {"__value__": "x", "type": "meta"},
        {"type": "unheard of"},
        {"type": ["message"]},
    ],
    ids=steady,
)
def test_a_dictionary_is_never_taken_for_something_else(value: dict[str, Any]) -> None:
    register_state_type(Meta)
    assert again(value) == value
    assert again([{"a": value}]) == [{"a": value}]
    assert type(again(value)) is dict


def test_what_another_program_meant_otherwise_stays_a_dictionary(caplog: pytest.LogCaptureFixture) -> None:
    register_state_type(Meta)
    with caplog.at_level(logging.WARNING, "agentbench"):
        assert read({"type": "meta", "turn_count": "many"}) == {"type": "meta", "turn_count": "many"}
    assert "session.state['k'] stays a dictionary: " in caplog.text
    assert "many" not in caplog.text


# ---- failures ----------------------------------------


@dataclass
class Locked:
    lock: Any


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        ({"a": [1, object()]}, "session.state['k']['a'][1]", "builtins.object"),
        (threading.Lock(), "session.state['k']", "_thread.lock"),
        (lambda: 1, "session.state['k']", "register_state_type"),
        ([{"x": {3: threading.Lock()}}], "session.state['k'][0]['x'][3]", "_thread.lock"),
        ([SecretString("s3cr3t")], "session.state['k'][0]", "SecretString"),
        (type("Text", (str,), {})("x"), "session.state['k']", "Text"),
        (Locked(threading.Lock()), "session.state['k']", "_thread.lock"),
    ],
)
def test_what_cannot_be_written_is_named_with_its_place(value: Any, where: str, why: str) -> None:
    with raises(TypeError, where, why) as caught:
        written(value)
    assert "s3cr3t" not in str(caught.value)


def test_a_secret_in_a_model_is_refused_rather_than_masked_for_ever() -> None:
    class Login(BaseModel):
        password: SecretStr

    with raises(TypeError, "'k'", "password") as caught:
        written(Login(password=SecretStr("s3cr3t")))
    assert "s3cr3t" not in str(caught.value)


def test_a_model_that_holds_what_pydantic_cannot_write_is_refused() -> None:
    class Holder(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: object

    with raises(TypeError, "'k'", "thing"):
        written(Holder(thing=threading.Lock()))


def test_a_state_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with raises(TypeError, "session.state['k']"):
        written(loop)


def test_what_a_class_of_ours_does_not_accept_any_more_is_named_with_its_place() -> None:
    data = {**written(Meta()), "turn_count": "s3cr3t"}
    with raises(ValueError, "session.state['k']['a']", "ValidationError") as caught:
        read({"a": data})
    assert "s3cr3t" not in str(caught.value)


def test_a_tagged_value_that_is_damaged_is_named_with_its_place() -> None:
    with raises(ValueError, "session.state['k'][0]", "date"):
        read([{"__t__": "date", "v": "yesterday"}])


def test_a_form_that_raises_is_named() -> None:
    class Broken(SearchHistory):
        def to_dict(self) -> dict[str, Any]:
            raise ZeroDivisionError

    with raises(TypeError, "'k'", "to_dict()", "ZeroDivisionError"):
        written(Broken([]))


def test_a_session_with_a_secret_is_not_pickled_either() -> None:
    session = AgentSession(session_id="s")
    session.state["p"] = {"list": [1, "text"], "self": session.state}
    assert pickle.loads(pickle.dumps(session)).state["p"]["list"] == [1, "text"]

    session.state["p"]["list"].append(SecretString("hidden"))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with raises(TypeError, "session.state['p']['list'][2]"):
            pickle.dumps(session, protocol)
    for duplicate in (copy.copy(session), copy.deepcopy(session)):
        assert duplicate.state["p"]["list"] == [1, "text", "hidden"]


ROOT = Path(__file__).parents[3]


def same(one: Any, other: Any) -> bool:
    """Equal, with equal types all the way down: True is not 1, a session's text is no enum."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(stored_types.sessions)
def test_a_session_comes_back_as_it_was(session: AgentSession) -> None:
    written = session.to_dict()
    again = AgentSession.from_dict(json.loads(json.dumps(written)))
    assert again == session
    assert same(again.state, session.state)
    assert again.to_dict() == written


def test_a_fresh_process_that_knows_the_classes_reads_and_writes_the_same(tmp_path: Path) -> None:
    lines: list[str] = []

    @settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(stored_types.sessions)
    def generate(session: AgentSession) -> None:
        lines.append(json.dumps(session.to_dict()))

    generate()
    source, target = tmp_path / "sessions.jsonl", tmp_path / "again.jsonl"
    source.write_text("\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "tests.agents.sessions.stored_types", str(source), str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert target.read_text("utf-8").splitlines() == lines


def test_a_process_that_does_not_know_the_classes_hands_them_on_unharmed(tmp_path: Path) -> None:
    session = stored_types.session_of("s", None, {})
    session.state["m"] = [stored_types.UserPreferences(language="de"), {"deep": stored_types.SearchHistory(["q"])}]
    session.state["t"] = stored_types.Ticket(type="feature", no=3)
    session.state["u"] = stored_types.Untold(["a"])
    source, target = tmp_path / "s.json", tmp_path / "t.json"
    source.write_text(json.dumps(session.to_dict()), "utf-8")
    program = (
        "import json, sys; from agentbench import AgentSession;"
        "s = AgentSession.from_dict(json.load(open(sys.argv[1])));"
        "assert type(s.state['m'][0]) is dict and s.state['m'][0]['language'] == 'de', s.state;"
        "assert 'pydantic' not in sys.modules;"
        "json.dump(s.to_dict(), open(sys.argv[2], 'w'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(source), str(target)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert AgentSession.from_dict(json.loads(target.read_text("utf-8"))) == session
