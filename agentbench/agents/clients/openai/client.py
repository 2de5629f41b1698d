"""Chat clients of OpenAI-compatible services."""

from __future__ import annotations

import logging
import os
import typing
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Unpack

from agentbench.agents.clients.openai.chat_completions import ChatCompletions, OpenAIChatOptions
from agentbench.agents.clients.openai.connection import TRANSPORT_ARGUMENTS, Connected, OpenAIConnection
from agentbench.agents.clients.openai.errors import NO_ANSWER, NO_END, NO_UPDATES, ReportedFailureError
from agentbench.agents.clients.openai.hosted_tools import HostedTools, WebSearchTool
from agentbench.agents.clients.openai.responses_requests import Responses
from agentbench.agents.clients.openai.settings import ApiKey
from agentbench.agents.clients.openai.wire import WireRequest
from agentbench.agents.model.client import BaseChatClient
from agentbench.exceptions import ChatClientInvalidRequestException
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from typing_extensions import TypeVar

    from agentbench.agents.model.client import ClientLayers

    OptionsT = TypeVar("OptionsT", default=OpenAIChatOptions)
else:  # defaults need Python 3.13, and only type checkers use them
    OptionsT = typing.TypeVar("OptionsT")

logger = logging.getLogger("agentbench.openai")

ApiName = Literal["chat_completions", "responses"]

_APIS: dict[str, ChatCompletions | Responses] = {"chat_completions": ChatCompletions(), "responses": Responses()}
# For a client that uses Chat Completions and stores conversations itself.
_IN_BACKGROUND = Responses(stores=False)


class OpenAIClient(Connected, BaseChatClient[OptionsT], Generic[OptionsT]):
    """The base class of the clients, which document the arguments."""

    OTEL_PROVIDER_NAME: ClassVar[str] = "openai"
    NEEDS_NETWORK: ClassVar[bool] = True
    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = {*BaseChatClient.DEFAULT_EXCLUDE, "STORES_BY_DEFAULT"}
    INJECTABLE: ClassVar[Collection[str]] = {"async_client"}
    APIS: ClassVar[tuple[ApiName, ...]] = ("chat_completions",)
    MODEL_SETTINGS: ClassVar[tuple[str, ...]] = ("chat_model", "model")

    def __init__(  # noqa: PLR0913 - one argument per setting
        self,
        model: str | None = None,
        *,
        api: ApiName | None = None,
        api_key: ApiKey | None = None,
        org_id: str | None = None,
        base_url: str | None = None,
        default_headers: Mapping[str, str] | None = None,
        async_client: AsyncOpenAI | None = None,
        instruction_role: str | None = None,
        env_file_path: str | os.PathLike[str] | None = None,
        env_file_encoding: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **layers: Unpack[ClientLayers],
    ) -> None:
        super().__init__(**layers)
        if api is not None and api not in self.APIS:
            message = (
                f"{type(self).__name__} does not support api={api!r}. Expected {' or '.join(map(repr, self.APIS))}."
            )
            raise ValueError(message)
        self._ab_connection = OpenAIConnection(
            model,
            self.MODEL_SETTINGS,
            api_key=api_key,
            org_id=org_id,
            base_url=base_url,
            env_file_path=env_file_path,
            env_file_encoding=env_file_encoding,
            async_client=async_client,
            default_headers=default_headers,
            timeout=timeout,
            max_retries=max_retries,
        )
        target = self._ab_connection.target
        self.model, self.org_id, self.base_url = target.model, target.org_id, target.base_url
        self.api: ApiName = api or self._ab_default_api(target.api)
        if _APIS[self.api].stores:
            self.STORES_BY_DEFAULT = True  # type: ignore[misc]  # of this client alone
        self.instruction_role = instruction_role

    def _ab_default_api(self, setting: str | None) -> ApiName:
        if setting is None or len(self.APIS) == 1:
            return self.APIS[0]
        for name in self.APIS:
            if name == setting.strip().lower():
                return name
        message = (
            f"{type(self).__name__} cannot use the API in OPENAI_API. Expected {' or '.join(map(repr, self.APIS))}."
        )
        raise ValueError(message)

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        if stream:
            updates = self._ab_updates(messages, options, kwargs)
            return self._build_response_stream(updates, response_format=options.get("response_format"))
        return self._ab_answer(messages, options, kwargs)

    async def _ab_prepare(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], ChatCompletions | Responses, WireRequest]:
        checked = dict(await self._validate_options(options))
        transport = {name: kwargs.get(name, checked.pop(name, None)) for name in TRANSPORT_ARGUMENTS}
        api = self._ab_api_for(checked)
        request = api.request(messages, checked, model=self.model, instruction_role=self.instruction_role)
        return checked, await self._ab_connection.transport(transport), api, request

    def _ab_api_for(self, options: Mapping[str, Any]) -> ChatCompletions | Responses:
        """Return the API for a request; only Responses supports background answers."""
        is_in_background = options.get("background") or options.get("continuation_token")
        if self.api == "responses" or not is_in_background:
            return _APIS[self.api]
        if "responses" in self.APIS:
            return _IN_BACKGROUND
        message = "Chat Completions does not support background answers. Use OpenAIChatClient or OpenAIResponsesClient."
        raise ChatClientInvalidRequestException(message)

    async def _ab_answer(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatResponse[Any]:
        checked, transport, api, request = await self._ab_prepare(messages, options, kwargs)
        with self._ab_connection.translate_errors(request.body, transport):
            answer = await self._ab_connection.call(api.path, request, transport)
            failure = api.failure(answer)
            if failure is not None:
                raise ReportedFailureError(failure)
            response = api.response(answer, checked)
            if response is None:
                raise ValueError(NO_ANSWER)
            return response

    async def _ab_updates(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> AsyncIterator[ChatResponseUpdate]:
        checked, transport, api, request = await self._ab_prepare(messages, options, kwargs)
        reader, is_empty = api.reader(checked), True
        with self._ab_connection.translate_errors(request.body, transport):
            events = await self._ab_connection.open(api.path, api.stream_request(request), transport)
            try:
                async for event in events:
                    update = reader.read(event)
                    if reader.failure is not None:
                        raise ReportedFailureError(reader.failure)
                    if update is not None:
                        is_empty = False
                        yield update
            finally:
                await events.aclose()
            if is_empty:
                raise ValueError(NO_UPDATES)
            if not reader.ended and reader.must_end:
                raise EOFError(NO_END)
        if not reader.ended:
            logger.warning(
                "A stream of %s ended without a finish reason; the answer may be incomplete.", self.service_url()
            )


class RawOpenAIChatClient(OpenAIClient[OptionsT], HostedTools):
    """An `OpenAIChatClient` that returns tool calls to its caller, unless a `FunctionInvocationLayer` is added.

    Arguments and errors are the same as for `OpenAIChatClient`.

    Example:
        from agentbench import FunctionInvocationLayer
        from agentbench.openai import RawOpenAIChatClient


        class MyClient(FunctionInvocationLayer, RawOpenAIChatClient):
            pass
    """

    APIS: ClassVar[tuple[ApiName, ...]] = ("chat_completions", "responses")
    FUNCTION_INVOCATION_ENABLED: ClassVar[bool] = False


class OpenAIChatClient(RawOpenAIChatClient[OptionsT]):
    """Calls models of OpenAI or any OpenAI-compatible server.

    Uses the Chat Completions API or the Responses API.

    Args:
        model: Model or deployment; by default `OPENAI_CHAT_MODEL`, else `OPENAI_MODEL`.
        api: `chat_completions` or `responses` (the service stores the conversation); by default `OPENAI_API`, else
            `chat_completions`.
        api_key: The API key, or a function that returns it for each request; by default `OPENAI_API_KEY`. Servers
            on this machine or in a private network need none.
        org_id: Id of the organization; by default `OPENAI_ORG_ID`.
        base_url: URL of the API; by default `OPENAI_BASE_URL`, else OpenAI's URL.
        default_headers: Headers that are sent with every request.
        async_client: An SDK client to use instead; its key, URL and limits apply.
        instruction_role: Role of the instructions, such as `developer`; by default `system`.
        env_file_path: A `.env` file with these settings; it overrides the environment.
        env_file_encoding: Encoding of that file.
        timeout: Timeout of a request in seconds; by default the SDK's.
        max_retries: Number of retries by the SDK; by default the SDK's. In a batch, its limiter retries instead.
        **layers: The arguments of every client: `middleware`, `function_invocation_configuration`,
            `compaction_strategy`, `tokenizer`, `additional_properties`, `otel_provider_name`.

    Raises:
        SettingNotFoundError: The model or the API key is missing.
        MissingExtraError: The `openai` package is not installed.
        ValueError: The URL is invalid, or the client does not support `api`.

    Example:
        from agentbench.openai import OpenAIChatClient

        client = OpenAIChatClient("gpt-4o-mini")  # the key from OPENAI_API_KEY
        local = OpenAIChatClient("llama3.2", base_url="http://localhost:11434/v1")
        agent = client.as_agent(instructions="Be brief.")
        print(await agent.run("Why is the sky blue?"))
    """

    FUNCTION_INVOCATION_ENABLED: ClassVar[bool] = True


class RawOpenAIChatCompletionClient(OpenAIClient[OptionsT], WebSearchTool):
    """An `OpenAIChatCompletionClient` that returns tool calls to its caller.

    Arguments and errors are the same as for `OpenAIChatCompletionClient`.

    Example:
        from agentbench.openai import RawOpenAIChatCompletionClient

        client = RawOpenAIChatCompletionClient("llama3.2", base_url="http://localhost:11434/v1")
    """

    MODEL_SETTINGS: ClassVar[tuple[str, ...]] = ("chat_completion_model", "model")
    FUNCTION_INVOCATION_ENABLED: ClassVar[bool] = False


class OpenAIChatCompletionClient(RawOpenAIChatCompletionClient[OptionsT]):
    """Calls models of OpenAI or any OpenAI-compatible server with the Chat Completions API.

    Args:
        model: Model or deployment; by default `OPENAI_CHAT_COMPLETION_MODEL`, else `OPENAI_MODEL`.
        api: The API; only `chat_completions` is supported.

    The other arguments and the errors are the same as for `OpenAIChatClient`.

    Example:
        from agentbench.openai import OpenAIChatCompletionClient

        client = OpenAIChatCompletionClient("llama3.2", base_url="http://localhost:11434/v1")
        print(await client.get_response("Why is the sky blue?"))
    """

    FUNCTION_INVOCATION_ENABLED: ClassVar[bool] = True


class OpenAIResponsesClient(OpenAIClient[OptionsT], HostedTools):
    """Calls models of OpenAI with the Responses API; the service stores the conversation unless `store=False`.

    Args:
        model: Model or deployment; by default `OPENAI_RESPONSES_MODEL`, else `OPENAI_CHAT_MODEL`, else
            `OPENAI_MODEL`.
        api: The API; only `responses` is supported.

    The other arguments and the errors are the same as for `OpenAIChatClient`.

    Example:
        from agentbench.openai import OpenAIResponsesClient

        client = OpenAIResponsesClient("gpt-4o-mini")  # the key from OPENAI_API_KEY
        agent = client.as_agent(tools=[client.get_web_search_tool()])
        print(await agent.run("What is new?"))
    """

    APIS: ClassVar[tuple[ApiName, ...]] = ("responses",)
    MODEL_SETTINGS: ClassVar[tuple[str, ...]] = ("responses_model", "chat_model", "model")
    STORES_BY_DEFAULT: ClassVar[bool] = True
