"""What a notebook shows of an agent."""

from __future__ import annotations

from typing import Any

from agentbench import (
    Agent,
    AgentMiddleware,
    ContextProvider,
    InMemoryHistoryProvider,
    RawAgent,
    SecretString,
    chat_middleware,
    function_middleware,
    tool,
)
from agentbench.notebook.cards.agent import agent_bundle as view


class Client:
    model = "small-1"

    def get_response(self, messages: Any, **given: Any) -> Any:
        raise AssertionError("a view calls no model")


class Watch(AgentMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()


@chat_middleware
async def cache(context: Any, call_next: Any) -> None: ...


@function_middleware
async def guard(context: Any, call_next: Any) -> None: ...


@tool(approval_mode="always_require")
def send(to: str) -> str:
    """Send a mail."""
    return to


class Server:
    name, description, is_connected, functions = "files", "Reads files.", False, ()

    async def connect(self) -> None:
        raise AssertionError("a view connects nothing")


def both(shown: RawAgent) -> tuple[str, str]:
    bundle = view(shown)
    return bundle["text/plain"], bundle["text/html"]


def test_an_agent_shows_its_name_model_and_what_it_is_good_for() -> None:
    for said in both(Agent(Client(), name="weather", description="Knows the weather")):
        for fact in ("weather", "Agent", "Knows the weather", "Client, model small-1"):
            assert fact in said


def test_what_people_wrote_is_escaped() -> None:
    shown = Agent(Client(), "<script>alert(1)</script>", name="<b>", description="<i>")
    html = both(shown)[1]

    assert "&lt;script&gt;alert(1)" in html
    assert not any(tag in html for tag in ("<script", "<b><", "<i>"))


def test_tools_say_what_they_do_and_what_is_special() -> None:
    hosted = {"type": "web_search"}
    declared = {"type": "function", "function": {"name": "shop", "description": "Buys."}}
    for said in both(Agent(Client(), tools=[send, Server(), hosted, declared])):
        for word in ("send", "Send a mail.", "needs approval", "files", "server, not connected yet"):
            assert word in said
        for word in ("web_search", "executed by the service", "shop", "Buys."):
            assert word in said


def test_providers_and_middleware_are_listed_in_their_order() -> None:
    shown = Agent(
        Client(),
        context_providers=[InMemoryHistoryProvider(load_messages=False), ContextProvider("todo")],
        middleware=[Watch(), cache, guard],
    )
    text = both(shown)[0]

    parts = [
        "in_memory",
        "stores, does not load",
        "todo",
        "Watch",
        "the run",
        "cache",
        "each model call",
        "guard",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)
    assert "each tool call" in text


def test_secrets_among_the_options_are_masked() -> None:
    options = {
        "temperature": 0.25,
        "api_key": "sk-1",
        "user": SecretString("hidden"),
        "response_format": {"type": "object"},
    }
    for said in both(Agent(Client(), default_options=options)):
        assert "0.25" in said
        assert "response_format" in said
        assert not any(secret in said for secret in ("sk-1", "hidden"))
