"""Forty hostile texts in everything that is shown of a run: seen, stored, opened again, they are text and do nothing.

Steppers, graph panels and plain forms have tests of their own beside their other tests.
"""

from __future__ import annotations

from typing import Any

import pytest

# One run in which the texts are ids of executors, keys and values of the state, messages, questions, lines and errors.
RUN = """
import contextlib
from IPython.display import display
from agentbench import Executor, InMemoryCheckpointStorage, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import *
from tests.notebook import attacks

# Half a character cannot be sent at all, and pandas shows values as they are.
ATTACKS = [text.encode("utf-8", "backslashreplace").decode() for text in attacks.ATTACKS]

class Evil(Executor):
    @handler
    async def go(self, texts: list[str], ctx: WorkflowContext[list[str], str]) -> None:
        if self.id.startswith('1 '):
            raise ValueError(' '.join(texts))
        for number, text in enumerate(texts):
            ctx.set_state(text or str(number), {text: [text]})
        await ctx.yield_output(' '.join(texts))
        await ctx.request_info({'question': texts[0], 'options': [text[:500] for text in texts]}, str)
        await ctx.send_message(texts)

    @response_handler
    async def on_answer(self, asked: dict, answer: str, ctx: WorkflowContext) -> None: ...

def evil_workflow(last):
    evil = [Evil(id=f'{number} {text}') for number, text in enumerate(ATTACKS[:last])]
    return WorkflowBuilder(start_executor=evil[0], name=ATTACKS[0]).add_fan_out_edges(evil[0], evil[1:]).build()

storage = InMemoryCheckpointStorage()
runs = [evil_workflow(last).start(ATTACKS[first:], checkpoint_storage=storage) for first, last in ((0, 40), (1, 39))]
for run in runs:
    with contextlib.suppress(ValueError):
        await run.result()
run, other = runs
"""

FRAMES = """
for frame in (checkpoints_frame, messages_frame, state_frame, lineage_frame, runs_frame, requests_frame):
    display(frame(storage))
display(state_frame(storage, wide=True).T.head(60), events_frame(run), timeline_frame(run))
"""

PLOTS = """
display(timeline(run), timeline(run, by='step'), lineage(storage), usage(run), compare(run, other))
display(diff(other.checkpoints[0], run.checkpoints[-1], source=storage), storage, run)
"""

FORMS = """
properties = {text[:2000]: {'enum': [text, 'b'], 'title': text, 'description': text} for text in ATTACKS}
display(form({'type': 'object', 'title': ATTACKS[0], 'properties': properties}, title=ATTACKS[3]))
display(form(dict[str, str], value={text[:2000]: text for text in ATTACKS}))
display(inbox(run, other))
for text in ATTACKS[:4]:
    await progress(WorkflowBuilder(start_executor=Evil(id=text), name=text).build().start([text]))
"""

# Every element that could react to a pointer or to the focus gets both, but for our own that nobody can press now.
POKE = """
() => document.querySelectorAll('.jp-OutputArea *').forEach(each => {
  if (each.matches('button[hidden], [hidden] button')) return;
  for (const type of ['mouseover', 'focus', 'click', 'toggle'])
    each.dispatchEvent(new Event(type, {bubbles: type === 'mouseover'}));
})
"""
ALIVE = (
    ".jp-OutputArea-output :is(script, iframe, object, embed, [onerror], [onload], [onclick], [href^='javascript' i])"
)


def look_at(page: Any) -> None:
    """What is in sight is poked; nothing of it runs, and (as in every test) nothing is asked beyond this machine."""
    notebook = page.panel.locator(".jp-WindowedPanel-outer").first
    notebook.evaluate("notebook => notebook.scrollTo(0, 0)")
    page.page.evaluate(POKE)
    assert page.page.evaluate("() => window.pwned") is None
    assert page.panel.locator(ALIVE).count() == 0


@pytest.mark.nightly
def test_tables_plots_forms_and_inboxes_show_hostile_texts_and_never_run_them(lab: Any, open_notebook: Any) -> None:
    lab.write("hostile", [RUN, FRAMES, PLOTS, FORMS])
    page = open_notebook("hostile", own=True, height=8000)
    page.run_all()
    page.panel.locator(".abi").wait_for()
    assert page.panel.get_by_text("<img src=x onerror=window.pwned=1>").count() > 5
    look_at(page)
    # What was stored, trusted as it is, and opened again.
    page.save()
    page.page.reload()
    page.panel.locator(".jp-OutputArea-output table").first.wait_for()
    look_at(page)
