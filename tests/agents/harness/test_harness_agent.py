"""An agent for long work, made in one call."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench import (
    DEFAULT_HARNESS_INSTRUCTIONS,
    Agent,
    AgentModeProvider,
    CompactionProvider,
    InlineSkill,
    InMemoryHistoryProvider,
    MemoryContextProvider,
    MemoryFileStore,
    ScriptedChatClient,
    SkillsProvider,
    SlidingWindowStrategy,
    TodoProvider,
    create_harness_agent,
    tool,
)
from agentbench.testing import Call
from tests.parts.errors import raises

SIZES: dict[str, Any] = {"max_context_window_tokens": 10_000, "max_output_tokens": 1_000, "disable_web_search": True}


class Searching(ScriptedChatClient):
    @staticmethod
    def get_web_search_tool(**kwargs: Any) -> Any:
        return {"type": "web_search"}


def classes(agent: Agent) -> list[type]:
    return [type(each) for each in agent.context_providers]


def skills_folder(tmp_path, *names: str) -> list[str]:
    pytest.importorskip("yaml")
    paths = []
    for name in names:
        folder = tmp_path / name / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\nDo {name}.\n")
        paths.append(str(folder.parent))
    return paths


def test_what_it_is_made_of(tmp_path):
    agent = create_harness_agent(
        ScriptedChatClient(["x"]),
        **SIZES,
        name="worker",
        agent_instructions="You pack boxes.",
        memory_store=MemoryFileStore(tmp_path, owner_state_key="user"),
        context_providers=[InMemoryHistoryProvider("log", load_messages=False)],
        default_options={"temperature": 0.5},
    )
    assert type(agent) is Agent
    assert classes(agent) == [
        InMemoryHistoryProvider, CompactionProvider, TodoProvider, AgentModeProvider, MemoryContextProvider,
        InMemoryHistoryProvider,
    ]  # fmt: skip
    assert agent.instructions == f"{DEFAULT_HARNESS_INSTRUCTIONS}\n\nYou pack boxes."
    assert (agent.default_options["max_tokens"], agent.default_options["temperature"]) == (1_000, 0.5)
    assert agent.require_per_service_call_history_persistence


def test_all_of_it_can_be_left_out_or_replaced(tmp_path):
    strategy, todo = SlidingWindowStrategy(keep_last_groups=3), TodoProvider("mine")
    agent = create_harness_agent(
        ScriptedChatClient(["x"]),
        **{**SIZES, "default_options": {"max_tokens": 7}},
        harness_instructions="",
        disable_mode=True,
        disable_memory=True,
        memory_store=MemoryFileStore(tmp_path, owner_state_key="user"),
        before_compaction_strategy=strategy,
        todo_provider=todo,
    )
    assert classes(agent) == [InMemoryHistoryProvider, CompactionProvider, TodoProvider]
    assert agent.context_providers[1].before_strategy is strategy
    assert agent.context_providers[2] is todo
    assert agent.instructions in (None, "")
    assert agent.default_options["max_tokens"] == 7
    bare = create_harness_agent(
        ScriptedChatClient(["x"]), **SIZES, disable_compaction=True, disable_todo=True, disable_mode=True
    )
    assert classes(bare) == [InMemoryHistoryProvider]


async def test_skills_of_any_number_of_folders_and_of_a_provider_are_one_list(tmp_path):
    own = InlineSkill(name="own", description="Its own.", instructions="i")
    one, two = skills_folder(tmp_path, "one", "two")
    client = ScriptedChatClient(["x"], on_exhausted="repeat_last")
    for given, names in (
        ({"skills_paths": [one, two]}, ["one", "two"]),
        ({"skills_paths": one}, ["one"]),
        ({"skills_paths": [two], "skills_provider": SkillsProvider([own])}, ["own", "two"]),
        ({"skills_provider": SkillsProvider([own])}, ["own"]),
    ):
        options: dict[str, Any] = given
        agent = create_harness_agent(client, **SIZES, **options)
        assert classes(agent).count(SkillsProvider) == 1
        await agent.run("?", session=agent.create_session())
        instructions = str(client.calls[-1].options["instructions"])
        assert [name for name in ("own", "one", "two") if f"<name>{name}</name>" in instructions] == [
            name for name in ("own", "one", "two") if name in names
        ]


async def test_it_works_through_a_task_and_stores_every_call():
    @tool
    def pack(box: int) -> str:
        """Pack a box."""
        return f"box {box} packed"

    script = [Call("todos_add", {"todos": [{"title": "Pack"}]}), Call("pack", {"box": 1}), "All packed."]
    client = ScriptedChatClient([*script, "Yes."])
    agent = create_harness_agent(client, **SIZES, tools=pack)
    session = agent.create_session()
    response = await agent.run("Pack the box.", session=session)
    assert response.text == "All packed."
    await agent.run("Done?", session=session)
    texts = [message.text for message in client.calls[-1].messages]
    assert "All packed." in texts
    assert any("Pack" in text and "[ ]" in text for text in texts)


def test_the_search_of_the_client_is_added_or_missed(caplog):
    caplog.set_level(logging.WARNING)
    given = {**SIZES, "disable_web_search": False}
    agent = create_harness_agent(Searching(["x"]), **given, tools=[tool(lambda: 1, name="one", description="d")])
    assert agent.default_options["tools"][0] == {"type": "web_search"}
    assert not caplog.text
    create_harness_agent(ScriptedChatClient(["x"]), **given)
    assert "does not support web search" in caplog.text


@pytest.mark.parametrize(("window", "output"), [(0, 0), (-1, 0), (100, -1), (100, 100), (100, 101)])
def test_numbers_that_leave_no_room(window, output):
    with raises(ValueError):
        create_harness_agent(ScriptedChatClient(["x"]), max_context_window_tokens=window, max_output_tokens=output)
