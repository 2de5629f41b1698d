"""A cassette in a notebook."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agentbench import Call, Content, Message, ScriptedChatClient
from agentbench.agents.clients.cassette.client import CassetteChatClient


def ask(client: CassetteChatClient, *prompts: str) -> None:
    async def converse() -> None:
        for prompt in prompts:
            await client.get_response(prompt)

    asyncio.run(converse())


def shown(client: CassetteChatClient) -> dict[str, Any]:
    return client._repr_mimebundle_()


def test_calls_are_listed_with_their_use_prompt_and_answer(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    script = ["Hello.", [Call("add", {"a": 1})], "never asked again"]
    ask(CassetteChatClient(path, ScriptedChatClient(script, model="small")), "hi", "add", "once")
    client = CassetteChatClient(path, ScriptedChatClient(["New."], model="small"))
    ask(client, "hi", "hi", "add", "new", "new")
    assert shown(client)["text/plain"] == (
        "Cassette talk.jsonl: mode auto, model small, 4 calls, 1 not served yet\n"
        "calls\n"
        "  1  2\N{MULTIPLICATION SIGN}       hi    Hello.\n"
        '  2  1\N{MULTIPLICATION SIGN}       add   add({"a": 1})\n'
        "  3  not yet  once  never asked again\n"
        "  4  new, 1\N{MULTIPLICATION SIGN}  new   New."
    )
    html = shown(client)["text/html"]
    assert '<th scope="col">served</th>' in html
    assert "<td>2\N{MULTIPLICATION SIGN}</td><td>hi</td><td>Hello.</td>" in html


def test_results_of_tools_are_counted_beside_the_prompt(tmp_path: Path) -> None:
    client = CassetteChatClient(tmp_path / "talk.jsonl", ScriptedChatClient(["Rain."]))
    results = [Content.from_function_result(call_id, result="wet") for call_id in ("a", "b")]
    messages = [Message("user", ["weather?"]), Message("tool", results)]
    asyncio.run(_respond(client, messages))
    assert "weather? (+ 2 results)  Rain." in shown(client)["text/plain"]


async def _respond(client: CassetteChatClient, messages: list[Message]) -> None:
    await client.get_response(messages)
