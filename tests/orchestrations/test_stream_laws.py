"""A stream that is folded is the awaited result: for agents, nodes, patterns, agents of workflows and nestings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentExecutor,
    AgentLoopMiddleware,
    AgentResponse,
    ChatResponse,
    Content,
    Message,
    ScriptedChatClient,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
    tool,
)
from agentbench.orchestrations import ConcurrentBuilder, GroupChatBuilder, HandoffBuilder, SequentialBuilder

Script = list[list[Message]]

TEXTS = st.sampled_from(["a", "b c", '{"n": 1}', ""])
PLAIN = st.one_of(
    TEXTS.map(Content.from_text),
    TEXTS.map(lambda text: Content.from_text_reasoning(text=text)),
    st.just(Content.from_uri("https://pictures.example/a.png", media_type="image/png")),
)
CALLS = st.builds(
    lambda call_id, n: Content.from_function_call(call_id, "look", arguments={"n": n}),
    st.sampled_from(["c", "d"]),
    st.integers(0, 3),
)


def messages(contents: st.SearchStrategy[Content]) -> st.SearchStrategy[list[Message]]:
    """Several messages at once, of several authors, with ids that repeat."""
    one = st.builds(
        lambda parts, author, id_: Message("assistant", parts, author_name=author, message_id=id_),
        st.lists(contents, min_size=1, max_size=3),
        st.sampled_from([None, "x", "y"]),
        st.sampled_from([None, "m", "n"]),
    )
    return st.lists(one, min_size=1, max_size=3)


SCRIPTS = st.builds(
    lambda before, last: [*before, last], st.lists(messages(st.one_of(PLAIN, CALLS)), max_size=2), messages(PLAIN)
)


@tool
def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


def agent(name: str, script: Script, **more: Any) -> Agent:
    answers = [ChatResponse(messages=answer) for answer in script]
    client = ScriptedChatClient(answers, on_exhausted="repeat_last", chunk="char")
    return Agent(client, name=name, tools=[look], require_per_service_call_history_persistence=True, **more)


def node(script: Script) -> Workflow:
    return WorkflowBuilder(start_executor=AgentExecutor(agent("a", script))).build()


def sequential(script: Script) -> Workflow:
    return SequentialBuilder(participants=[agent("a", script), agent("b", script)], output_from="all").build()


def concurrent(script: Script) -> Workflow:
    return ConcurrentBuilder(participants=[agent("a", script), agent("b", script)]).build()


def group_chat(script: Script) -> Workflow:
    participants = [agent("a", script), agent("b", script)]
    builder = GroupChatBuilder(participants=participants, selection_func=lambda state: "a", output_from="all")
    return builder.with_max_rounds(2).build()


def handoff(script: Script) -> Workflow:
    first = agent("a", script)
    return HandoffBuilder(participants=[first, agent("b", script)]).with_start_agent(first).build()


def nested(script: Script) -> Workflow:
    return WorkflowBuilder(start_executor=WorkflowExecutor(sequential(script), "inner")).build()


def agent_of_a_workflow_as_a_node(script: Script) -> Workflow:
    inner = sequential(script).as_agent(name="inner")
    return SequentialBuilder(participants=[inner, agent("c", script)], output_from="all").build()


def in_rounds(script: Script) -> Workflow:
    twice = [AgentLoopMiddleware(max_iterations=2)]
    participants = [agent("a", script, middleware=twice), agent("b", script, middleware=twice)]
    inner = ConcurrentBuilder(participants=participants).build().as_agent(name="inner")
    return SequentialBuilder(participants=[inner, agent("c", script, middleware=twice)], output_from="all").build()


SHAPES = [node, sequential, concurrent, group_chat, handoff, nested, agent_of_a_workflow_as_a_node, in_rounds]


def facts(said: Iterable[Message]) -> list[Any]:
    """Return what counts as equal: pieces of text are joined, and ids are told apart by their order alone."""
    ids: dict[str | None, int] = {}
    found: list[Any] = []
    for message in said:
        parts: list[list[Any]] = []
        for content in message.contents:
            known = ids.setdefault(content.call_id, len(ids)) if content.call_id else None
            if content.type in ("text", "text_reasoning"):
                if parts and parts[-1][0] == content.type:
                    parts[-1][1] += content.text or ""
                elif content.text:
                    parts.append([content.type, content.text])
            else:
                parts.append([content.type, content.name, known, content.uri, content.result, arguments(content)])
        found.append((message.role, message.author_name, parts))
    return found


def arguments(content: Content) -> Any:
    """Return the arguments of a call; those of a question of a workflow hold its id."""
    return content.parse_arguments() if content.type == "function_call" and content.name == "look" else None


def checked(law: Callable[[Script], Any]) -> Any:
    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(script=SCRIPTS)
    def run(script: Script) -> None:
        asyncio.run(law(script))

    return run()


async def fold_of(target: Agent) -> tuple[AgentResponse[Any], AgentResponse[Any]]:
    """Return the final response of a stream, and its updates folded."""
    stream = target.run("Go", stream=True)
    updates = [update async for update in stream]
    return await stream.get_final_response(), AgentResponse.from_updates(updates)


def test_an_agent() -> None:
    async def law(script: Script) -> None:
        awaited = facts((await agent("a", script).run("Go")).messages)
        for streamed in await fold_of(agent("a", script)):
            assert facts(streamed.messages) == awaited

    checked(law)


@pytest.mark.parametrize("build", SHAPES)
def test_the_outputs_of_a_workflow(build: Callable[[Script], Workflow]) -> None:
    async def law(script: Script) -> None:
        awaited = (await build(script).run("Go")).get_outputs()
        streamed = (await build(script).run("Go", stream=True).get_final_response()).get_outputs()
        assert [facts(each.messages) for each in streamed] == [facts(each.messages) for each in awaited]

    checked(law)


@pytest.mark.parametrize("build", SHAPES)
def test_the_agent_of_a_workflow(build: Callable[[Script], Workflow]) -> None:
    async def law(script: Script) -> None:
        target: Any = build(script).as_agent(name="flow")
        awaited = facts((await target.run("Go")).messages)
        again: Any = build(script).as_agent(name="flow")
        for streamed in await fold_of(again):
            assert facts(streamed.messages) == awaited

    checked(law)
