"""Workflows of agents that ask a person, made from a seed; process and storage may change between any two steps.

Their models keep nothing: each knows from the conversation how far it is, and refuses one that is not whole.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from agentbench import (
    Agent,
    AgentExecutor,
    AgentHostOptions,
    AgentResponse,
    AgentSession,
    ChatResponse,
    Content,
    FunctionTool,
    Message,
    RunContext,
    TurnToken,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    step,
    tool,
    workflow,
)
from agentbench.agents.model.client import BaseChatClient
from agentbench.orchestrations import build_sequential

PROMPT = "Plan the party."
Note = Callable[[str], None]


def is_approved(call_id: str) -> bool:
    """What the person decides about a call, the same in every life of a run."""
    return hashlib.sha256(call_id.encode()).digest()[0] % 4 > 0


def answer_to(request: Content) -> Content:
    """The person's answer to a request of an agent, or of a workflow that is an agent."""
    if request.type == "function_call":
        return Content.from_function_result(str(request.call_id), result=f"told {request.call_id}")
    call: Any = request.function_call
    if call.name != "request_info":
        return request.to_function_approval_response(is_approved(call.call_id))
    inner = call.parse_arguments()["data"]
    inner = inner if isinstance(inner, Content) else Content.from_dict(inner)
    response = request.to_function_approval_response(True)
    response.function_call = Content.from_function_call(
        call.call_id, call.name, arguments={"request_id": call.call_id, "data": answer_to(inner)}
    )
    return response


def described(messages: Sequence[Message]) -> list[Any]:
    """A conversation as text; answers that came in another order are the same conversation."""
    return [
        (message.role, sorted(f"{c.type} {c.call_id or ''} {c.result or c.text or ''}" for c in message.contents))
        for message in messages
    ]


class Planner(BaseChatClient[Any]):
    """A model that has its calls made round after round, and then says what it has seen."""

    def __init__(self, name: str, rounds: list[list[str]], note: Note) -> None:
        super().__init__()
        self.name, self.rounds, self._note = name, rounds, note

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> ChatResponse[Any]:
        contents = [content for message in messages for content in message.contents]
        calls = Counter(c.call_id for c in contents if c.type == "function_call")
        results = Counter(c.call_id for c in contents if c.type == "function_result")
        if calls != results or any(count > 1 for count in calls.values()):
            message = f"{self.name} got the calls {calls} and the results {results}"
            raise ValueError(message)
        texts = Counter(content.text for content in contents if content.text)
        if max(texts.values(), default=0) > 1 or not texts[PROMPT]:
            message = f"{self.name} got the texts {texts}"
            raise ValueError(message)
        for number, kinds in enumerate(self.rounds):
            ids = [f"{self.name}-{number}-{place}" for place in range(len(kinds))]
            if not results.keys() >= set(ids):
                asked = [
                    Content.from_function_call(call_id, kind, arguments={"key": call_id})
                    for call_id, kind in zip(ids, kinds, strict=True)
                ]
                return ChatResponse(messages=[Message("assistant", asked)])
        digest = hashlib.sha256(repr(described(messages)).encode()).hexdigest()[:8]
        text = f"{self.name} saw {len(messages)}: {digest}"
        self._note(f"said {text}")
        return ChatResponse(messages=[Message("assistant", [text])])


def go_on(_: list[Message]) -> list[Message]:
    """What an agent gets that has the conversation already, because it shares the session."""
    return [Message("user", ["Your turn."])]


class Flow:
    """A generated workflow, `kind` of it, and its input; tools report what they do to `note`."""

    def __init__(self, seed: int, note: Note, storage: Any = None) -> None:
        self._rng = Random(f"flow {seed}")
        self._note = note
        self._count = 0
        self.kind = ("chain", "shared", "turns", "fan", "nested", "function")[seed % 6]
        self.input: Any = PROMPT
        self.workflow = self._function(storage) if self.kind == "function" else self._graph(self.kind, storage)

    def _agent(self) -> Agent:
        rng, name = self._rng, f"a{self._count}"
        self._count += 1

        @tool(approval_mode="always_require")
        async def send(key: str) -> str:
            self._note(f"effect {key}")
            return f"sent {key}"

        @tool
        def look(key: str) -> str:
            self._note(f"effect {key}")
            return f"seen {key}"

        ask = FunctionTool(
            name="ask",
            description="Asks a person.",
            input_model={"type": "object", "properties": {"key": {"type": "string"}}},
        )
        kinds = ("send", "send", "look", "ask")
        rounds = [[rng.choice(kinds) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 2))]
        return Agent(Planner(name, rounds, self._note), name=name, tools=[send, look, ask])

    def _graph(self, kind: str, storage: Any, depth: int = 0) -> Any:
        rng = self._rng
        name = f"w{depth}"
        if kind == "turns":
            options = AgentHostOptions(emit_agent_response_events=True)
            agents = [self._agent() for _ in range(rng.randint(1, 3))]
            self.input = [Message("user", [PROMPT]), TurnToken()]
            return build_sequential(*agents, options=options, name=name, checkpoint_storage=storage)
        builder = WorkflowBuilder(name=name, checkpoint_storage=storage, output_from="all")
        if kind == "fan":

            @executor(id="spread")
            async def spread(messages: str | list[Message], ctx: WorkflowContext[str]) -> None:
                await ctx.send_message(PROMPT)

            return builder.fan_out(spread, [AgentExecutor(self._agent()) for _ in range(rng.randint(2, 3))]).build()
        if kind in ("nested", "agent"):
            inner = self._graph(
                rng.choice(("chain", "shared", "fan", *(("nested",) if depth < 2 else ()))), None, depth + 1
            )
            first: Any = inner.as_agent(name="team")
            if kind == "nested":
                first = WorkflowExecutor(inner, "team", allow_direct_output=True, propagate_request=True)
            return builder.add_executor(first).build()
        if kind == "shared":
            session = AgentSession()
            mine: dict[str, Any] = {"session": session, "context_mode": "custom", "context_filter": go_on}
            nodes = [AgentExecutor(self._agent(), **mine) for _ in range(2)]
        else:
            nodes = [AgentExecutor(self._agent()) for _ in range(rng.randint(1, 3))]
        return (builder.add_chain(nodes) if len(nodes) > 1 else builder.add_executor(nodes[0])).build()

    def _function(self, storage: Any) -> Any:
        agents = [self._agent() for _ in range(self._rng.randint(1, 2))]

        @step
        async def turn(number: int, conversation: Any, messages: list[Message]) -> tuple[Any, AgentResponse]:
            session = AgentSession.from_dict(conversation) if conversation else AgentSession()
            response = await agents[number].run(messages, session=session)
            return session.to_dict(), response

        @workflow(name="w0", checkpoint_storage=storage)
        async def talk(prompt: str, ctx: RunContext) -> str:
            texts = []
            for number in range(len(agents)):
                conversation, response = await turn(number, None, [Message("user", [prompt])])
                while requests := response.user_input_requests:
                    answers = [await ctx.request_info(request, Content) for request in requests]
                    conversation, response = await turn(number, conversation, [Message("user", answers)])
                texts.append(response.text)
            return " ".join(texts)

        return talk
