"""The client that stands in where no model is configured: rules, calls of tools by hand, and an echo."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.agents.clients.scripted.answering import NO_USER_MESSAGE, AnsweringChatClient, last_user_text, settled
from agentbench.agents.clients.scripted.script import (
    TOOLS_DISABLED,
    Call,
    Chunk,
    Reply,
    ScriptEntry,
    calls_tools,
    tool_names,
    tools_disabled,
)
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.agents.clients.scripted.layers import ClientLayers

__all__ = ["OfflineChatClient", "default_chat_client"]

Condition = Callable[[Sequence[Message], Mapping[str, Any]], Any]

_PREFIX = "Echo: "
_CALL = re.compile(r"\s*/call\s+(?P<tool>\S+)(?:\s+(?P<arguments>\{.*\}))?\s*", re.DOTALL)


class OfflineChatClient(AnsweringChatClient):
    """Answers by rules; else calls a tool that the prompt names; else echoes.

    A rule is a pair of a condition and a reply. The condition is a pattern that is searched for in what the user said
    last, in any case if it is text; or a function of that text, or of `(messages, options)`. The reply is an entry of a
    script, as for `ScriptedChatClient`. The first rule that holds answers.

    A prompt like `/call add {"a": 1, "b": 2}` calls the tool `add`, if it is offered. Once tools have answered what the
    user said last, none is called for it again: their results are echoed, unless a rule says something else.

    Args:
        rules: Pairs, in order, or a mapping of patterns to replies.
        fallback: `echo`, or the entry of a script for whatever no rule answers.
        model: The name that its answers give.
        chunk: In what pieces it streams: `word`, `char`, or `whole`.
        delay: How long it takes: before an answer, and before every piece of a streamed one. In seconds.
        **layers: As for every client: middleware, configuration of the tool loop, compaction.

    Raises:
        TypeError: A rule is no pair, or its condition is neither a pattern nor a function.
        ValueError: A condition is text and no regular expression, or `chunk` or `delay` is not possible.

    Example:
        ```python
        client = OfflineChatClient(
            rules=[(r"weather", Call("get_weather", {"city": "Oslo"})), (r"hello", "Good morning!")]
        )
        ```
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
        self._rules = [_rule(pair) for pair in pairs]
        self._fallback = fallback

    async def _reply(
        self,
        messages: Sequence[Message],
        options: Mapping[str, Any],
        *,
        stream: bool,
        client_kwargs: Mapping[str, Any],
    ) -> Reply:
        del stream, client_kwargs
        results = _new_results(messages)
        entry = await settled(self._entry(messages, options, results), messages, options)
        if calls_tools(entry) and tools_disabled(options):
            entry = TOOLS_DISABLED
        return self._read(entry, messages, options)

    def _entry(self, messages: Sequence[Message], options: Mapping[str, Any], results: list[str]) -> ScriptEntry:
        for holds, reply in self._rules:
            if holds(messages, options) and not (results and calls_tools(reply)):
                return reply
        heard = last_user_text(messages)
        if not results and heard is not None and (call := _asked_call(heard, options)) is not None:
            return call
        if not (isinstance(self._fallback, str) and self._fallback == "echo"):
            return self._fallback
        if results:
            return _PREFIX + "\n".join(results)
        return NO_USER_MESSAGE if heard is None else _PREFIX + heard

    def __repr__(self) -> str:
        return f"OfflineChatClient(rules={len(self._rules)}, fallback={self._fallback!r}, model={self.model!r})"


def default_chat_client() -> OfflineChatClient:
    """Make the client of notebooks, demos and examples: one that needs no network.

    No client replaces itself by this one: whoever wants it calls this.
    """
    return OfflineChatClient()


def _rule(pair: Any) -> tuple[Condition, ScriptEntry]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        message = f"A rule is {pair!r}; expected a pair of a condition and a reply."
        raise TypeError(message)
    return _condition(pair[0]), pair[1]


def _condition(given: Any) -> Condition:
    if isinstance(given, (str, re.Pattern)):
        pattern = _pattern(given) if isinstance(given, str) else given
        return lambda messages, options: pattern.search(last_user_text(messages) or "") is not None
    if not callable(given):
        message = f"The condition of a rule is {given!r}; expected a pattern, or a function of the prompt."
        raise TypeError(message)
    if _takes_two(given):
        return lambda messages, options: given(messages, options)
    return lambda messages, options: given(last_user_text(messages) or "")


def _pattern(given: str) -> re.Pattern[str]:
    try:
        return re.compile(given, re.IGNORECASE)
    except re.error as error:
        message = (
            f"The condition {given!r} of a rule is no regular expression: {error}. For plain text give "
            "re.escape(...) of it."
        )
        raise ValueError(message) from error


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _asked_call(prompt: str, options: Mapping[str, Any]) -> Call | None:
    found = _CALL.fullmatch(prompt)
    if found is None or tools_disabled(options) or found["tool"] not in tool_names(options.get("tools")):
        return None
    try:
        arguments = json.loads(found["arguments"] or "{}")
    except ValueError:
        return None
    return Call(found["tool"], arguments)


def _new_results(messages: Sequence[Message]) -> list[str]:
    """What tools have answered since the user last said something."""
    results: list[str] = []
    for message in messages:
        if message.role == "user":
            results = []
        results += [str(item.result or "") for item in message.contents if item.type == "function_result"]
    return results
