"""One rule for all limits: `None` is no limit, 0 is nothing or refused, negative numbers and truth values are refused.

The table names every limit that a public class or function takes; the last test finds those that are missing in it.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import agentbench
from agentbench import (
    Agent,
    AgentSession,
    CachingSkillsSource,
    CharacterEstimatorTokenizer,
    ContextWindowCompactionStrategy,
    EchoChatClient,
    ExecutorPolicy,
    FileCheckpointStorage,
    FileSkillScript,
    FileSkillsSource,
    FileSystemAgentFileStore,
    FunctionExecutor,
    InMemoryAgentFileStore,
    InMemoryCheckpointStorage,
    LocalEvaluator,
    MCPStdioTool,
    MemoryContextProvider,
    RunOptions,
    ScriptedChatClient,
    SelectiveToolCallCompactionStrategy,
    SlidingWindowStrategy,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    Workflow,
    WorkflowBuilder,
    create_harness_agent,
    evaluate_agent,
    evaluate_workflow,
    executor,
    keyword_check,
    run_sync,
    tool,
)
from agentbench.agents.harness.memory_store import MemoryFileStore
from agentbench.checkpoints.access import list_infos, prune_chain
from agentbench.orchestrations import (
    GroupChatBuilder,
    HandoffBuilder,
    MagenticBuilder,
    StandardMagenticManager,
)
from agentbench.stategraph import RetryPolicy, StateGraph
from agentbench.testing import CassetteChatClient

NAN = math.nan


class Limit(NamedTuple):
    """How a limit is given, the least that it may be, and whether `None` may be given, which is no limit."""

    give: Callable[[Any], Any]
    least: int
    none: bool = False


@executor(id="node")
async def node(text: str, ctx: agentbench.WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


def agent() -> Agent:
    return Agent(EchoChatClient(), name="ada")


def state_graph() -> StateGraph[Any]:
    return StateGraph().add_node("a", lambda state: None).set_entry_point("a")


def workflow() -> Workflow:
    return WorkflowBuilder(start_executor=node).build()


def call_tools(**limits: Any) -> Agent:
    return Agent(EchoChatClient(), function_invocation_configuration=limits)


def window(**given: Any) -> ContextWindowCompactionStrategy:
    return ContextWindowCompactionStrategy(**{"max_context_window_tokens": 1000, "max_output_tokens": 10, **given})


def budget(**given: Any) -> TokenBudgetComposedStrategy:
    given = {"token_budget": 100, **given}
    return TokenBudgetComposedStrategy(tokenizer=CharacterEstimatorTokenizer(), strategies=[], **given)


def memory(**given: Any) -> MemoryContextProvider:
    return MemoryContextProvider(store=store(), **given)


def owned() -> AgentSession:
    session = AgentSession()
    session.state["user"] = "ann"
    return session


def store() -> MemoryFileStore:
    return MemoryFileStore("memory", owner_state_key="user")


def evaluate(function: Any, **given: Any) -> Any:
    return asyncio.run(function(queries=["q"], evaluators=keyword_check("a"), **given))


def group_chat(**given: Any) -> GroupChatBuilder:
    return GroupChatBuilder(participants=[agent()], selection_func=lambda state: "ada", **given)


def magentic(**given: Any) -> MagenticBuilder:
    return MagenticBuilder(participants=[agent()], manager_agent=agent(), **given)


def stepper(limit: Any) -> None:
    notebook().stepper(workflow(), "x", max_supersteps=limit).close()


def notebook() -> Any:
    pytest.importorskip("pandas")
    return agentbench.notebook


def handoff(limit: Any) -> Any:
    bob, eve = (Agent(EchoChatClient(), name=name, id=name) for name in ("bob", "eve"))
    builder = HandoffBuilder(participants=[bob, eve], enable_history_persistence=True).with_start_agent(bob)
    return builder.with_autonomous_mode(agents=[bob], turn_limits={"bob": limit}).build()


#: Counts, by the name that an error has to say.
COUNTS: dict[str, list[Limit]] = {
    "max_iterations": [
        Limit(lambda n: WorkflowBuilder(max_iterations=n), 0),
        Limit(lambda n: WorkflowBuilder().max_iterations(n), 0),
        Limit(lambda n: RunOptions(max_iterations=n), 0, none=True),
        Limit(lambda n: Workflow([], {"node": node}, node, max_iterations=n), 0),
        Limit(lambda n: call_tools(max_iterations=n), 1),
    ],
    "max_file_bytes": [Limit(lambda n: FileSystemAgentFileStore("files", max_file_bytes=n), 1)],
    "record_limit": [Limit(lambda n: RunOptions(record_limit=n), 0)],
    "max_messages": [
        Limit(lambda n: WorkflowBuilder(max_messages=n), 0),
        Limit(lambda n: WorkflowBuilder().max_messages(n), 0),
        Limit(lambda n: RunOptions(max_messages=n), 0, none=True),
    ],
    "retries": [
        Limit(lambda n: ExecutorPolicy(retries=n), 0),
        Limit(lambda n: FunctionExecutor(len, "a", input=str, retries=n), 0, none=True),
        Limit(lambda n: StateGraph().add_node("a", print, retries=n), 0),
    ],
    "max_attempts": [Limit(lambda n: RetryPolicy(max_attempts=n), 1)],
    "max_concurrency": [
        Limit(lambda n: ExecutorPolicy(max_concurrency=n), 1, none=True),
        Limit(lambda n: FunctionExecutor(len, "a", input=str, max_concurrency=n), 1, none=True),
        Limit(lambda n: state_graph().compile(max_concurrency=n), 1, none=True),
        Limit(lambda n: LocalEvaluator(keyword_check("a"), max_concurrency=n), 1),
        Limit(lambda n: evaluate(evaluate_agent, agent=agent(), max_concurrency=n), 1),
        Limit(lambda n: evaluate(evaluate_workflow, workflow=workflow(), max_concurrency=n), 1),
    ],
    "num_repetitions": [
        Limit(lambda n: evaluate(evaluate_agent, agent=agent(), num_repetitions=n), 1),
        Limit(lambda n: evaluate(evaluate_workflow, workflow=workflow(), num_repetitions=n), 1),
    ],
    "recursion_limit": [
        Limit(lambda n: state_graph().compile().invoke("hi", {"thread_id": "t", "recursion_limit": n}), 1)
    ],
    "keep_last": [
        Limit(lambda n: InMemoryCheckpointStorage(keep_last=n), 1, none=True),
        Limit(lambda n: FileCheckpointStorage("checkpoints", keep_last=n), 1, none=True),
    ],
    "keep": [
        Limit(lambda n: asyncio.run(prune_chain(InMemoryCheckpointStorage(), workflow_name="x", keep=n)), 1),
        Limit(lambda n: asyncio.run(InMemoryCheckpointStorage().prune(workflow_name="x", keep=n)), 1),
        Limit(lambda n: state_graph().compile().prune({"thread_id": "t"}, keep=n), 1),
    ],
    "limit": [
        Limit(lambda n: asyncio.run(list_infos(InMemoryCheckpointStorage(), limit=n)), 0, none=True),
        Limit(lambda n: asyncio.run(InMemoryCheckpointStorage().list_infos(limit=n)), 0, none=True),
        Limit(lambda n: state_graph().compile().get_state_history({"thread_id": "t"}, limit=n), 0, none=True),
        Limit(lambda n: store().search_transcripts(owned(), source_id="s", query="q", limit=n), 1),
        Limit(lambda n: asyncio.run(InMemoryAgentFileStore().search("q", limit=n)), 1),
        Limit(lambda n: notebook().runs_frame([], limit=n), 0, none=True),
        Limit(lambda n: notebook().prose("x", limit=n), 1),
        Limit(lambda n: notebook().transcript([], limit=n), 1),
    ],
    "max_nodes": [
        Limit(lambda n: notebook().draw(workflow(), max_nodes=n), 1),
        Limit(lambda n: notebook().make_graph_panel(workflow(), max_nodes=n), 1),
    ],
    "max_supersteps": [Limit(lambda n: stepper(n), 1)],
    "total": [Limit(lambda n: notebook().progress(workflow().start("x"), total=n), 1, none=True)],
    "max_rounds": [
        Limit(
            lambda n: group_chat(max_rounds=n),
            1,
            none=True,
        ),
        Limit(
            lambda n: group_chat().with_max_rounds(n),
            1,
            none=True,
        ),
    ],
    "retry_attempts": [Limit(lambda n: group_chat(retry_attempts=n), 0, none=True)],
    "max_stall_count": [
        Limit(lambda n: StandardMagenticManager(agent(), max_stall_count=n), 0),
        Limit(lambda n: magentic(max_stall_count=n), 0),
    ],
    "max_reset_count": [
        Limit(lambda n: StandardMagenticManager(agent(), max_reset_count=n), 0, none=True),
        Limit(lambda n: magentic(max_reset_count=n), 0, none=True),
    ],
    "max_round_count": [
        Limit(lambda n: StandardMagenticManager(agent(), max_round_count=n), 1, none=True),
        Limit(lambda n: magentic(max_round_count=n), 1, none=True),
    ],
    "progress_ledger_retry_count": [
        Limit(lambda n: StandardMagenticManager(agent(), progress_ledger_retry_count=n), 0, none=True)
    ],
    "turn_limit": [Limit(handoff, 0, none=True)],
    "max_function_calls": [Limit(lambda n: call_tools(max_function_calls=n), 1, none=True)],
    "max_consecutive_errors_per_request": [Limit(lambda n: call_tools(max_consecutive_errors_per_request=n), 0)],
    "max_invocations": [Limit(lambda n: tool(len, name="t", max_invocations=n), 1, none=True)],
    "max_invocations_per_run": [Limit(lambda n: tool(len, name="t", max_invocations_per_run=n), 1, none=True)],
    "max_invocation_exceptions": [Limit(lambda n: tool(len, name="t", max_invocation_exceptions=n), 1, none=True)],
    "max_bytes": [Limit(lambda n: FileSkillScript(name="s", full_path="/s", max_bytes=n), 1)],
    "max_resource_bytes": [Limit(lambda n: FileSkillsSource("skills", max_resource_bytes=n), 1)],
    "max_files": [Limit(lambda n: FileSkillsSource("skills", max_files=n), 1)],
    "max_output": [Limit(lambda n: agentbench.subprocess_script_runner(max_output=n), 0)],
    "max_n": [Limit(lambda n: TruncationStrategy(max_n=n, compact_to=1), 1)],
    "compact_to": [Limit(lambda n: TruncationStrategy(max_n=9, compact_to=n), 1)],
    "keep_last_groups": [Limit(lambda n: SlidingWindowStrategy(keep_last_groups=n), 1)],
    "keep_last_tool_call_groups": [
        Limit(lambda n: SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=n), 0),
        Limit(lambda n: ToolResultCompactionStrategy(keep_last_tool_call_groups=n), 0),
        Limit(lambda n: window(keep_last_tool_call_groups=n), 0),
    ],
    "max_chars_per_result": [Limit(lambda n: ToolResultCompactionStrategy(max_chars_per_result=n), 1)],
    "target_count": [Limit(lambda n: SummarizationStrategy(client=EchoChatClient(), target_count=n), 1)],
    "threshold": [Limit(lambda n: SummarizationStrategy(client=EchoChatClient(), threshold=n), 0, none=True)],
    "token_budget": [Limit(lambda n: budget(token_budget=n), 1)],
    "reserved_tokens": [Limit(lambda n: budget(reserved_tokens=n), 0), Limit(lambda n: window(reserved_tokens=n), 0)],
    "max_context_window_tokens": [
        Limit(lambda n: window(max_context_window_tokens=n), 11),
        Limit(lambda n: create_harness_agent(EchoChatClient(), max_context_window_tokens=n, max_output_tokens=0), 1),
    ],
    "max_output_tokens": [
        Limit(lambda n: window(max_output_tokens=n), 0),
        Limit(lambda n: create_harness_agent(EchoChatClient(), max_context_window_tokens=9, max_output_tokens=n), 0),
    ],
    "recent_turns": [Limit(lambda n: memory(recent_turns=n), 0)],
    "index_line_limit": [Limit(lambda n: memory(index_line_limit=n), 1)],
    "index_line_length": [Limit(lambda n: memory(index_line_length=n), 1)],
    "selection_limit": [Limit(lambda n: memory(selection_limit=n), 0)],
    "max_extractions": [Limit(lambda n: memory(max_extractions=n), 0)],
    "extract_every": [Limit(lambda n: memory(extract_every=n), 1)],
    "consolidation_min_sessions": [Limit(lambda n: memory(consolidation_min_sessions=n), 1)],
}

#: Times in seconds; `least` is 0 where 0 means not to wait, else 1.
TIMES: dict[str, list[Limit]] = {
    "timeout": [
        Limit(lambda s: ExecutorPolicy(timeout=s), 1, none=True),
        Limit(lambda s: FunctionExecutor(len, "a", input=str, timeout=s), 1, none=True),
        Limit(lambda s: RunOptions(timeout=s), 1, none=True),
        Limit(lambda s: StateGraph().add_node("a", print, timeout=s), 1, none=True),
        Limit(lambda s: agentbench.subprocess_script_runner(timeout=s), 1),
        Limit(lambda s: run_sync(asyncio.sleep(0), timeout=s), 1, none=True),
    ],
    "node_timeout": [
        Limit(lambda s: state_graph().compile(node_timeout=s), 1, none=True),
        Limit(lambda s: state_graph().compile().invoke("hi", {"thread_id": "t", "node_timeout": s}), 1, none=True),
    ],
    "max_interval": [Limit(lambda s: RetryPolicy(max_interval=s), 0)],
    "shutdown_timeout": [Limit(lambda s: state_graph().compile(shutdown_timeout=s), 0)],
    "max_duration_seconds": [Limit(lambda s: call_tools(max_duration_seconds=s), 1, none=True)],
    "ttl": [Limit(lambda s: CachingSkillsSource(FileSkillsSource("skills"), ttl=s), 1, none=True)],
    "request_timeout": [Limit(lambda s: MCPStdioTool(name="m", command="x", request_timeout=s), 1, none=True)],
    "max_host_payload_size_bytes": [
        Limit(lambda n: MCPStdioTool(name="m", command="x", max_host_payload_size_bytes=n), 1, none=True)
    ],
    "delay": [
        Limit(lambda s: ScriptedChatClient(["a"], delay=s), 0),
        Limit(lambda s: CassetteChatClient("tape.jsonl", mode="auto", delay=s), 0),
        Limit(lambda s: agentbench.testing.OfflineChatClient(delay=s), 0),
    ],
}


def cases(table: dict[str, list[Limit]]) -> list[Any]:
    numbered = [(name, place, limit) for name, limits in table.items() for place, limit in enumerate(limits)]
    return [pytest.param(name, limit, id=f"{name}-{place}") for name, place, limit in numbered]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refuses(name: str, limit: Limit, value: Any, error: type[Exception]) -> None:
    with pytest.raises((TypeError, ValueError), match=name) as refused:
        limit.give(value)
    assert isinstance(refused.value, error), f"{name}={value!r}: {refused.value!r}"


@pytest.mark.parametrize(("name", "limit"), cases(COUNTS))
def test_a_count_is_a_whole_number_from_its_least_on(name, limit):
    limit.give(limit.least)
    limit.give(limit.least + 1)
    for value in {-1, limit.least - 1}:
        refuses(name, limit, value, ValueError)
    for value in (True, 1.5, "5"):
        refuses(name, limit, value, TypeError)
    if limit.none:
        limit.give(None)
    else:
        refuses(name, limit, None, TypeError)


@pytest.mark.parametrize(("name", "limit"), cases(TIMES))
def test_a_time_is_a_number_of_seconds_above_zero_or_zero_where_it_is_no_wait(name, limit):
    for value in (0.5, 1, math.inf):
        limit.give(value)
    for value in (-1, -0.5, NAN):
        refuses(name, limit, value, ValueError)
    for wrong in (True, "5"):
        refuses(name, limit, wrong, TypeError)
    if limit.least:
        refuses(name, limit, 0, ValueError)
    else:
        limit.give(0)
    if limit.none:
        limit.give(None)
    else:
        refuses(name, limit, None, TypeError)


# ---- is every limit in the table? ----------------------------------------------------------------

LOOKS_LIKE_A_LIMIT = re.compile("max_|_?limit$|timeout$|retries$|retry_|keep_last|^keep$|_count$|^(ttl|delay|total)$")

#: Counts that are facts, rules of retries, and what the client of a model or a server judges.
NO_LIMITS = {
    "index_line_limit", "line_limit", "iteration_count", "round_count", "stall_count", "reset_count", "call_count",
    "max_retries", "max_num_results", "max_output_length", "timeout_ms", "autonomous_mode_turn_limit",
    "retry_after", "retry_on", "retry_policy",
}  # fmt: skip


def public_parameters() -> Iterator[tuple[str, str]]:
    for package in (agentbench, agentbench.orchestrations, agentbench.stategraph, agentbench.notebook):
        for name in package.__all__:
            value = getattr(package, name)
            if not callable(value) or (inspect.isclass(value) and issubclass(value, (BaseException, Limit))):
                continue
            members = vars(value).values() if inspect.isclass(value) else ()
            for function in [value, *[each for each in members if inspect.isfunction(each)]]:
                if function is not value and function.__name__.startswith("_"):
                    continue
                try:
                    parameters = inspect.signature(function).parameters
                except (TypeError, ValueError):
                    continue
                yield from ((f"{name}.{function.__name__}", each) for each in parameters)


def test_the_table_has_every_limit():
    pytest.importorskip("anywidget", reason="the limits of the notebook layer are read from its signatures")
    known = COUNTS.keys() | TIMES.keys() | NO_LIMITS
    found = [(where, name) for where, name in public_parameters() if LOOKS_LIKE_A_LIMIT.search(name)]
    assert len(found) > 80
    assert [each for each in found if each[1] not in known] == []


# ---- what 0 and 1 mean ---------------------------------------------------------------------------


async def test_no_superstep_means_the_start_executor_alone():
    result = await WorkflowBuilder(start_executor=node, max_iterations=0).build().run("x")
    assert result.outputs == ["x"]


def test_the_supersteps_that_are_left_count_from_the_call_that_goes_on():
    from agentbench.stategraph import Command, Runtime, interrupt

    left: list[int] = []

    def ask(state: Any, runtime: Runtime) -> None:
        left.append(runtime.remaining_steps)
        interrupt("?")

    def after(state: Any, runtime: Runtime) -> None:
        left.append(runtime.remaining_steps)

    graph = StateGraph().add_node("ask", ask).add_node("after", after).add_edge("ask", "after").set_entry_point("ask")
    app, config = graph.compile(), {"thread_id": "t", "recursion_limit": 2}
    app.invoke("hi", config)
    app.invoke(Command(resume="yes"), config)
    assert left == [1, 1, 0]


def test_a_limit_may_be_a_number_of_numpy():
    numpy = pytest.importorskip("numpy")
    WorkflowBuilder(max_iterations=numpy.int64(3))
    assert RunOptions(timeout=numpy.float64(3), max_messages=numpy.int32(3)).max_messages == 3
