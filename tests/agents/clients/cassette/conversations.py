"""What the tests of cassettes share: a tool, a client of a service that does not exist, ways to ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.agents.clients.scripted.script import Call
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.tools.decorator import tool
from agentbench.messages.response import ChatResponse
from agentbench.settings import SecretString


@tool
def get_weather(city: str) -> str:
    """Look up the weather of a city."""
    return f"sunny in {city}"


class NetworkClient(ScriptedChatClient):
    """Stands for the client of a service: it needs the network, and holds a key."""

    NEEDS_NETWORK: ClassVar[bool] = True
    OTEL_PROVIDER_NAME: ClassVar[str] = "far-away"

    def __init__(
        self, script: Any, *, api_key: str = "sk-1234567890", url: str = "https://api.example.org", **more: Any
    ):
        super().__init__(script, model="big", **more)
        self.settings = {"api_key": SecretString(api_key)}
        self.url = url
        self.closed = 0

    def service_url(self) -> str:
        return self.url

    async def close(self) -> None:
        self.closed += 1


class Shout(BaseChatClient[Any]):
    """The smallest legal client."""

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        return ChatResponse(text=messages[-1].text.upper())


WEATHER = [Call("get_weather", {"city": "Oslo"}), "It is sunny in Oslo."]


async def ask(client: Any, prompt: Any = "hello", *, stream: bool = False, **options: Any) -> ChatResponse[Any]:
    if stream:
        final: ChatResponse[Any] = await client.get_response(prompt, stream=True, options=options).get_final_response()
        return final
    response: ChatResponse[Any] = await client.get_response(prompt, options=options)
    return response


async def recorded(path: Path, script: Any, *prompts: str, stream: bool = False, **options: Any) -> None:
    """Record one call per prompt, each of which takes one entry of the script."""
    client = CassetteChatClient(path, ScriptedChatClient(script), mode="record")
    for prompt in prompts:
        await ask(client, prompt, stream=stream, **options)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def calls(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines(path) if "call" in line]
