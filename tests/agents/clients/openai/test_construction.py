"""Making a client: what it needs, where it finds settings, what it shows, and what loading it loads."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench.agents.clients.openai.settings import (
    Target,
    find_target,
    is_private,
    split_credentials,
    validate_key,
)
from agentbench.agents.model.layers import ChatMiddlewareLayer, FunctionInvocationLayer
from agentbench.agents.telemetry.layers import ChatTelemetryLayer
from agentbench.exceptions import ChatClientException, MissingExtraError, SettingNotFoundError
from agentbench.openai import (
    OpenAIChatClient,
    OpenAIChatCompletionClient,
    OpenAIEmbeddingClient,
    OpenAIResponsesClient,
    RawOpenAIChatClient,
    RawOpenAIChatCompletionClient,
)
from tests.parts.errors import raises
from tests.servers import openai_wire as wire
from tests.servers.openai_server import OpenAIServer, reply

KEY = "sk-very-secret-1234"
ALL = [OpenAIChatClient, OpenAIChatCompletionClient, OpenAIResponsesClient, OpenAIEmbeddingClient]
SDK: Any = SimpleNamespace(base_url="https://given.example/v1/")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -------------------------------------------------------------------------------------------------- without the package


def test_the_module_is_imported_without_the_package_and_loads_neither_it_nor_its_http_library() -> None:
    shown = run(
        "import sys; import agentbench.openai; from agentbench.openai import OpenAIChatClient\n"
        "print([n for n in ('openai', 'httpx', 'httpx2', 'pydantic', 'dotenv', 'opentelemetry') if n in sys.modules])"
    )
    assert shown == "[]"


def test_without_the_package_a_client_says_how_to_install_it() -> None:
    shown = run(
        "import sys; sys.modules['openai'] = None\n"
        "import agentbench\n"
        "for cls in (agentbench.openai.OpenAIChatClient, agentbench.openai.OpenAIEmbeddingClient):\n"
        "    try:\n"
        "        cls('m', api_key='k')\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(type(error).__name__, error)\n"
    )
    assert shown.count("MissingExtraError openai is not installed") == 2
    assert shown.count('[openai]"') == 2


async def test_a_package_that_is_too_old_for_an_api_is_an_error() -> None:
    client = OpenAIResponsesClient("m", async_client=SDK)
    with raises(MissingExtraError, "1.66"):
        await client.get_response("hi")


# ------------------------------------------------------------------------------------------------------------- settings


def test_a_client_without_settings_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(SettingNotFoundError, "OPENAI_CHAT_MODEL", "OPENAI_MODEL"):
        OpenAIChatClient()
    monkeypatch.setenv("OPENAI_MODEL", "m")
    with raises(SettingNotFoundError, "api_key=", "OPENAI_API_KEY"):
        OpenAIChatClient()


@pytest.mark.parametrize(
    ("cls", "variables"),
    [
        (OpenAIChatClient, ["CHAT_MODEL", "MODEL"]),
        (OpenAIChatCompletionClient, ["CHAT_COMPLETION_MODEL", "MODEL"]),
        (OpenAIResponsesClient, ["RESPONSES_MODEL", "CHAT_MODEL", "MODEL"]),
        (OpenAIEmbeddingClient, ["EMBEDDING_MODEL"]),
    ],
)
def test_each_class_has_its_variables_for_the_model(
    cls: Any, variables: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingNotFoundError, match=" or ".join(f"OPENAI_{name}" for name in variables)):
        cls(async_client=SDK)
    for name in reversed(variables):
        monkeypatch.setenv(f"OPENAI_{name}", name)
        assert cls(async_client=SDK).model == name
    assert cls("given", async_client=SDK).model == "given"


def test_the_environment_chooses_the_api_of_clients_that_speak_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API", "responses")
    client = OpenAIChatClient("m", async_client=SDK)
    assert (client.api, client.STORES_BY_DEFAULT) == ("responses", True)
    assert OpenAIChatClient("m", api="chat_completions", async_client=SDK).api == "chat_completions"
    assert OpenAIChatCompletionClient("m", async_client=SDK).api == "chat_completions"
    monkeypatch.setenv("OPENAI_API", KEY)
    with raises(ValueError, "OPENAI_API") as caught:
        OpenAIChatClient("m", async_client=SDK)
    assert KEY not in str(caught.value)


def test_an_api_that_a_class_does_not_speak_is_refused() -> None:
    with raises(ValueError, "chat_completions", "responses"):
        OpenAIChatClient("m", api="grpc", async_client=SDK)  # type: ignore[arg-type]
    with raises(ValueError, "responses"):
        OpenAIResponsesClient("m", api="chat_completions", async_client=SDK)


# ---------------------------------------------------------------------------------------------------- what it is, shows


@pytest.mark.parametrize("cls", ALL)
def test_the_address_is_that_of_openai_unless_there_is_another(cls: Any) -> None:
    pytest.importorskip("openai")
    assert cls("m", api_key=KEY).service_url() == "https://api.openai.com/v1"
    assert cls("m", async_client=SDK).service_url() == "https://given.example/v1/"
    hidden = SimpleNamespace(base_url="https://me:pass@given.example/v1/")
    assert cls("m", async_client=hidden).service_url() == "https://given.example/v1/"


def test_a_client_is_written_without_its_secrets_and_made_again() -> None:
    pytest.importorskip("openai")
    client = OpenAIChatClient(
        "m",
        api="responses",
        api_key=KEY,
        org_id="org",
        base_url="https://me:pass@host.example/v1",
        instruction_role="developer",
    )
    written = client.to_dict()
    assert written == {
        "type": written["type"],
        "api": "responses",
        "model": "m",
        "org_id": "org",
        "base_url": "https://host.example/v1",
        "instruction_role": "developer",
    }
    again = OpenAIChatClient.from_dict(written, dependencies={written["type"]: {"async_client": SDK}})
    assert (again.model, again.api, again.instruction_role) == ("m", "responses", "developer")


@pytest.mark.parametrize("cls", [*ALL, RawOpenAIChatClient, RawOpenAIChatCompletionClient])
async def test_the_client_of_the_sdk_is_reachable_and_shared_with_requests(cls: Any) -> None:
    openai = pytest.importorskip("openai")
    client = cls[dict]("m", api_key=KEY)
    sdk = client.client
    assert isinstance(sdk, openai.AsyncOpenAI)
    assert client.client is sdk
    assert copy.deepcopy(client).client is sdk
    assert not {"client", "_ab_connection"} & set(client.to_dict() if hasattr(client, "to_dict") else ())
    assert "AsyncOpenAI" not in repr(client)
    assert cls("m", async_client=SDK).client is SDK
    other = pickle.loads(pickle.dumps(client))
    assert (other.model, other.client is sdk) == ("m", False)

    async def fail(**_: Any) -> Any:
        raise openai.OpenAIError("patched")

    for resource in (sdk.chat.completions, sdk.responses, sdk.embeddings):
        resource.create = fail
    request = client.get_embeddings(["x"]) if cls is OpenAIEmbeddingClient else client.get_response("x")
    with raises(ChatClientException, "patched"):
        await request


def test_a_client_of_the_sdk_that_was_reached_outside_of_a_loop_serves_the_next_loop() -> None:
    pytest.importorskip("openai")
    client = OpenAIChatClient("m", api_key=KEY)
    sdk = client.client

    async def reach() -> Any:
        return client.client

    assert asyncio.run(reach()) is sdk is not asyncio.run(reach())


async def test_layers_over_a_raw_client_run_its_tools(server: OpenAIServer) -> None:
    pytest.importorskip("openai")

    class Layered(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, RawOpenAIChatClient): ...

    def add(a: int, b: int) -> int:
        return a + b

    called = wire.completion(None, finish="tool_calls", tool_calls=[wire.call("c1", "add", '{"a": 2, "b": 3}')])
    server.answer(reply(called), reply(wire.completion("5")), reply(called))
    options = {"tools": [add]}
    async with Layered("m", base_url=server.url) as layered, RawOpenAIChatClient("m", base_url=server.url) as raw:
        assert (await layered.get_response("2 + 3?", options=options)).text == "5"
        assert (await raw.get_response("2 + 3?", options=options)).finish_reason == "tool_calls"
    assert server.bodies[1]["messages"][-1]["content"] == "5"


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
