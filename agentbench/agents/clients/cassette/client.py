"""A client that records a real client's answers in a file, and plays them back from it."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from agentbench._display import Displayable, drawn_by
from agentbench.agents.clients.cassette.misses import Why, missed
from agentbench.agents.clients.cassette.original import Original
from agentbench.agents.clients.cassette.plain import Plain, plain_answer
from agentbench.agents.clients.cassette.recorded import RecordedCall
from agentbench.agents.clients.cassette.recording import Recording, Request
from agentbench.agents.clients.cassette.redaction import Redaction
from agentbench.agents.clients.cassette.request import Match
from agentbench.agents.clients.cassette.secrets import held_secrets
from agentbench.agents.clients.cassette.tape import header_line
from agentbench.agents.clients.scripted.answering import checked_delay
from agentbench.agents.clients.scripted.per_message import PerMessage
from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.model.replies import ChatStream, response_as_stream
from agentbench.exceptions import CassetteMissError, ChatClientException
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    import re

    from typing_extensions import Self, Unpack

    from agentbench.agents.clients.scripted.layers import ClientLayers

__all__ = ["CassetteCall", "CassetteChatClient"]

Mode = Literal["auto", "replay", "record"]
OnRepeat = Literal["last", "raise"]

_MODES = ("auto", "replay", "record")
_ON_REPEAT = ("last", "raise")
_MOST_SHOWN = 10


class CassetteCall(NamedTuple):
    """One call of the model.

    Attributes:
        messages: Copies of what it was sent, so that later changes do not show. Calls share those of equal messages.
        options: Of the call; tools are the objects themselves.
        stream: Whether the answer was streamed.
        client_kwargs: What was handed through to the client.
        number: Of the recorded call that answered it, or that it became; `None` if it failed or goes on.
        served: Whether the file answered.
    """

    messages: list[Message]
    options: dict[str, Any]
    stream: bool
    client_kwargs: dict[str, Any]
    number: int | None = None
    served: bool = False


class _Asked(NamedTuple):
    """What is kept of a message that the model is asked."""

    copy: Message
    written: Plain


@drawn_by("agentbench.notebook.cassette_view:cassette")
class CassetteChatClient(BaseChatClient[Any], Displayable):
    """Records each answer of a model in a file, once; from then on the file answers, without network and key.

    What is recorded is the single call of the model. The tool loop, middleware and compaction run here, also when the
    model's answers come from the file, so tools really are called.

    A call is found by its messages, tools and options, however late or in whatever order it comes. Ids of messages and
    calls, times and usage do not count. Equal requests are answered in recorded order.

    Keys, headers, addresses, `user`, `metadata` and what is handed through to the client are never written, and a
    line that would hold a secret of the client is refused. What fails is not recorded.

    Args:
        path: The file: JSON Lines, meant to be read, reviewed and kept with the code.
        client: The real client, or a function without arguments that makes it, called when something has to be
            recorded: so neither key nor SDK is needed as long as the file answers.
        mode: `auto`: recorded if it is not in the file yet. `replay`: the file is only read. `record`: the file is
            started anew by the first call that is recorded.
        match: Rewrites the request, a plain dictionary of `messages`, `tools` and `options`, before it is compared, on
            both sides: drops a date, for instance. Must return it.
        redact: Text and patterns that are replaced by `[redacted]` before anything is compared or written.
        on_repeat: After the last of equal requests, `last` serves it again (a cell may be run twice), and `raise` takes
            the request for one that was not recorded.
        delay: Between the updates of a recorded stream, in seconds.
        model: By default that of the client; as long as there is none, that of the file's first line. So where a
            function makes the client, another model in it counts once it is given here too, or recorded anew.
        **layers: As for every client: middleware, configuration of the tool loop, compaction. By default those of the
            client, if one is given.

    Attributes:
        path: The file, as given.
        mode: As given.
        calls: What the model was asked here, in order.

    Raises:
        FileNotFoundError: There is no such file to replay.
        TypeError: `client` is neither a client nor a function.
        ValueError: An argument is not possible, or a line of the file is not one of a cassette.

    Example:
        ```python
        model = CassetteChatClient("cassettes/weather.jsonl", lambda: OpenAIChatClient(model="gpt-4o-mini"))
        agent = model.as_agent(tools=[get_weather])  # first time: the network; from then on: the file
        ```
    """

    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = {*BaseChatClient.DEFAULT_EXCLUDE, "calls"}

    def __init__(  # noqa: PLR0913 - one argument per choice, all but two by name
        self,
        path: str | os.PathLike[str],
        client: Any = None,
        *,
        mode: Mode = "auto",
        match: Match | None = None,
        redact: str | re.Pattern[str] | Iterable[str | re.Pattern[str]] = (),
        on_repeat: OnRepeat = "last",
        delay: float = 0,
        model: str | None = None,
        **layers: Unpack[ClientLayers],
    ) -> None:
        _require("mode", mode, _MODES)
        _require("on_repeat", on_repeat, _ON_REPEAT)
        self._original = Original(client)
        if mode == "record" and not self._original.exists:
            message = "mode='record' needs a client, or a function that makes one: CassetteChatClient(path, client, …)."
            raise ValueError(message)
        _inherit(layers, self._original.client)
        super().__init__(**layers)
        self.mode: Mode = mode
        self.on_repeat: OnRepeat = on_repeat
        self.delay = checked_delay(delay)
        self.calls: list[CassetteCall] = []
        self._model = model
        self._lock = threading.Lock()
        self.path = os.path.expanduser(path)
        self._recording = Recording(
            self.path,
            match=match,
            redaction=Redaction(redact),
            repeat=on_repeat == "last",
            anew=mode == "record",
        )
        self._asked: PerMessage[_Asked] = PerMessage(self._as_asked)
        if mode == "replay" and not os.path.exists(self.path):
            message = f"There is no cassette {self.path} to replay. Record it first: mode='auto' and a client."
            raise FileNotFoundError(message)
        self._recording.read()

    # ----------------------------------------------------------------------------------------------- what it stands for

    @property
    def model(self) -> str | None:
        """The model that is asked: as given here, else the client's, else that of the file."""
        return self._model or getattr(self._original.client, "model", None) or self._recording.header.get("model")

    @property
    def STORES_BY_DEFAULT(self) -> bool:  # type: ignore[override]  # noqa: N802 - of the client or the file
        """Whether the service keeps conversations, as the client says or as the file remembers."""
        if not self._recording.header and self.mode != "replay" and not self._original.is_out_of_reach:
            self._original.get()  # nothing is recorded yet, and agents ask this just before they call
        if self._original.client is not None:
            return bool(getattr(self._original.client, "STORES_BY_DEFAULT", False))
        return bool(self._recording.header.get("stores_by_default", False))

    @property
    def FUNCTION_INVOCATION_ENABLED(self) -> bool:  # type: ignore[override]  # noqa: N802 - likewise
        """Whether tools are run, as the client says."""
        return bool(getattr(self._original.client, "FUNCTION_INVOCATION_ENABLED", True))

    def service_url(self) -> str:
        """The address of the client, `Unknown` while there is none."""
        url = getattr(self._original.client, "service_url", None)
        return str(url()) if callable(url) else super().service_url()

    # -------------------------------------------------------------------------------------------------------- answering

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any] | ChatStream]:
        return self._open(messages, options, kwargs) if stream else self._respond(messages, options, kwargs)

    async def _respond(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> ChatResponse[Any]:
        found, request, place = self._find(messages, options, kwargs, stream=False)
        if found is not None:
            return _response_of(found, options)
        response = await self._original.respond(messages, options, kwargs)
        self._add(request, {"response": plain_answer(response)}, place)
        return response

    async def _open(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> ChatStream:
        found, request, place = self._find(messages, options, kwargs, stream=True)
        response_format = options.get("response_format")
        if found is None:
            inner = await self._original.open(messages, options, kwargs)
            updates = self._recorded_on_the_way(inner, request, place)
            stream = self._build_response_stream(updates, response_format=response_format)
            return stream.with_cleanup_hook(inner.aclose)  # also of a stream that nobody begins to read
        if found.updates is None:
            return response_as_stream(_response_of(found, options))
        return self._build_response_stream(self._played(found.updates), response_format=response_format)

    async def _played(self, updates: list[dict[str, Any]]) -> AsyncIterator[ChatResponseUpdate]:
        for position, update in enumerate(updates):
            if self.delay and position:
                await asyncio.sleep(self.delay)
            yield _update_of(update)

    async def _recorded_on_the_way(
        self, inner: ChatStream, request: Request, place: int
    ) -> AsyncIterator[ChatResponseUpdate]:
        updates = []
        async for update in inner:
            updates.append(plain_answer(update))
            yield update
        self._add(request, {"updates": updates}, place)

    # ----------------------------------------------------------------------------------------------- finding and adding

    def _find(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any], *, stream: bool
    ) -> tuple[RecordedCall | None, Request, int]:
        """The recorded call, or `None` and a request that may be recorded; and its place among the calls."""
        asked = self._asked(messages)
        place = self._note(CassetteCall([each.copy for each in asked], dict(options), stream, dict(kwargs)))
        self._recording.read()  # others may have added to it, and it may say only now what the model is
        written = [each.written for each in asked]
        request = self._recording.request(written, options, model=self.model)
        found = self._recording.serve(request)
        if found is not None:
            with self._lock:
                self.calls[place] = self.calls[place]._replace(number=found.number, served=True)
            return found, request, place
        why = self._why_not_recorded()
        if why is not None:
            raise self._missed(request, why)
        self._recording.require_writable()
        self._original.get()
        request = self._recording.request(written, options, model=self.model)  # the model may be known only now
        self._recording.refuse_secrets(json.dumps(request.sent, ensure_ascii=False), self._secrets())
        return None, request, place

    def _as_asked(self, message: Message) -> _Asked:
        return _Asked(copy.deepcopy(message), self._recording.message(message))

    def _note(self, call: CassetteCall) -> int:
        with self._lock:
            self.calls.append(call)
            return len(self.calls) - 1

    def _why_not_recorded(self) -> Why | None:
        if self.mode == "replay":
            return "replay"
        if not self._original.exists:
            return "no client"
        return "offline" if self.mode == "auto" and self._original.is_out_of_reach else None

    def _missed(self, request: Request, why: Why) -> CassetteMissError:
        return missed(
            path=self.path,
            request=self._recording.canonical(request.sent),
            nearest=self._recording.nearest(request),
            equal=self._recording.count(request),
            why=why,
            secrets=self._secrets(),
        )

    def _add(self, request: Request, answer: dict[str, Any], place: int) -> None:
        added = self._recording.add(request, answer, header=self._header, secrets=self._secrets())
        with self._lock:
            self.calls[place] = self.calls[place]._replace(number=added.number)

    def _header(self) -> str:
        client = self._original.client
        stores = bool(getattr(client, "STORES_BY_DEFAULT", False))
        return header_line(client=type(client).__name__, model=self.model, stores_by_default=stores)

    def _secrets(self) -> frozenset[str]:
        return held_secrets(*self._original.holders, self.additional_properties)

    # ---------------------------------------------------------------------------------------------------- looking at it

    @property
    def last_call(self) -> CassetteCall | None:
        """What the model was asked last, `None` before the first call."""
        return self.calls[-1] if self.calls else None

    @property
    def recorded_calls(self) -> Sequence[RecordedCall]:
        """Every call of the file, in its order."""
        return self._recording.calls

    def unused(self) -> list[RecordedCall]:
        """The calls of the file that were neither served nor recorded by this object."""
        return self._recording.unused

    def assert_exhausted(self) -> None:
        """Do nothing if every call of the file was served or recorded by this object.

        Raises:
            AssertionError: Some were not; they are listed.
        """
        left = self.unused()
        if left:
            shown = [f"  {call!r}" for call in left[:_MOST_SHOWN]]
            more = [f"  … {len(left) - _MOST_SHOWN} more"] if len(left) > _MOST_SHOWN else []
            total = len(self.recorded_calls)
            head = f"{len(left)} of {total} recorded calls of {self.path} were never served; prune() would drop them:"
            raise AssertionError("\n".join([head, *shown, *more]))

    def prune(self) -> int:
        """Rewrite the file with only what was served or recorded by this object; numbers stay.

        Returns:
            How many calls are gone.

        Raises:
            ChatClientException: `mode` is `replay`, which never writes.
        """
        if self.mode == "replay":
            message = "prune() would write the file, and mode='replay' never does. Use mode='auto'."
            raise ChatClientException(message)
        return self._recording.prune()

    def __repr__(self) -> str:
        done = [call for call in self.calls if call.number is not None]
        served = sum(call.served for call in done)
        counts = f"calls={len(self.recorded_calls)}, served={served}, recorded={len(done) - served}"
        return f"CassetteChatClient({self.path!r}, mode={self.mode!r}, model={self.model!r}, {counts})"

    # ---------------------------------------------------------------------------------------------------------- closing

    async def close(self) -> None:
        """Close the client, if there is one that can be closed."""
        close: Callable[[], Any] | None = getattr(self._original.client, "close", None)
        if callable(close):
            closing = close()
            if hasattr(closing, "__await__"):
                await closing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _require(name: str, given: object, known: Sequence[str]) -> None:
    if given not in known:
        message = f"{name} is {given!r}; expected one of {', '.join(known)}."
        raise ValueError(message)


def _inherit(layers: ClientLayers, client: Any) -> None:
    """Take over from a client what was not given here."""
    if not isinstance(client, BaseChatClient):
        return
    layers.setdefault("middleware", client.middleware)
    layers.setdefault("function_invocation_configuration", client.function_invocation_configuration)
    layers.setdefault("compaction_strategy", client.compaction_strategy)
    layers.setdefault("tokenizer", client.tokenizer)
    layers.setdefault("additional_properties", client.additional_properties)
    layers.setdefault("otel_provider_name", client.otel_provider_name or client.OTEL_PROVIDER_NAME)


def _response_of(call: RecordedCall, options: Mapping[str, Any]) -> ChatResponse[Any]:
    response_format = options.get("response_format")
    if call.updates is not None:
        return ChatResponse.from_updates(list(map(_update_of, call.updates)), output_format_type=response_format)
    response: ChatResponse[Any] = ChatResponse.from_dict(copy.deepcopy(call.response or {}))
    response.response_format = response_format
    return response


def _update_of(update: dict[str, Any]) -> ChatResponseUpdate:
    return ChatResponseUpdate.from_dict(copy.deepcopy(update))
