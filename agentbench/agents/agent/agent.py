"""The agent: a chat client with instructions, tools, memory, middleware and spans."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from typing import Any, ClassVar, Generic

from agentbench.agents.agent.errors import as_agent_error
from agentbench.agents.agent.raw_agent import AgentRunArguments, AgentStream, RawAgent
from agentbench.agents.arguments import check_run_arguments, unexpected_run_keyword
from agentbench.agents.middleware.layer import run_with_middleware
from agentbench.agents.telemetry.layers import run_in_span
from agentbench.exceptions import ChatClientException
from agentbench.messages.options import OptionsCoT
from agentbench.messages.response import AgentResponse
from agentbench.observability.switches import is_tracing


class Agent(RawAgent[OptionsCoT], Generic[OptionsCoT]):
    """An agent answers messages with a model, runs the model's tool calls, and keeps the conversation in a session.

    Each run is wrapped by the agent middleware and then by a telemetry span. Errors of the chat client about
    credentials, requests, responses and content filters can also be caught as errors of the agent
    (`except AgentInvalidAuthException`).

    Args:
        client: The chat client that calls the model: any object with a `get_response` method.
        instructions: Instructions for the model; one text or several.
        id: Id of the agent. By default generated at each start of the program.
        name: Author of the agent's messages; also its name in graphs and as a tool.
        description: Description for people and for models that call the agent as a tool.
        tools: Tools that the model may call. Functions become tools.
        default_options: Options of every run, such as `temperature`. Options of a run override them. The arguments
            `instructions` and `tools` override the options with these names.
        context_providers: Providers, including histories; called in order before each run, in reverse order after it.
        middleware: Middleware for runs, model calls and tool calls; the first of each kind is the outermost.
        require_per_service_call_history_persistence: Whether to load and save the history around each model call
            instead of around the whole run, so that a crash loses only one call.
            of around the whole run, so that a crash loses only one call.
        function_invocation_configuration: Limits of the tool loop, overriding the client's; see
            `FunctionInvocationConfiguration`.
        compaction_strategy: Shortens long conversations for the model, overriding the client's strategy.
        tokenizer: Counts tokens for the strategy.
        raise_on_user_input: Whether a run that needs a person's answer raises `UserInputRequiredException`, instead of
            returning a response that lists the `user_input_requests`.
        save_abandoned: Whether a stream that is closed early stores its input and partial answer in the session, and a
            cancelled run its input. If false, nothing is stored, and context providers see a cancellation as an error.
        additional_properties: Additional values that the application stores with the agent.
        chat_client: Alias of `client`.
        otel_agent_provider_name: Provider name of the agent in spans; by default `AGENT_PROVIDER_NAME`.
        otel_provider_name: Alias of `otel_agent_provider_name`.

    Raises:
        TypeError: If the client is missing or has no callable `get_response`, a keyword is unknown, or an argument has
            the wrong type.
        ValueError: If two different tools have the same name, or the configuration is invalid.
        MiddlewareException: If `middleware` contains an object that is not middleware.

    Example:
        def get_weather(city: str) -> str:
            "Tell the weather."
            return f"Fog in {city}."


        client = ScriptedChatClient([Call("get_weather", {"city": "Oslo"}), "It is foggy."])
        agent = Agent(client, "You help with the weather.", name="weather", tools=[get_weather])
        session = agent.create_session()
        response = await agent.run("How is it in Oslo?", session=session)
        print(response.text)
    """

    MAKES_OWN_SPANS: ClassVar[bool] = True
    RUNS_MIDDLEWARE: ClassVar[bool] = True

    def _start(
        self, messages: Any, arguments: Mapping[str, Any], *, stream: bool, middleware: Any = None, raises: bool = False
    ) -> Coroutine[Any, Any, AgentResponse[Any]] | AgentStream:
        """Start a run; with `raises`, user input requests raise after middleware and spans have seen the response."""
        is_traced = is_tracing()
        if not (is_traced or middleware or self.middleware):
            return super()._start(messages, arguments, stream=stream, raises=raises)
        run = partial(run_in_span, self, self._run_inside) if is_traced else self._run_inside
        pending = run_with_middleware(self, run, messages, arguments, stream=stream, middleware=middleware)
        if not stream:
            return _respond(pending, raises=raises)
        streamed: AgentStream = pending
        return streamed.with_result_hook(AgentResponse.raise_for_user_input) if raises else streamed

    def _run_inside(self, messages: Any = None, *, stream: bool = False, **arguments: Any) -> Any:
        """Run inside the layers, with the arguments that the middleware passes on."""
        if unknown := arguments.keys() - AgentRunArguments.__annotations__.keys():
            raise unexpected_run_keyword(self, unknown)
        check_run_arguments(*map(arguments.get, ("session", "options", "function_invocation_kwargs", "client_kwargs")))
        return super()._start(messages, arguments, stream=stream)

    def error_to_raise(self, error: Exception) -> Exception:
        """Return the error to raise: a client error is converted so that it is also an agent error."""
        return as_agent_error(error) if isinstance(error, ChatClientException) else error


async def _respond(pending: Awaitable[Any], *, raises: bool) -> Any:
    response = await pending
    return response.raise_for_user_input() if raises and isinstance(response, AgentResponse) else response


_respond.__qualname__ = "Agent.run"  # Python's warning about a forgotten await shows this name
