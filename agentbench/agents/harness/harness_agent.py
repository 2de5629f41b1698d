"""An agent for long work: a list of tasks, modes, memory, skills, and a context that never overflows."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentbench._limits import require_limit
from agentbench.agents.agent.agent import Agent
from agentbench.agents.compaction.budgets import ContextWindowCompactionStrategy
from agentbench.agents.compaction.protocols import CompactionStrategy, TokenizerProtocol
from agentbench.agents.compaction.strategies import ToolResultCompactionStrategy
from agentbench.agents.harness.memory import MemoryContextProvider
from agentbench.agents.harness.memory_store import MemoryStore
from agentbench.agents.harness.modes import AgentModeProvider
from agentbench.agents.harness.todo import TodoProvider
from agentbench.agents.history.compaction_provider import CompactionProvider
from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider
from agentbench.agents.middleware.bases import MiddlewareTypes
from agentbench.agents.model.protocol import SupportsChatGetResponse, SupportsWebSearchTool
from agentbench.agents.sessions.context_provider import ContextProvider
from agentbench.agents.skills.file_skills import FileSkillsSource
from agentbench.agents.skills.provider import SkillsProvider
from agentbench.agents.skills.sources import AggregatingSkillsSource, DeduplicatingSkillsSource
from agentbench.agents.tools.collection import ToolTypes

logger = logging.getLogger("agentbench")

DEFAULT_HARNESS_INSTRUCTIONS: Final = (
    "You work on tasks that take many steps. Begin by finding out what is asked, and go one step at a time. Say in a "
    "sentence what you are about to do before you call tools, and what you have learned after it. When a step fails, "
    "read the error, change your approach, and do not try the same thing again. Ask when a decision is not yours to "
    "make. When you are done, say briefly what you did, what you found, and what is left."
)


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
    memory_store: MemoryStore | None = None,
    skills_provider: SkillsProvider | None = None,
    skills_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    disable_web_search: bool = False,
    otel_provider_name: str | None = None,
    context_providers: Sequence[ContextProvider] | None = None,
    middleware: Sequence[MiddlewareTypes] | None = None,
    default_options: Mapping[str, Any] | None = None,
) -> Agent:
    """Return an agent for long work: it plans, remembers, shortens its context, and stores each call of the model.

    Args:
        client: The chat client.
        id: Its id.
        name: Its name.
        description: What it is for.
        harness_instructions: How it works, instead of `DEFAULT_HARNESS_INSTRUCTIONS`; `""` for none.
        agent_instructions: What it does.
        tools: Its tools.
        max_context_window_tokens: Tokens that the model can read.
        max_output_tokens: Tokens that an answer may have; they are reserved.
        history_provider: Where conversations are stored; by default in their sessions.
        disable_compaction: Leave the context whole.
        before_compaction_strategy: Shortens what the model gets; by default when the window fills.
        after_compaction_strategy: Marks what is stored; by default all but the last two results of tools.
        tokenizer: Counts tokens.
        disable_todo: Leave the list of tasks out.
        todo_provider: The list of tasks, instead of the default one.
        disable_mode: Leave the modes out.
        mode_provider: The modes, instead of the default ones.
        disable_memory: Leave the memory out.
        memory_store: Where the memory is; without a store there is none.
        skills_provider: Its skills.
        skills_paths: Folders of skills, besides those of the provider.
        disable_web_search: Leave the client's search of the web out.
        otel_provider_name: Name of the provider in spans.
        context_providers: More providers, behind all others.
        middleware: Around runs, calls of the model and of tools.
        default_options: Options of every run.

    Raises:
        ValueError: The numbers of tokens leave no room for a context.

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
        providers.append(MemoryContextProvider(store=memory_store))
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
    """Return one provider of all skills, each name once."""
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
            "%s has no search of the web, so the agent has none. Pass disable_web_search=True if that is meant.",
            type(client).__name__,
        )
        return tools
    return [client.get_web_search_tool(), *([tools] if tools is not None else [])]
