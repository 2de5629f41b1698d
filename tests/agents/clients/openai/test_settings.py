"""Model, address and key: where they are found, what is refused, what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentbench.agents.clients.openai.settings import (
    Target,
    find_target,
    is_private,
    split_credentials,
    validate_key,
)
from agentbench.exceptions import SettingNotFoundError
from tests.parts.errors import raises

VARIABLES = (
    *("API_KEY", "ORG_ID", "BASE_URL", "MODEL", "CHAT_MODEL"),
    *("CHAT_COMPLETION_MODEL", "RESPONSES_MODEL", "EMBEDDING_MODEL"),
)
SECRET = "sk-very-secret-1234"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)


def test_arguments_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(f"OPENAI_{name}", "http://other.example/v1")
    found = find_target("m", ("model",), api_key=SECRET, org_id="org", base_url="http://host.example/v1")
    assert found == Target("m", validate_key(SECRET), "org", "http://host.example/v1")


def test_settings_without_an_argument_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://host.example/v1")
    monkeypatch.setenv("OPENAI_MODEL", "m")
    assert find_target(None, ("model",)) == Target("m", validate_key(SECRET), "org", "https://host.example/v1")


def test_a_file_of_settings_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("dotenv")
    monkeypatch.setenv("OPENAI_MODEL", "from-environment")
    file = tmp_path / "settings.env"
    file.write_text(f"OPENAI_MODEL=from-file\nOPENAI_API_KEY={SECRET}\n", encoding="utf-8")
    found = find_target(None, ("model",), env_file_path=file)
    assert (found.model, found.api_key) == ("from-file", SECRET)


def test_servers_near_by_need_no_key() -> None:
    hosts = ("localhost:8000", "LOCALHOST", "models.localhost", "127.8.9.10:1234", "[::1]:8080", "0.0.0.0:8000")
    private = ("10.1.2.3", "172.16.0.9", "192.168.178.20:11434", "169.254.1.1", "[fd00::1]", "[fe80::1%25eth0]")
    for host in (*hosts, *private, "ollama:11434", "host.docker.internal:11434", "box.local"):
        url = f"http://{host}/v1"
        assert is_private(url), url
        assert find_target("m", ("model",), base_url=url).api_key is None


def test_other_servers_need_a_key() -> None:
    hosts = ("api.openai.com", "8.8.8.8", "172.32.0.1", "localhost.example.com", "127.0.0.1.example.com")
    for host in (*hosts, "example.com/?host=localhost"):
        assert not is_private(f"https://{host}/v1"), host
        with pytest.raises(SettingNotFoundError):
            find_target("m", ("model",), base_url=f"https://{host}/v1")
    assert not is_private("https://localhost@example.com/v1")


def test_blanks_around_a_key_are_cut_off() -> None:
    assert find_target("m", ("model",), api_key=f" {SECRET}\n").api_key == SECRET


@pytest.mark.parametrize("key", ["sk-a\nb-1234", "sk-ä-1234", "sk a-1234", "sk-\x7f-1234"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_displayed(key: str) -> None:
    with raises(ValueError, "position") as caught:
        validate_key(key)
    assert "1234" not in str(caught.value)


def test_credentials_in_an_address_become_a_header() -> None:
    url, basic = split_credentials("https://me:pa%2Fss@host.example:8443/v1?x=1")
    assert url == "https://host.example:8443/v1?x=1"
    assert basic == "Basic bWU6cGEvc3M="
    assert "bWU6" not in repr(basic)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1", "me:pa$$word@host/v1"])
def test_what_is_no_address_is_refused_without_showing_a_password(url: str) -> None:
    with raises(ValueError, "base_url") as caught:
        split_credentials(url)
    assert "pa$$word" not in str(caught.value)
