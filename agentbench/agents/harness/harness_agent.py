"""An agent for long tasks, with a task list, modes, memory, skills and context compaction."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentbench._limits import require_limit
from agentbench.agents.agent.agent import Agent
from agentbench.agents.compaction.grouping import CompactionStrategy, TokenizerProtocol
from agentbench.agents.compaction.strategies import ContextWindowCompactionStrategy, ToolResultCompactionStrategy
from agentbench.agents.harness.files.memory import FileMemoryProvider
from agentbench.agents.harness.files.store import AgentFileStore
from agentbench.agents.harness.memory import MemoryContextProvider
from agentbench.agents.harness.memory_store import MemoryStore
from agentbench.agents.harness.modes import AgentModeProvider
from agentbench.agents.harness.todo import TodoProvider
from agentbench.agents.history.compaction_provider import CompactionProvider
from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider
from agentbench.agents.middleware.contexts import MiddlewareTypes
from agentbench.agents.model.protocol import SupportsChatGetResponse, SupportsWebSearchTool
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.skills.file_skills import FileSkillsSource
from agentbench.agents.skills.provider import SkillsProvider
from agentbench.agents.skills.sources import AggregatingSkillsSource, DeduplicatingSkillsSource
from agentbench.agents.tools.collection import ToolTypes
from agentbench.observability.feature_stages import ExperimentalFeature, experimental

logger = logging.getLogger("agentbench")

DEFAULT_HARNESS_INSTRUCTIONS: Final = (
    "You work on tasks that take many steps. Begin by finding out what is asked, and go one step at a time. Say in a "
    "sentence what you are about to do before you call tools, and what you have learned after it. When a step fails, "
    "read the error, change your approach, and do not try the same thing again. Ask when a decision is not yours to "
    "make. When you are done, say briefly what you did, what you found, and what is left."
)


@experimental(feature_id=ExperimentalFeature.HARNESS)
def create_harness_agent(  # noqa: PLR0913 - the public signature
    client: SupportsChatGetResponse,
    *,
    id: str | None = None,  # noqa: A002 - the public name
    name: str | None = None,
    description: str | None = None,
    harness_instructions: str | None = None,
    agent_instructions: str | None = None,
    tools: ToolTypes | Callable[..., Any] | Sequence[ToolTypes | Callable[..., Any]] | None = None,
    max_context_window_tokens: int,
    max_output_tokens: int,
    history_provider: HistoryProvider | None = None,
    disable_compaction: bool = False,
    before_compaction_strategy: CompactionStrategy | None = None,
    after_compaction_strategy: CompactionStrategy | None = None,
    tokenizer: TokenizerProtocol | None = None,
    disable_todo: bool = False,
    todo_provider: TodoProvider | None = None,
    disable_mode: bool = False,
    mode_provider: AgentModeProvider | None = None,
    disable_memory: bool = False,
    memory_store: MemoryStore | AgentFileStore | None = None,
    skills_provider: SkillsProvider | None = None,
    skills_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    disable_web_search: bool = False,
    otel_provider_name: str | None = None,
    context_providers: Sequence[ContextProvider] | None = None,
    middleware: Sequence[MiddlewareTypes] | None = None,
    default_options: Mapping[str, Any] | None = None,
) -> Agent:
    """Create an agent for long tasks. It plans, remembers, compacts its context, and stores each model call.

    Args:
        client: The chat client.
        id: The id of the agent.
        name: The name of the agent.
        description: The purpose of the agent.
        harness_instructions: General working instructions, instead of `DEFAULT_HARNESS_INSTRUCTIONS`; `""` for none.
        agent_instructions: The instructions for this agent's task.
        tools: The tools of the agent.
        max_context_window_tokens: The size of the model's context window.
        max_output_tokens: The maximum tokens of an answer; they are reserved in the context window.
        history_provider: Stores conversations; by default in their sessions.
        disable_compaction: Whether to disable compaction of the context.
        before_compaction_strategy: Compacts the messages for the model; by default when the context window fills up.
        after_compaction_strategy: Marks stored messages as excluded; by default all but the last two tool results.
        tokenizer: Counts tokens.
        disable_todo: Whether to omit the task list.
        todo_provider: The task list, instead of the default one.
        disable_mode: Whether to omit the modes.
        mode_provider: The modes, instead of the default ones.
        disable_memory: Whether to omit the memory.
        memory_store: Stores the memory; without a store there is no memory. With an `AgentFileStore`, the memory is a
            `FileMemoryProvider`, in which each session has its own files.
        skills_provider: The skills of the agent.
        skills_paths: Folders of skills, in addition to those of `skills_provider`.
        disable_web_search: Whether to omit the client's web search.
        otel_provider_name: The name of the provider in spans.
        context_providers: More context providers, placed after all others.
        middleware: Middleware for runs, model calls and tool calls.
        default_options: The options of every run.

    Raises:
        ValueError: `max_context_window_tokens` is not greater than `max_output_tokens`.

    Example:
        agent = create_harness_agent(EchoChatClient(), max_context_window_tokens=128_000, max_output_tokens=8_000)
        await agent.run("Plan the move to the new office.", session=agent.create_session())
    """
    require_limit("max_output_tokens", max_output_tokens)
    require_limit("max_context_window_tokens", max_context_window_tokens, least=max_output_tokens + 1)
    history = history_provider or InMemoryHistoryProvider()
    providers: list[ContextProvider] = [history]
    if not disable_compaction:
        compaction = CompactionProvider(
            before_strategy=before_compaction_strategy
            or ContextWindowCompactionStrategy(
                max_context_window_tokens=max_context_window_tokens,
                max_output_tokens=max_output_tokens,
                tokenizer=tokenizer,
            ),
            after_strategy=after_compaction_strategy or ToolResultCompactionStrategy(keep_last_tool_call_groups=2),
            tokenizer=tokenizer,
            history_source_id=history.source_id,
        )
        providers.append(compaction)
    if not disable_todo:
        providers.append(todo_provider or TodoProvider())
    if not disable_mode:
        providers.append(mode_provider or AgentModeProvider())
    if memory_store is not None and not disable_memory:
        providers.append(
            FileMemoryProvider(memory_store)
            if isinstance(memory_store, AgentFileStore)
            else MemoryContextProvider(store=memory_store)
        )
    if (skills := _skills(skills_provider, skills_paths)) is not None:
        providers.append(skills)
    harness = DEFAULT_HARNESS_INSTRUCTIONS if harness_instructions is None else harness_instructions
    return Agent(
        client,
        "\n\n".join(filter(None, [harness, agent_instructions])) or None,
        id=id,
        name=name,
        description=description,
        tools=_with_web_search(client, tools, disable_web_search),
        default_options={"max_tokens": max_output_tokens, **(default_options or {})},
        context_providers=[*providers, *(context_providers or ())],
        middleware=list(middleware or ()),
        require_per_service_call_history_persistence=True,
        otel_provider_name=otel_provider_name,
    )


def _skills(provider: SkillsProvider | None, paths: Any) -> SkillsProvider | None:
    """Return one provider of all skills, without duplicate names."""
    if paths is None:
        return provider
    files = FileSkillsSource(paths)
    if provider is None:
        return SkillsProvider(DeduplicatingSkillsSource(files))
    return SkillsProvider(
        DeduplicatingSkillsSource(AggregatingSkillsSource([provider.source, files])),
        instruction_template=provider.instruction_template,
        require_script_approval=provider.require_script_approval,
        disable_caching=provider.disable_caching,
        source_id=provider.source_id,
    )


def _with_web_search(client: Any, tools: Any, disabled: bool) -> Any:
    if disabled:
        return tools
    if not isinstance(client, SupportsWebSearchTool):
        logger.warning(
            "%s does not support web search, so the agent has none. Pass disable_web_search=True if that is intended.",
            type(client).__name__,
        )
        return tools
    return [client.get_web_search_tool(), *([tools] if tools is not None else [])]
