"""Making a client: what it needs, what it shows, what it is, and what loading it loads."""

from __future__ import annotations

import copy
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench.agents.model.protocol import (
    SupportsChatGetResponse,
    SupportsCodeInterpreterTool,
    SupportsFileSearchTool,
    SupportsImageGenerationTool,
    SupportsMCPTool,
    SupportsWebSearchTool,
)
from agentbench.exceptions import MissingExtraError, SettingNotFoundError
from agentbench.openai import (
    OpenAIChatClient,
    OpenAIChatCompletionClient,
    OpenAIEmbeddingClient,
    OpenAIResponsesClient,
)

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
        "import sys; import agentbench.openai; from agentbench import OpenAIChatClient\n"
        "print([n for n in ('openai', 'httpx', 'httpx2', 'pydantic', 'dotenv', 'opentelemetry') if n in sys.modules])"
    )
    assert shown == "[]"


def test_without_the_package_a_client_says_how_to_install_it() -> None:
    shown = run(
        "import sys; sys.modules['openai'] = None\n"
        "import agentbench\n"
        "for cls in (agentbench.OpenAIChatClient, agentbench.openai.OpenAIEmbeddingClient):\n"
        "    try:\n"
        "        cls('m', api_key='k')\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(type(error).__name__, error)\n"
    )
    assert shown.count("MissingExtraError openai is not installed") == 2
    assert shown.count('pip install "agentbench[openai]"') == 2


async def test_a_package_that_is_too_old_for_an_api_is_an_error() -> None:
    client = OpenAIResponsesClient("m", async_client=SDK)
    with pytest.raises(MissingExtraError, match=r"version 1\.66 or newer"):
        await client.get_response("hi")


# ------------------------------------------------------------------------------------------------------------- settings


def test_a_client_without_settings_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingNotFoundError, match="OPENAI_CHAT_MODEL or OPENAI_MODEL"):
        OpenAIChatClient()
    monkeypatch.setenv("OPENAI_MODEL", "m")
    with pytest.raises(SettingNotFoundError, match=r"api_key=.*OPENAI_API_KEY"):
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


def test_an_api_that_a_class_does_not_speak_is_refused() -> None:
    with pytest.raises(ValueError, match="'chat_completions' or 'responses'"):
        OpenAIChatClient("m", api="grpc", async_client=SDK)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Expected 'responses'"):
        OpenAIResponsesClient("m", api="chat_completions", async_client=SDK)


# ---------------------------------------------------------------------------------------------------- what it is, shows


def test_repr_shows_model_and_address_only() -> None:
    pytest.importorskip("openai")
    client = OpenAIChatClient(
        "m", api_key=KEY, base_url="https://me:pass@host.example/v1", default_headers={"X-A": KEY}
    )
    assert repr(client) == "OpenAIChatClient(model='m', url='https://host.example/v1')"
    assert client.service_url() == "https://host.example/v1"


@pytest.mark.parametrize("cls", ALL)
def test_the_address_is_that_of_openai_unless_there_is_another(cls: Any) -> None:
    pytest.importorskip("openai")
    assert cls("m", api_key=KEY).service_url() == "https://api.openai.com/v1"
    assert cls("m", async_client=SDK).service_url() == "https://given.example/v1/"
    hidden = SimpleNamespace(base_url="https://me:pass@given.example/v1/")
    assert cls("m", async_client=hidden).service_url() == "https://given.example/v1/"


def test_every_client_needs_the_network_and_is_known_as_openai() -> None:
    cases: list[Any] = ALL
    for cls in cases:
        assert cls.NEEDS_NETWORK is True
        assert cls.OTEL_PROVIDER_NAME == "openai"


def test_only_the_responses_api_stores_conversations() -> None:
    cases: list[Any] = [
        (OpenAIChatClient("m", async_client=SDK), False),
        (OpenAIChatClient("m", api="responses", async_client=SDK), True),
        (OpenAIChatCompletionClient("m", async_client=SDK), False),
        (OpenAIResponsesClient("m", async_client=SDK), True),
    ]
    for client, stores in cases:
        assert client.STORES_BY_DEFAULT is stores
        assert OpenAIChatClient.STORES_BY_DEFAULT is False


def test_clients_have_the_protocols_of_agents_and_tools() -> None:
    hosted: tuple[Any, ...] = (
        *(SupportsCodeInterpreterTool, SupportsFileSearchTool, SupportsImageGenerationTool, SupportsMCPTool),
    )
    for protocol in (SupportsChatGetResponse, SupportsWebSearchTool, *hosted):
        assert isinstance(OpenAIChatClient("m", async_client=SDK), protocol)
        assert isinstance(OpenAIResponsesClient("m", async_client=SDK), protocol)
        completions = OpenAIChatCompletionClient("m", async_client=SDK)
        assert isinstance(completions, protocol) is (protocol not in hosted)


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


def test_a_copy_shares_the_connection() -> None:
    client = OpenAIChatClient("m", async_client=SDK)
    assert copy.deepcopy(client)._connection is client._connection
