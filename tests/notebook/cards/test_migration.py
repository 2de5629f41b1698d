"""The display of a migration: parts and differences, with everything escaped and secrets masked."""

from __future__ import annotations

from typing import Any

from agentbench import Executor, InMemoryCheckpointStorage, Workflow, WorkflowBuilder, WorkflowContext, handler
from agentbench.revisions import ExecutorContent, Migration
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle


class Say(Executor):
    @handler
    async def go(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("text", text)
        await ctx.send_message(text)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"count": 1}


def chain(*names: str) -> Workflow:
    return (
        WorkflowBuilder(start_executor=(first := Say(names[0])), name="w")
        .add_chain([first, *map(Say, names[1:])])
        .build()
    )


async def migration(text: str, name: str = "c") -> Migration:
    storage = InMemoryCheckpointStorage()
    run = chain("a", "b").start(text, checkpoint_storage=storage)
    await run.step()
    await run.cancel()
    assert run.last_checkpoint is not None

    def changed(old: ExecutorContent) -> ExecutorContent:
        old.state = {"count": 2, "api_key": "sk-verysecret", "text": text}
        return old

    functions = {"a": changed, "text": lambda old: [old]}
    new = chain("a", "b", name)
    return await new.migrate(run.last_checkpoint, functions=functions, checkpoint_storage=storage)


async def test_a_card_shows_the_parts_and_the_differences() -> None:
    bundle = (await migration("hello"))._repr_mimebundle_()
    for form in ("text/plain", "text/html"):
        assert "executors.a.count" in bundle[form]
        assert "verysecret" not in bundle[form]
    assert "  unchanged  a, b" in bundle["text/plain"].splitlines()
    assert "  new        c" in bundle["text/plain"].splitlines()


async def test_hostile_values_and_names_are_inert() -> None:
    for attack in ATTACKS:
        check_bundle((await migration(attack))._repr_mimebundle_())
    check_bundle((await migration("hello", ATTACKS[0]))._repr_mimebundle_())
