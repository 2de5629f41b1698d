"""The agent: a chat client with instructions, tools, memory, middleware and spans."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from typing import Any, ClassVar, Generic

from agentbench.agents.agent.errors import as_agent_error
from agentbench.agents.agent.raw_agent import AgentStream, RawAgent, RunArguments
from agentbench.agents.arguments import check_run_arguments, unexpected_run_keyword
from agentbench.agents.middleware.layer import run_with_middleware
from agentbench.agents.telemetry.layers import run_in_span
from agentbench.exceptions import ChatClientException
from agentbench.messages.options import OptionsCoT
from agentbench.messages.response import AgentResponse
from agentbench.observability.switches import is_tracing


class Agent(RawAgent[OptionsCoT], Generic[OptionsCoT]):
    """Answers messages with a model, runs tools for it, and remembers the conversation in a session.

    Around each run is the agent middleware, inside it the span, inside that the run itself. Errors of the chat client
    about credentials, requests, responses and content filters are also caught as errors of the agent
    (`except AgentInvalidAuthException`).

    Args:
        client: The chat client that calls the model: any object with a method `get_response`.
        instructions: What the model has to do, and how; one text or several.
        id: Identifies the agent. By default a new one at each start of the program.
        name: Signs the agent's messages; graphs and tools know the agent by it.
        description: What the agent is good for, for people and for models that call it as a tool.
        tools: What the model may call. Functions become tools.
        default_options: Options of every run, such as `temperature`; those of a run override them. The arguments
            `instructions` and `tools` override the options of these names.
        context_providers: Called before each run in this order, and after it in reverse; histories among them.
        middleware: Around runs, calls of the model and calls of tools, each kind outermost first.
        require_per_service_call_history_persistence: Load and save the history around each call of the model, instead
            of around the whole run, so that a crash loses one call.
        function_invocation_configuration: Limits of the tool loop, instead of the client's; see
            `FunctionInvocationConfiguration`.
        compaction_strategy: Shortens long conversations for the model, instead of the client's strategy.
        tokenizer: Counts tokens for it.
        raise_on_user_input: A run that needs a person's answer raises `UserInputRequiredException`, instead of
            returning a response that lists the `user_input_requests`.
        save_abandoned: A stream that is closed or cancelled before its end stores the answer until then in the session,
            and a cancelled run its input. `False`: they store nothing, and providers get a cancellation as an error.
        additional_properties: Anything that the application wants to store with the agent.
        chat_client: Another name for `client`.
        otel_agent_provider_name: The name under which spans report the agent; by default `AGENT_PROVIDER_NAME`.
        otel_provider_name: The same.

    Raises:
        TypeError: If there is no client, or one without a callable `get_response`, a keyword is not known, or an
            argument is of a wrong type.
        ValueError: If two different tools have one name, or the configuration is not valid.
        MiddlewareException: If something in `middleware` is no middleware.

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
        """Start a run; `raises`: for requests to a person, after middleware and spans got the response."""
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
        """Run inside of the layers, with the arguments as middleware left them."""
        if unknown := arguments.keys() - RunArguments.__annotations__.keys():
            raise unexpected_run_keyword(self, unknown)
        check_run_arguments(*map(arguments.get, ("session", "options", "function_invocation_kwargs", "client_kwargs")))
        return super()._start(messages, arguments, stream=stream)

    def error_to_raise(self, error: Exception) -> Exception:
        """Return what to raise for an error of the run: one of the client becomes one of the agent, too."""
        return as_agent_error(error) if isinstance(error, ChatClientException) else error


async def _respond(pending: Awaitable[Any], *, raises: bool) -> Any:
    response = await pending
    return response.raise_for_user_input() if raises and isinstance(response, AgentResponse) else response


_respond.__qualname__ = "Agent.run"  # what Python names when the await was forgotten
