"""A client that records a real client's answers in a file and replays them."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, Unpack

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import masked_fields
from agentbench.agents.clients.cassette.cassette import Cassette, Reason, Request, miss_error
from agentbench.agents.clients.cassette.lines import StoredCall, header_line
from agentbench.agents.clients.cassette.request import Match, Plain, Redaction, SecretFinder, plain_answer
from agentbench.agents.clients.scripted.script import PerMessage
from agentbench.agents.clients.scripted.scripted import require_choice, require_delay
from agentbench.agents.model.client import BaseChatClient, ClientLayers
from agentbench.agents.model.request import ChatStream, response_as_stream, response_of, stream_of
from agentbench.agents.model.settings import is_offline, needs_network, require_network
from agentbench.exceptions import ChatClientException
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    import re


Mode = Literal["auto", "replay", "record"]
OnRepeat = Literal["last", "raise"]

_MOST_LISTED = 10


class CassetteCall(NamedTuple):
    """A `ModelCall` with the number of its recorded call, if any; `served` means that the file answered."""

    messages: list[Message]
    options: dict[str, Any]
    stream: bool
    client_kwargs: dict[str, Any]
    number: int | None = None
    served: bool = False

    def __repr__(self) -> str:
        return masked_fields(self)


@drawn_by("agentbench.notebook.cards.cassette:cassette")
class CassetteChatClient(BaseChatClient[Any], Displayable):
    """Records each answer of a model in a file once; afterwards the file answers, without network and API key.

    The tool loop, middleware and compaction also run when the file answers, so tools are really called.

    A call is found by its messages, tools and options, in any order and at any time. Message ids, call ids, times and
    usage are not compared. Equal requests are answered in recorded order.

    API keys, headers, URLs, `user`, `metadata` and arguments that are passed through to the client are not written,
    and a line that would contain a secret of the client is rejected. Failed calls are not recorded.

    Args:
        path: The file, in JSON Lines format. Review it and store it with the code.
        client: The real client, or a function without arguments that makes it. It is called when a call must be
            recorded, so neither API key nor SDK is needed as long as the file answers.
        mode: `auto` records calls that are not in the file yet, `replay` only reads it, and with `record` the first
            recorded call replaces the file.
        match: Rewrites the request, a dictionary of `messages`, `tools` and `options`, before it is compared, on both
            sides; for example, to remove a date. It must return the request.
        redact: Texts and patterns that are replaced by `[redacted]` before comparing and writing.
        on_repeat: After the last of equal requests, `last` serves it again (for cells that run twice), `raise` treats
            the request as not recorded.
        delay: Seconds between the updates of a recorded stream.
        model: By default the client's model, or without a client the model in the first line of the file. If a function
            makes the client, its model counts only if you pass it here too, or record again.
        **layers: The arguments of every client: middleware, configuration of the tool loop, compaction. By default the
            settings of the client, if one is passed.

    Attributes:
        calls: The model calls through this object, in order.

    Raises:
        FileNotFoundError: The file to replay does not exist.
        TypeError: `client` is neither a client nor a function.
        ValueError: An argument is invalid, or a line of the file is not part of a cassette.

    Example:
        from agentbench import ScriptedChatClient
        from agentbench.testing import CassetteChatClient

        # Usually: lambda: OpenAIChatClient(model="gpt-4o-mini")
        model = CassetteChatClient("cassettes/hello.jsonl", lambda: ScriptedChatClient(["Hello."]))
        await model.get_response("Hi!")  # the client answers the first time, then the file
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
        require_choice("mode", mode, Mode)
        require_choice("on_repeat", on_repeat, OnRepeat)
        if client is None and mode == "record":
            message = "mode='record' needs a client or a function that makes one: CassetteChatClient(path, client, …)."
            raise ValueError(message)
        self._ab_client: Any = client if _is_client(client) else None
        self._ab_factory: Callable[[], Any] | None = client if self._ab_client is None else None
        if self._ab_factory is not None and not callable(self._ab_factory):
            raise _no_client(client, "client is")
        if isinstance(client, BaseChatClient):
            inherited = {name: getattr(client, name) for name in ClientLayers.__annotations__}
            inherited["otel_provider_name"] = client.otel_provider_name or client.OTEL_PROVIDER_NAME
            layers = {**inherited, **layers}  # type: ignore[typeddict-item]
        super().__init__(**layers)
        self.mode: Mode = mode
        self.on_repeat: OnRepeat = on_repeat
        self.delay = require_delay(delay)
        self.calls: list[CassetteCall] = []
        self._ab_model = model
        self._ab_lock = threading.Lock()
        self._ab_client_lock = threading.Lock()
        self._ab_find_secrets = SecretFinder()
        self.path = os.path.expanduser(path)
        self._ab_cassette = Cassette(
            self.path, match=match, redaction=Redaction(redact), repeat=on_repeat == "last", anew=mode == "record"
        )
        # For each message, a copy for `calls` and its stored form.
        self._ab_sent = PerMessage(lambda message: (copy.deepcopy(message), self._ab_cassette.message(message)))
        if mode == "replay" and not os.path.exists(self.path):
            message = f"Cassette {self.path} not found. Record it first: pass a client and mode='auto'."
            raise FileNotFoundError(message)
        self._ab_cassette.read()

    @property
    def _ab_header(self) -> Plain:
        return self._ab_cassette.lines.header or {}

    @property
    def model(self) -> str | None:
        """The model: the argument `model`, else the client's model, else the model in the file."""
        return self._ab_model or getattr(self._ab_client, "model", None) or self._ab_header.get("model")

    @property
    def STORES_BY_DEFAULT(self) -> bool:  # type: ignore[override]  # noqa: N802 - of the client or the file
        """Whether the service stores conversations, according to the client or the file."""
        if not self._ab_header and self.mode != "replay" and not self._ab_is_out_of_reach():
            self._ab_get_client()  # nothing is recorded yet, and agents read this right before a call
        if self._ab_client is not None:
            return bool(getattr(self._ab_client, "STORES_BY_DEFAULT", False))
        return bool(self._ab_header.get("stores_by_default", False))

    @property
    def FUNCTION_INVOCATION_ENABLED(self) -> bool:  # type: ignore[override]  # noqa: N802 - of the client
        """Whether tools are run, according to the client."""
        return bool(getattr(self._ab_client, "FUNCTION_INVOCATION_ENABLED", True))

    def service_url(self) -> str:
        """Return the client's URL; `Unknown` without a client."""
        url = getattr(self._ab_client, "service_url", None)
        return str(url()) if callable(url) else super().service_url()

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any] | ChatStream]:
        return self._ab_open(messages, options, kwargs) if stream else self._ab_respond(messages, options, kwargs)

    async def _ab_respond(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> ChatResponse[Any]:
        recorded, request, index = self._ab_find(messages, options, kwargs, stream=False)
        if recorded is not None:
            return response_for(recorded, options)
        response: ChatResponse[Any] = await self._ab_call_client(messages, options, kwargs, stream=False)
        self._ab_add(request, {"response": plain_answer(response)}, index)
        return response

    async def _ab_open(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any]
    ) -> ChatStream:
        recorded, request, index = self._ab_find(messages, options, kwargs, stream=True)
        response_format = options.get("response_format")
        if recorded is None:
            inner: ChatStream = await self._ab_call_client(messages, options, kwargs, stream=True)
            stream = self._build_response_stream(
                self._ab_record(inner, request, index), response_format=response_format
            )
            return stream.with_cleanup_hook(inner.aclose)  # also for a stream that is never read
        if recorded.updates is None:
            return response_as_stream(response_for(recorded, options))
        return self._build_response_stream(self._ab_play(recorded.updates), response_format=response_format)

    async def _ab_call_client(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any], *, stream: bool
    ) -> Any:
        """Return the client's answer, without its `BaseChatClient` layers, because they run around this client."""
        client = self._ab_get_client()
        require_network(client)
        builder: BaseChatClient[Any] = client if isinstance(client, BaseChatClient) else self
        if builder is client:
            reply = builder._inner_get_response(  # noqa: SLF001 - the hook is what is recorded
                messages=list(messages), stream=stream, options=dict(options), **kwargs
            )
        else:
            arguments = {"options": dict(options), "client_kwargs": dict(kwargs), "stream": stream}
            reply = client.get_response(list(messages), **{name: value for name, value in arguments.items() if value})
        build_stream = partial(builder._build_response_stream, response_format=options.get("response_format"))  # noqa: SLF001
        return await (stream_of if stream else response_of)(reply, build_stream)

    def _ab_get_client(self) -> Any:
        with self._ab_client_lock:
            if self._ab_client is None and self._ab_factory is not None:
                made = self._ab_factory()
                if not _is_client(made):
                    raise _no_client(made, "the function that makes the client returned")
                self._ab_client = made
            return self._ab_client

    def _ab_is_out_of_reach(self) -> bool:
        """Return whether this process is offline and the client needs the network or does not exist yet."""
        return is_offline() and (self._ab_client is None or needs_network(self._ab_client))

    async def _ab_play(self, updates: list[Plain]) -> AsyncIterator[ChatResponseUpdate]:
        for index, update in enumerate(updates):
            if self.delay and index:
                await asyncio.sleep(self.delay)
            yield ChatResponseUpdate.from_dict(copy.deepcopy(update))

    async def _ab_record(self, inner: ChatStream, request: Request, index: int) -> AsyncIterator[ChatResponseUpdate]:
        updates = []
        async for update in inner:
            updates.append(plain_answer(update))
            yield update
        self._ab_add(request, {"updates": updates}, index)

    def _ab_find(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: dict[str, Any], *, stream: bool
    ) -> tuple[StoredCall | None, Request, int]:
        """Return the recorded call or `None`, the request to record in that case, and its index in `calls`."""
        sent = self._ab_sent(messages)
        written = [plain for _, plain in sent]
        with self._ab_lock:
            index = len(self.calls)
            self.calls.append(CassetteCall([copied for copied, _ in sent], dict(options), stream, dict(kwargs)))
        self._ab_cassette.read()  # others may have added lines, including the first line with the model
        request = self._ab_cassette.request(written, options, model=self.model)
        recorded = self._ab_cassette.serve(request)
        if recorded is not None:
            self._ab_set_number(index, recorded, served=True)
            return recorded, request, index
        reason: Reason | None = None
        if self.mode == "replay":
            reason = "replay"
        elif self._ab_client is None and self._ab_factory is None:
            reason = "no client"
        elif self.mode == "auto" and self._ab_is_out_of_reach():
            reason = "offline"
        if reason is not None:
            raise miss_error(self._ab_cassette, request, reason=reason, secrets=self._ab_secrets())
        self._ab_cassette.require_writable()
        self._ab_get_client()
        request = self._ab_cassette.request(written, options, model=self.model)  # the model may not be known before
        self._ab_cassette.refuse_secrets(json.dumps(request.sent, ensure_ascii=False), self._ab_secrets())
        return None, request, index

    def _ab_add(self, request: Request, answer: Plain, index: int) -> None:
        stores = bool(getattr(self._ab_client, "STORES_BY_DEFAULT", False))
        header = header_line(client=type(self._ab_client).__name__, model=self.model, stores_by_default=stores)
        added = self._ab_cassette.add(request, answer, header=header, secrets=self._ab_secrets())
        self._ab_set_number(index, added, served=False)

    def _ab_set_number(self, index: int, recorded: StoredCall, *, served: bool) -> None:
        with self._ab_lock:
            self.calls[index] = self.calls[index]._replace(number=recorded.number, served=served)

    def _ab_secrets(self) -> frozenset[str]:
        return self._ab_find_secrets(self._ab_client, self._ab_factory, self.additional_properties)

    @property
    def last_call(self) -> CassetteCall | None:
        """The last model call; `None` before the first one."""
        return self.calls[-1] if self.calls else None

    @property
    def recorded_calls(self) -> Sequence[StoredCall]:
        """All calls in the file, in order."""
        return tuple(self._ab_cassette.lines.calls)

    def unused(self) -> list[StoredCall]:
        """The calls of the file that were neither served nor recorded by this object."""
        return self._ab_cassette.unused

    def assert_exhausted(self) -> None:
        """Raise an `AssertionError` that lists calls which this object neither served nor recorded, if any."""
        unused = self.unused()
        if unused:
            listed = [f"  {call!r}" for call in unused[:_MOST_LISTED]]
            more = [f"  … {len(unused) - _MOST_LISTED} more"] if len(unused) > _MOST_LISTED else []
            total = len(self.recorded_calls)
            head = f"{len(unused)} of {total} recorded calls of {self.path} were not served; prune() would remove them:"
            raise AssertionError("\n".join([head, *listed, *more]))

    def prune(self) -> int:
        """Keep only the calls that this object served or recorded, and return the number of removed calls.

        Raises:
            ChatClientException: `mode` is `replay`, which does not write.
        """
        if self.mode == "replay":
            message = "prune() writes the file, but mode='replay' only reads it. Use mode='auto'."
            raise ChatClientException(message)
        return self._ab_cassette.prune()

    def __repr__(self) -> str:
        done = [call for call in self.calls if call.number is not None]
        served = sum(call.served for call in done)
        counts = f"calls={len(self.recorded_calls)}, served={served}, recorded={len(done) - served}"
        return f"CassetteChatClient({self.path!r}, mode={self.mode!r}, model={self.model!r}, {counts})"

    async def close(self) -> None:
        """Close the client, if it exists and can be closed."""
        close = getattr(self._ab_client, "close", None)
        closing: Any = close() if callable(close) else None
        if hasattr(closing, "__await__"):
            await closing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def response_for(call: StoredCall, options: Mapping[str, Any]) -> ChatResponse[Any]:
    """Return a recorded answer as the response to a request with these options."""
    response = call.to_response()
    response.response_format = options.get("response_format")
    return response


def _is_client(source: object) -> bool:
    # A class also has the method, but it is a function that makes a client.
    return not isinstance(source, type) and callable(getattr(source, "get_response", None))


def _no_client(source: object, what: str) -> TypeError:
    return TypeError(
        f"{what} {type(source).__name__}; expected a chat client or a function without arguments that makes one."
    )
