"""The base class of offline clients, and the client that plays a script and records its calls."""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Unpack, cast, get_args

from agentbench._limits import require_seconds
from agentbench._secrets import masked_fields
from agentbench.agents.clients.scripted.script import (
    TOOLS_DISABLED,
    Call,
    Chunk,
    Ids,
    PerMessage,
    Reply,
    ScriptEntry,
    called_tools,
    calls_tools,
    read_entry,
    tool_names,
)
from agentbench.agents.history.unique_calls import with_unique_calls
from agentbench.agents.model.client import BaseChatClient
from agentbench.exceptions import ChatClientException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    from agentbench.agents.model.client import ClientLayers

OnExhausted = Literal["raise", "repeat_last", "echo"]

_MOST_LISTED = 5
_WORD = re.compile(r"\S*\s+|\S+")


class AnsweringChatClient(BaseChatClient[Any]):
    """A deterministic client without a model: the same requests in the same order get the same answers and ids."""

    def __init__(self, *, model: str, chunk: Chunk, delay: float = 0, **layers: Unpack[ClientLayers]) -> None:
        require_choice("chunk", chunk, Chunk)
        super().__init__(**layers)
        self.model = model
        self.chunk: Chunk = chunk
        self.delay = require_delay(delay)
        self._ab_ids = Ids()

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        if not stream:
            return self._ab_respond(messages, options, kwargs)
        updates = self._ab_stream(messages, options, kwargs)
        return self._build_response_stream(updates, response_format=options.get("response_format"))

    async def _ab_respond(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> ChatResponse[Any]:
        reply = await self._ab_reply(messages, options, stream=False, client_kwargs=kwargs)
        if self.delay:
            await asyncio.sleep(self.delay)
        if isinstance(reply, ChatResponse):
            return reply
        return ChatResponse.from_updates(reply, output_format_type=options.get("response_format"))

    async def _ab_stream(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> AsyncIterator[ChatResponseUpdate]:
        reply = await self._ab_reply(messages, options, stream=True, client_kwargs=kwargs)
        if isinstance(reply, ChatResponse):
            reply = with_unique_calls(reply).to_updates(partial(split_contents, chunk=self.chunk))
        for update in reply:
            if self.delay:
                await asyncio.sleep(self.delay)
            yield update

    @abstractmethod
    async def _ab_reply(self, messages: Sequence[Message], options: Mapping[str, Any], **call: Any) -> Reply:
        """Return the answer to one call; `call` contains `stream` and `client_kwargs`."""

    def _ab_read(self, entry: ScriptEntry, messages: Sequence[Message], options: Mapping[str, Any]) -> Reply:
        return read_entry(entry, messages=messages, options=options, ids=self._ab_ids, model=self.model)


def split_contents(contents: list[Content], chunk: Chunk) -> Iterator[list[Content]]:
    """Yield the contents one by one, and texts in pieces; a word includes the following space."""
    if not contents:
        yield []
    for content in contents:
        is_plain = content.type == "text" and not content.annotations and not content.additional_properties
        if is_plain and content.text and chunk != "whole":
            pieces = list(content.text) if chunk == "char" else _WORD.findall(content.text)
            yield from ([Content.from_text(piece)] for piece in pieces)
        else:
            yield [content]


async def play_entry(entry: ScriptEntry, messages: Sequence[Message], options: Mapping[str, Any]) -> ScriptEntry:
    """Call an entry if it is a function, raise it if it is an exception, and otherwise return it."""
    while callable(entry) and not isinstance(entry, (type, str)):
        entry = entry(messages, options)
        if inspect.isawaitable(entry):
            entry = await entry
    if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
        raise entry
    return entry


def echo(messages: Sequence[Message], prefix: str = "Echo: ") -> str:
    """Return a prefix and the last user message; `(no user message)` if there is none."""
    prompt = last_user_text(messages)
    return "(no user message)" if prompt is None else prefix + prompt


def last_user_text(messages: Sequence[Message]) -> str | None:
    """Return the text of the last user message; `None` if there is none."""
    return next((message.text for message in reversed(messages) if message.role == "user"), None)


def require_delay(delay: float) -> float:
    """Check that a delay in seconds is not negative, and return it."""
    require_seconds("delay", delay, zero=True)
    return delay


def require_choice(name: str, value: object, literal: Any) -> None:
    """Raise a `ValueError` if the argument `name` is not a value of a `Literal`."""
    if value not in get_args(literal):
        message = f"{name} is {value!r}; expected one of {', '.join(get_args(literal))}."
        raise ValueError(message)


def tools_disabled(options: Mapping[str, Any]) -> bool:
    """Return whether the options disable tools: `tool_choice` is `"none"` or the mode `none`."""
    choice = options.get("tool_choice")
    return (choice.get("mode") if isinstance(choice, Mapping) else choice) == "none"


class ModelCall(NamedTuple):
    """One model call, with copies of the messages that were sent; calls share copies of equal messages."""

    messages: list[Message]
    options: dict[str, Any]
    stream: bool
    client_kwargs: dict[str, Any]

    def __repr__(self) -> str:
        return masked_fields(self)


class ScriptedChatClient(AnsweringChatClient):
    """Plays one script entry per model call. Safe to share between tasks and threads.

    Entries may be text; `Content`, `Call` or a list of these and text, for one message; a `Message` or a list of
    messages; a `ChatResponse`; a list of `ChatResponseUpdate`; an exception to raise; a mapping with `text`, `usage`,
    `finish_reason`, `conversation_id`; data for the `response_format` of the options; or a sync or async function of
    `(messages, options)` that returns any of these.

    If tools are disabled (`tool_choice` is `none`), an entry that calls a tool is kept for later, and the answer is
    `(tools disabled)`. Usage that is not in the script is counted in words.

    Args:
        script: The entries. A value other than a list is a script with one entry.
        on_exhausted: Behavior after the last entry: `raise`, `repeat_last`, or `echo`.
        model: Model name in the answers.
        strict_tools: Whether a call of a tool that the options do not offer is an error.
        delay: Seconds before an answer, and before each piece of a streamed answer.
        honour_tool_choice: Whether to respect `tool_choice`; if false, calls are always played.
        chunk: Size of streamed pieces: `word`, `char`, or `whole`.
        **layers: The arguments of every client: middleware, configuration of the tool loop, compaction.

    Attributes:
        calls: The model calls in order, each with copies of its messages.

    Raises:
        ValueError: `on_exhausted`, `chunk` or `delay` is invalid.

    Example:
        from agentbench import Call, ScriptedChatClient, tool


        @tool
        def add(a: int, b: int) -> int:
            return a + b


        client = ScriptedChatClient([Call("add", {"a": 2, "b": 3}), "The sum is 5."])
        response = await client.as_agent(name="calc", tools=[add]).run("2 + 3?")
        print(response.text)  # The sum is 5.
    """

    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = {*AnsweringChatClient.DEFAULT_EXCLUDE, "calls"}

    def __init__(
        self,
        script: Iterable[ScriptEntry] | ScriptEntry,
        *,
        on_exhausted: OnExhausted = "raise",
        model: str = "scripted",
        strict_tools: bool = False,
        delay: float = 0,
        honour_tool_choice: bool = True,
        chunk: Chunk = "word",
        **layers: Unpack[ClientLayers],
    ) -> None:
        require_choice("on_exhausted", on_exhausted, OnExhausted)
        super().__init__(model=model, chunk=chunk, delay=delay, **layers)
        self.on_exhausted: OnExhausted = on_exhausted
        self.strict_tools = strict_tools
        self.honour_tool_choice = honour_tool_choice
        self.calls: list[ModelCall] = []
        self._ab_copies: PerMessage[Message] = PerMessage(copy.deepcopy)
        single = isinstance(script, (str, Call, Mapping, BaseException)) or not isinstance(script, Iterable)
        self._ab_script: list[ScriptEntry] = [script] if single else list(cast("Iterable[ScriptEntry]", script))
        self._ab_position = 0
        self._ab_lock = threading.Lock()

    @property
    def last_call(self) -> ModelCall | None:
        """The last call; `None` before the first one."""
        return self.calls[-1] if self.calls else None

    def reset(self) -> None:
        """Restart the script and the ids, and clear the calls."""
        with self._ab_lock:
            self._ab_position = 0
            self._ab_ids.reset()
            self.calls.clear()
            self._ab_copies = PerMessage(copy.deepcopy)

    def assert_exhausted(self) -> None:
        """Raise an `AssertionError` that lists unplayed entries, if there are any."""
        unused = self._ab_script[self._ab_position :]
        if unused:
            texts = [text if len(text) <= 60 else f"{text[:59]}…" for text in map(repr, unused[:_MOST_LISTED])]
            listed = ", ".join(texts) + (", …" if len(unused) > _MOST_LISTED else "")
            total = len(self._ab_script)
            message = (
                f"{len(unused)} of {total} entries were not played: {listed}. Expected {total} model calls, but there "
                f"were {len(self.calls)}."
            )
            raise AssertionError(message)

    async def _ab_reply(self, messages: Sequence[Message], options: Mapping[str, Any], **call: Any) -> Reply:
        record = ModelCall(self._ab_copies(messages), dict(options), **call)
        no_tools = self.honour_tool_choice and tools_disabled(options)
        with self._ab_lock:
            self.calls.append(record)
            entry = self._ab_take(messages, no_tools=no_tools)
        entry = await play_entry(entry, messages, options)
        if no_tools and calls_tools(entry):  # a function returned a call
            entry = TOOLS_DISABLED
        reply = self._ab_read(entry, messages, options)
        if self.strict_tools:
            offered = tool_names(options.get("tools"))
            for name in called_tools(reply):
                if name not in offered:
                    message = (
                        f"The script calls the tool {name!r}, which the options do not offer. Offered tools: "
                        f"{', '.join(sorted(offered)) or 'none'}. Pass the agent that tool, or set strict_tools=False."
                    )
                    raise ChatClientException(message)
        return reply

    def _ab_take(self, messages: Sequence[Message], *, no_tools: bool) -> ScriptEntry:
        """Return the next entry; while tools are disabled, an entry that calls a tool is kept."""
        if self._ab_position < len(self._ab_script):
            entry = self._ab_script[self._ab_position]
            if no_tools and calls_tools(entry):
                return TOOLS_DISABLED
            self._ab_position += 1
            return entry
        if self.on_exhausted == "echo":
            return echo(messages)
        if self.on_exhausted == "repeat_last" and self._ab_script:
            return TOOLS_DISABLED if no_tools and calls_tools(self._ab_script[-1]) else self._ab_script[-1]
        entries = "1 entry" if len(self._ab_script) == 1 else f"{len(self._ab_script)} entries"
        message = (
            f"The script has {entries}, but this is model call {len(self.calls)}. Expected at "
            "most one call per entry; add an entry, or choose on_exhausted='repeat_last' or 'echo'."
        )
        raise ChatClientException(message)

    def __repr__(self) -> str:
        played = f"{self._ab_position} of {len(self._ab_script)} played"
        return f"ScriptedChatClient({played}, calls={len(self.calls)}, on_exhausted={self.on_exhausted!r})"
