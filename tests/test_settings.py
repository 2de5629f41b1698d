"""Settings: what fills a field, what text becomes, what is required; and strings that do not show themselves."""

# ruff: noqa: UP007, UP031, UP037, UP045 - the many spellings are what some tests are about
from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import pprint
import reprlib
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, Required, TypedDict, Union

import pytest
from typing_extensions import ReadOnly
from typing_extensions import TypedDict as ExtendedTypedDict

from agentbench._copying import isolate
from agentbench.exceptions import MissingExtraError, SettingNotFoundError
from agentbench.settings import SecretString, load_settings

KEY = "sk-real-key-goes-here"
MASKED = "SecretString('**********')"


class Settings(TypedDict, total=False):
    host: str | None
    port: int | None
    ratio: Optional[float]
    flag: bool | None
    api_key: SecretString | None
    tags: list[str] | None


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("Q_"):
            monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    pytest.importorskip("dotenv", reason="python-dotenv is not installed (extra settings)")

    def write(text: str, encoding: str = "utf-8") -> Path:
        path = tmp_path / "settings.env"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def load(**arguments: Any) -> dict[str, Any]:
    return dict(load_settings(Settings, env_prefix="Q_", **arguments))


# ------------------------------------------------------------------------------------------------------------- a secret


def test_a_secret_does_not_show_itself_in_any_repr() -> None:
    key = SecretString(KEY)
    nested = {"keys": [key, (key,)], "set": {key}}
    shown = [repr(key), f"{key!r}", "%r" % key, str([key]), repr(nested), pprint.pformat(nested), reprlib.repr(key)]
    assert shown[:3] == [MASKED] * 3
    assert [text for text in shown if KEY in text or MASKED not in text] == []
    assert repr(SecretString("")) == MASKED


def test_a_secret_is_its_text_in_every_other_respect() -> None:
    key = SecretString(KEY)
    plain = [
        str(key),
        f"{key}",
        f"{key:s}",
        "%s" % key,
        key.get_secret_value(),
        key[:],
        key + "",
        "" + key,
        key.strip(),
        key * 1,
        "".join([key]),
        key.partition("!")[0],
        key.rpartition("!")[2],
        key.removeprefix("!"),
        json.loads(json.dumps(key)),
        key.encode().decode(),
    ]
    assert plain == [KEY] * len(plain)
    assert {type(text) for text in plain} == {str}
    assert key == KEY
    assert hash(key) == hash(KEY)
    assert {KEY: 1}[key] == 1
    assert key.startswith("sk-")
    assert len(key) == 21


@pytest.mark.parametrize(
    "way",
    [lambda key: pickle.loads(pickle.dumps(key)), copy.copy, copy.deepcopy, isolate],
    ids=["pickle", "copy", "deepcopy", "isolate"],
)
def test_a_copy_of_a_secret_is_a_secret(way: Callable[[Any], Any]) -> None:
    for again in (way(SecretString(KEY)), way([SecretString(KEY)])[0]):
        assert type(again) is SecretString
        assert again == KEY


def test_ipython_shows_the_masked_form() -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    shown, _ = formatters.DisplayFormatter().format({"key": SecretString(KEY), "keys": [SecretString(KEY)]})
    alone, _ = formatters.DisplayFormatter().format(SecretString(KEY))
    assert KEY not in str(shown) + str(alone)
    assert alone["text/plain"] == MASKED


def test_a_secret_is_a_field_of_a_pydantic_model() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):  # type: ignore[name-defined]
        key: SecretString
        other: Optional[SecretString] = None

    model = Model(key=KEY, other=pydantic.SecretStr(KEY))
    assert type(model.key) is type(model.other) is SecretString
    assert KEY not in repr(model) + str(model)
    assert model.model_dump() == {"key": KEY, "other": KEY}
    assert type(model.model_dump()["key"]) is str
    assert json.loads(model.model_dump_json()) == {"key": KEY, "other": KEY}
    assert Model.model_validate_json(model.model_dump_json()) == model
    assert type(Model(key=SecretString(KEY)).key) is SecretString
    schema = Model.model_json_schema()["properties"]["key"]
    assert schema == {"type": "string", "format": "password", "writeOnly": True, "title": "Key"}
    with pytest.raises(pydantic.ValidationError):
        Model(key=5)


# ------------------------------------------------------------------------------------------------------------- priority


def test_an_argument_beats_the_file_that_beats_the_environment_that_beats_the_default(
    monkeypatch: pytest.MonkeyPatch, write: Callable[..., Path]
) -> None:
    class WithDefault(TypedDict, total=False):
        host: str | None = "default"  # type: ignore[misc]

    def host(**arguments: Any) -> Any:
        return load_settings(WithDefault, env_prefix="Q_", **arguments)["host"]

    path = write("Q_HOST=file\n")
    assert host() == "default"
    monkeypatch.setenv("Q_HOST", "environment")
    assert host() == "environment"
    assert host(env_file_path=path) == "file"
    assert host(env_file_path=str(path), host="argument") == "argument"
    assert host(env_file_path=path, host=None) == "file"


def test_an_unknown_argument_is_ignored_with_a_warning_without_its_value(caplog: pytest.LogCaptureFixture) -> None:
    assert "hots" not in load(hots=KEY)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "has no field 'hots', so the argument is ignored. Its fields: host, port" in record.getMessage()
    assert KEY not in record.getMessage()


def test_the_file_says_nothing_to_the_process(monkeypatch: pytest.MonkeyPatch, write: Callable[..., Path]) -> None:
    monkeypatch.setenv("Q_PORT", "1")
    path = write("# a comment\nQ_HOST='in the file'\nQ_FLAG\nexport Q_RATIO=0.5\nOTHER=x\n")
    before = dict(os.environ)
    assert load(env_file_path=path) == {
        "host": "in the file",
        "port": 1,
        "ratio": 0.5,
        "flag": None,
        "api_key": None,
        "tags": None,
    }
    assert dict(os.environ) == before


def test_a_file_in_another_encoding_is_refused_without_showing_it(write: Callable[..., Path]) -> None:
    path = write(f"Q_API_KEY={KEY}ü", "latin-1")
    with pytest.raises(ValueError, match="env_file_encoding") as caught:
        load(env_file_path=path)
    assert KEY not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_missing_file_is_an_error_and_so_is_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.env", tmp_path):
        with pytest.raises(FileNotFoundError, match="env_file_path"):
            load(env_file_path=path)


def test_without_python_dotenv_only_a_file_is_out_of_reach(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "dotenv", None)
    monkeypatch.setenv("Q_HOST", "here")
    assert load()["host"] == "here"
    path = tmp_path / ".env"
    path.write_text("Q_HOST=there")
    with pytest.raises(MissingExtraError, match=r"agentbench\[settings\]") as caught:
        load(env_file_path=path)
    assert (caught.value.extra, caught.value.package) == ("settings", "dotenv")


# ------------------------------------------------------------------------------------------------- checks of arguments


@pytest.mark.parametrize(
    ("name", "value", "expected", "actual"),
    [
        ("host", {}, "str", "dict"),
        ("port", "8080", "int", "str"),
        ("ratio", "0.5", "float", "str"),
        ("flag", "yes", "bool", "str"),
        ("api_key", b"sk", "SecretString", "bytes"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused(name: str, value: Any, expected: str, actual: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' .*{expected}.*{actual}") as caught:
        load(**{name: value})
    assert f"Q_{name.upper()}" in str(caught.value)


# ------------------------------------------------------------------------------------------------------- what text says


def test_text_becomes_what_the_field_says(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cases: list[Any] = [
        ("host", " as it is ", " as it is "),
        ("port", "8080", 8080),
        ("port", " -1 ", -1),
        ("ratio", "0.7", 0.7),
        ("ratio", "1", 1.0),
        ("tags", "a,b", "a,b"),
        ("flag", " Yes ", True),
        ("flag", "", False),
    ]
    for name, text, value in cases:
        monkeypatch.setenv(f"Q_{name.upper()}", text)
        found = load()[name]
        assert found == value
        assert type(found) is type(value)
        assert caplog.records == []


def test_text_that_says_nothing_of_the_kind_is_warned_of_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cases: list[Any] = [
        ("port", "abc", "abc"),
        ("port", "", ""),
        ("ratio", "0,7", "0,7"),
        ("flag", "maybe", False),
        ("flag", "2", False),
    ]
    for name, text, value in cases:
        variable = f"Q_{name.upper()}"
        monkeypatch.setenv(variable, text)
        assert load()[name] == value
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert variable in record.getMessage()
        assert not text or text not in record.getMessage().split()
        monkeypatch.delenv(variable)
        caplog.clear()


def test_a_secret_from_outside_hides_itself(monkeypatch: pytest.MonkeyPatch, write: Callable[..., Path]) -> None:
    path = write(f"Q_API_KEY={KEY}")
    from_file = load(env_file_path=path)
    monkeypatch.setenv("Q_API_KEY", KEY)
    for found in (load(), from_file):
        assert type(found["api_key"]) is SecretString
        assert found["api_key"] == KEY
        assert KEY not in repr(found)


def test_of_several_types_the_first_that_fits_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[Any] = [
        (Union[int, str], "5", 5),
        (Union[str, int], "5", "5"),
        (Union[int, float], "5", 5),
        (Union[int, float], "5.5", 5.5),
        (Union[bool, int], "5", 5),
        (Union[bool, str], "maybe", "maybe"),
        (Union[list[str], int], "5", 5),
        (Literal["a", "b"], "c", "c"),
        (Any, "c", "c"),
        (Path, "/tmp", "/tmp"),
        (NewType("Port", int), "5", 5),
        (Annotated[int, "of a server"], "5", 5),
        (ReadOnly[int], "5", 5),
        (Required[Annotated[Union[int, None], "x"]], "5", 5),
    ]
    make: Any = ExtendedTypedDict
    for annotation, text, value in cases:
        settings_type = make("settings_type", {"field": annotation}, total=False)
        monkeypatch.setenv("Q_FIELD", text)
        found = load_settings(settings_type, env_prefix="Q_")["field"]
        assert found == value
        assert type(found) is type(value)


# ------------------------------------------------------------------------------------------------------------- defaults


def test_defaults_of_bases_count_and_the_nearest_wins() -> None:
    class Base(ExtendedTypedDict, total=False):
        host: str = "base"  # type: ignore[misc]
        port: int = 1  # type: ignore[misc]
        items: str

    class Left(Base, total=False):
        flag: bool = True  # type: ignore[misc]

    class Right(Base, total=False):
        port: int = 2  # type: ignore[misc]

    class Both(Left, Right, total=False):
        ratio: float

    assert load_settings(Both, env_prefix="Q_") == {
        "host": "base",
        "port": 2,
        "items": None,
        "flag": True,
        "ratio": None,
    }


def test_postponed_annotations_are_understood_where_the_class_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class Level(int):
        pass

    class Local(TypedDict, total=False):
        level: Level | None
        port: Optional["int"]
        key: NotRequired[SecretString]

    monkeypatch.setenv("Q_PORT", "5")
    monkeypatch.setenv("Q_KEY", KEY)
    found = load_settings(Local, env_prefix="Q_", level=Level(3))
    assert found == {"level": 3, "port": 5, "key": KEY}
    assert KEY not in repr(found)
    with pytest.raises(ValueError, match="'level'"):
        load_settings(Local, level="3")


# ------------------------------------------------------------------------------------------------------------- required


def test_a_required_field_has_to_have_a_value() -> None:
    with pytest.raises(SettingNotFoundError, match=r"'host' .* host=\.\.\., .* Q_HOST"):
        load(required_fields=["host"])
    assert load(required_fields=["host"], host="h")["host"] == "h"
    assert load(required_fields=["port", "flag"], port=0, flag=False)["port"] == 0
    with pytest.raises(SettingNotFoundError, match="Q_HOST"):
        load(required_fields="host")


def test_an_empty_text_counts_as_set_and_is_warned_of_unless_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("Q_API_KEY", "")
    assert load(required_fields=["api_key"])["api_key"] == ""
    assert "'api_key'" in caplog.text
    for empty in (None, " "):
        with pytest.raises(SettingNotFoundError, match=r"empty.*Q_API_KEY"):
            load(required_fields=["api_key"], require_non_empty=True, api_key=empty)
    assert load(required_fields=["api_key"], require_non_empty=True, api_key="x")["api_key"] == "x"
    assert load(required_fields=["port"], require_non_empty=True, port=0)["port"] == 0


def test_of_a_group_exactly_one_has_a_value() -> None:
    group = [("host", "api_key")]
    with pytest.raises(SettingNotFoundError, match=r"Q_HOST.*Q_API_KEY"):
        load(required_fields=group)
    assert load(required_fields=group, host="h")["host"] == "h"
    with pytest.raises(SettingNotFoundError, match="'host', 'api_key'") as caught:
        load(required_fields=group, host="h", api_key=KEY)
    assert KEY not in str(caught.value)


# ------------------------------------------------------------------------------------------------------ what is loaded


def test_settings_load_neither_pydantic_nor_dotenv_by_themselves() -> None:
    program = textwrap.dedent("""
        import sys
        from typing import TypedDict
        from agentbench import SecretString, load_settings

        class S(TypedDict, total=False):
            key: SecretString

        load_settings(S, key="x")
        print([name for name in ("pydantic", "pydantic_core", "dotenv", "typing_extensions") if name in sys.modules])
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_an_empty_member_of_a_group_may_count_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("Q_HOST", "")
    group = [("host", "api_key")]
    with pytest.raises(SettingNotFoundError, match="'host', 'api_key'"):
        load(required_fields=group, api_key=KEY)
    assert load(required_fields=group, api_key=KEY, require_non_empty=True)["api_key"] == KEY


def test_a_secret_is_masked_in_rich_and_html() -> None:
    key = SecretString(KEY)
    assert list(key.__rich_repr__()) == ["**********"]
    assert KEY not in key._repr_html_()
    assert "**********" in key._repr_html_()
