"""Offline clients: one echoes; the other answers by rules, calls tools on request, or echoes."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from agentbench.agents.clients.scripted.script import (
    TOOLS_DISABLED,
    Call,
    Chunk,
    Reply,
    ScriptEntry,
    calls_tools,
    tool_names,
    usage_of_words,
)
from agentbench.agents.clients.scripted.scripted import (
    AnsweringChatClient,
    echo,
    last_user_text,
    play_entry,
    tools_disabled,
)
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.model.client import ClientLayers

Condition = Callable[[Sequence[Message], Mapping[str, Any]], Any]

_CALL = re.compile(r"\s*/call\s+(?P<tool>\S+)(?:\s+(?P<arguments>\{.*\}))?\s*", re.DOTALL)


class EchoChatClient(AnsweringChatClient):
    """Answers with a prefix and the last user message, or with `(no user message)`.

    Usage counts the words of that message and of the answer, but not of the history.

    Args:
        prefix: Text at the start of every answer.
        model: Model name in the answers.
        chunk: Size of streamed pieces: `word` (with the following space), `char`, or `whole`.
        **layers: The arguments of every client: middleware, configuration of the tool loop, compaction.

    Raises:
        ValueError: `chunk` has another value.

    Example:
        from agentbench import EchoChatClient

        response = await EchoChatClient().get_response("Hello")
        print(response.text)  # Echo: Hello
    """

    def __init__(
        self, prefix: str = "Echo: ", *, model: str = "echo", chunk: Chunk = "word", **layers: Unpack[ClientLayers]
    ) -> None:
        super().__init__(model=model, chunk=chunk, **layers)
        self.prefix = prefix

    async def _ab_reply(self, messages: Sequence[Message], options: Mapping[str, Any], **call: Any) -> Reply:
        text = echo(messages, self.prefix)
        usage = usage_of_words(len((last_user_text(messages) or "").split()), len(text.split()))
        return self._ab_read({"text": text, "usage": usage}, messages, options)

    def __repr__(self) -> str:
        return f"EchoChatClient({self.prefix!r}, model={self.model!r}, chunk={self.chunk!r})"


class OfflineChatClient(AnsweringChatClient):
    """Answers by rules; otherwise calls the tool that the prompt requests; otherwise echoes.

    A rule is a pair of a condition and a reply. The condition is a pattern to search for in the last user message
    (text ignores case), a function of that message's text, or a function of `(messages, options)`. The reply is a
    script entry as for `ScriptedChatClient`. The first rule whose condition is true answers.

    A prompt like `/call add {"a": 1, "b": 2}` calls the tool `add`, if it is offered. Once tool results follow the last
    user message, no tool is called for this message again: the results are echoed, unless a rule has another reply.

    Args:
        rules: Pairs in order, or a mapping of patterns to replies.
        fallback: `echo`, or a script entry to use if no rule applies.
        model: Model name in the answers.
        chunk: Size of streamed pieces: `word`, `char`, or `whole`.
        delay: Seconds before an answer, and before each piece of a streamed answer.
        **layers: The arguments of every client: middleware, configuration of the tool loop, compaction.

    Raises:
        TypeError: A rule is not a pair, or its condition is neither a pattern nor a function.
        ValueError: A condition is not a valid regular expression, or `chunk` or `delay` is invalid.

    Example:
        from agentbench import Call
        from agentbench.testing import OfflineChatClient

        client = OfflineChatClient(
            rules=[(r"weather", Call("get_weather", {"city": "Oslo"})), (r"hello", "Good morning!")]
        )
        response = await client.get_response("Hello there")
        print(response.text)  # Good morning!
    """

    def __init__(
        self,
        *,
        rules: Iterable[tuple[Any, ScriptEntry]] | Mapping[Any, ScriptEntry] | None = None,
        fallback: ScriptEntry = "echo",
        model: str = "offline",
        chunk: Chunk = "word",
        delay: float = 0,
        **layers: Unpack[ClientLayers],
    ) -> None:
        super().__init__(model=model, chunk=chunk, delay=delay, **layers)
        pairs = rules.items() if isinstance(rules, Mapping) else rules or ()
        self._ab_rules: list[tuple[Condition, ScriptEntry]] = []
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                message = f"A rule is {pair!r}; expected a pair (condition, reply)."
                raise TypeError(message)
            self._ab_rules.append((_as_predicate(pair[0]), pair[1]))
        self._ab_fallback = fallback

    async def _ab_reply(self, messages: Sequence[Message], options: Mapping[str, Any], **call: Any) -> Reply:
        results = _new_results(messages)
        entry = await play_entry(self._ab_entry(messages, options, results), messages, options)
        if calls_tools(entry) and tools_disabled(options):
            entry = TOOLS_DISABLED
        return self._ab_read(entry, messages, options)

    def _ab_entry(self, messages: Sequence[Message], options: Mapping[str, Any], results: list[str]) -> ScriptEntry:
        for holds, reply in self._ab_rules:
            if holds(messages, options) and not (results and calls_tools(reply)):
                return reply
        prompt = last_user_text(messages)
        if not results and prompt is not None and (call := _parse_call(prompt, options)) is not None:
            return call
        if not (isinstance(self._ab_fallback, str) and self._ab_fallback == "echo"):
            return self._ab_fallback
        return "Echo: " + "\n".join(results) if results else echo(messages)

    def __repr__(self) -> str:
        return f"OfflineChatClient(rules={len(self._ab_rules)}, fallback={self._ab_fallback!r}, model={self.model!r})"


def default_chat_client() -> OfflineChatClient:
    """Create a client for notebooks, demos and examples: an `OfflineChatClient` without rules.

    No other client falls back to this one; call this function to get it.

    Example:
        from agentbench.testing import default_chat_client

        response = await default_chat_client().get_response("Hello")
        print(response.text)  # Echo: Hello
    """
    return OfflineChatClient()


def _as_predicate(condition: Any) -> Condition:
    """Convert a rule's condition to a function of `(messages, options)`."""
    if isinstance(condition, str):
        try:
            condition = re.compile(condition, re.IGNORECASE)
        except re.error as error:
            message = (
                f"The condition {condition!r} of a rule is not a valid regular expression: {error}. For text pass "
                "re.escape(...)."
            )
            raise ValueError(message) from error
    if isinstance(condition, re.Pattern):
        return lambda messages, options: condition.search(last_user_text(messages) or "") is not None
    if not callable(condition):
        message = f"The condition of a rule is {condition!r}; expected a pattern or a function of the prompt."
        raise TypeError(message)
    function: Callable[..., Any] = condition
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return lambda messages, options: function(last_user_text(messages) or "")
    return function


def _parse_call(prompt: str, options: Mapping[str, Any]) -> Call | None:
    match = _CALL.fullmatch(prompt)
    if match is None or tools_disabled(options) or match["tool"] not in tool_names(options.get("tools")):
        return None
    try:
        arguments = json.loads(match["arguments"] or "{}")
    except ValueError:
        return None
    return Call(match["tool"], arguments)


def _new_results(messages: Sequence[Message]) -> list[str]:
    results: list[str] = []
    for message in messages:
        if message.role == "user":
            results = []
        results += [str(item.result or "") for item in message.contents if item.type == "function_result"]
    return results
