"""What a person can have before them, each as a cell that brings it about.

Every state of a stepper, every kind of form, graphs, tables, plots: pictures are taken of them, and their accessibility
is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPPER, FORM, INBOX, GRAPH, OUTPUT = (
    ".abs-frame",
    ".abf",
    ".abi",
    ".ab_panel",
    ".jp-Cell-outputArea",
)

SETUP = """
import asyncio
from agentbench import Approval, InMemoryCheckpointStorage, WorkflowEvent, run_sync
from agentbench.notebook import *
from IPython.display import display
from tests.browser.review_flow import build, held

def asking(data, type_, respond=lambda request_id, answer: None):
    return request_form(WorkflowEvent.request_info("r", "review", data, type_), respond=respond)

held_by_others = 0

async def until_held():
    global held_by_others
    while len(held) == held_by_others:
        await asyncio.sleep(0.01)
    held_by_others = len(held)

async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)
"""


@dataclass(frozen=True)
class Scene:
    """Something to look at.

    Attributes:
        name: Short, for the name of a file.
        cell: Brings it about. `NODES` stands for the size of the graph.
        shown: CSS selector of what it shows.
        sized: Whether there is one with a large graph too.
        press: Names of buttons to press, one after the other, when it is there.
    """

    name: str
    cell: str
    shown: str = STEPPER
    sized: bool = False
    press: tuple[str, ...] = ()


def _stepper(name: str, then: str, *press: str, how: str = "") -> Scene:
    made = f"panel = stepper(build(NODES{how}), 'cats')\ndisplay(panel)\n"
    return Scene(f"stepper-{name}", made + then, sized=True, press=press)


REDO_CELL = """
from typing import Never
from agentbench import Agent, RunOptions, ScriptedChatClient, WorkflowBuilder, WorkflowContext, executor
client = ScriptedChatClient([f"Answer {n}" for n in range(9)])
writer = Agent(client, name="writer")
@executor
async def plan(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message("Write about " + text)
@executor
async def finish(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text + ".")
@executor
async def write(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message((await writer.run(text)).text)
workflow = WorkflowBuilder(plan).add_chain([plan, write, finish]).build()
panel = stepper(workflow, "cats", options=RunOptions(record=True))
panel.run()
"""


AGENT_AT_WORK = """
from agentbench import Agent, AgentExecutor, AgentLoopMiddleware, Call, MessageInjectionMiddleware
from agentbench import ScriptedChatClient, WorkflowBuilder, tool
go_on = asyncio.Event()
@tool
async def look() -> str:
    await go_on.wait()
    return "nothing"
loop = AgentLoopMiddleware(max_iterations=2, message="Shorter, please.")
client = ScriptedChatClient([Call("look"), "A long poem about cats and their ways. " * 9, "Cats."])
writer = Agent(client, name="writer", tools=[look], middleware=[loop, MessageInjectionMiddleware()])
panel = stepper(WorkflowBuilder(start_executor=AgentExecutor(writer), name="poem").build(), "cats")
"""


def _redo(name: str, function: str, old: str, new: str, *press: str) -> Scene:
    """A stepper whose code changed after the run."""
    start = REDO_CELL.index("@executor\n" + function)
    changed = "\n".join(REDO_CELL[start:].splitlines()[:3]).replace(old, new)
    return Scene(f"stepper-{name}", f"{REDO_CELL}{changed}\ndisplay(panel)", press=press)


def _graph(name: str, then: str, settings: str = "", *, press: tuple[str, ...] = ()) -> Scene:
    """A state graph in a stepper."""
    cell = f"""
import operator
from typing import Annotated
from agentbench.stategraph import START, AgentState, StateGraph, interrupt

class Report(AgentState):
    findings: Annotated[list[str], operator.add] = []
    verdict: str | None = None

def judge(state: Report):
    return {{"verdict": "serious" if interrupt(state.findings, message="Serious?", response_schema=bool) else "no"}}

graph = StateGraph(Report, name="triage").add_node("logs", lambda state: {{"findings": ["12 errors"]}})
graph.add_node("metrics", lambda state: {{"findings": ["slow disk"]}}).add_node("judge", judge)
graph.add_edge(START, "logs").add_edge(START, "metrics").add_edge(["logs", "metrics"], "judge")
panel = graph.compile({settings}).stepper({{"messages": "The service is slow."}}, {{"thread_id": "inc-7"}})
display(panel)
{then}"""
    return Scene(f"graph-{name}", cell, press=press)


# What opens above a stepper.
OVERLAYS = (
    _stepper("run-menu", "panel.step()", "Ways to run"),
    _stepper("run-n", "panel.step()", "Ways to run", "Run for n supersteps …"),
    _stepper("more-menu", "panel.step()", "More"),
    _stepper("breakpoints", "panel.break_at('review')\npanel.step()", "More", "Breakpoints …"),
    _stepper("keys", "panel.step()", "More", "Keys"),
)

STEPPER_SCENES = (
    _stepper("ready", ""),
    _stepper("paused", "panel.step(2)"),
    _stepper(
        "stepping",
        "panel.step()\nat_work = asyncio.ensure_future(panel.astep())\nawait until_held()",
        how=", holds=True",
    ),
    _stepper(
        "running",
        "at_work = asyncio.ensure_future(panel.arun())\nawait until_held()",
        how=", holds=True",
    ),
    Scene(
        "stepper-agent-at-work",
        AGENT_AT_WORK
        + "display(panel)\nat_work = asyncio.ensure_future(panel.arun())\nawait until(lambda: client.calls)",
    ),
    Scene(
        "stepper-tool-progress",
        AGENT_AT_WORK.replace("async def look() -> str:", "async def look(emit: StreamEmitter | None = None) -> str:")
        .replace(
            "    await go_on.wait()",
            "    emit.progress('Read 3,000 of 12,000 rows of poems.csv')\n    await go_on.wait()",
        )
        .replace("go_on =", "from agentbench.stategraph import StreamEmitter\ngo_on =")
        + "display(panel)\nat_work = asyncio.ensure_future(panel.arun())\n"
        "await until(lambda: panel._session.model.activity.progress)",
    ),
    Scene(
        "stepper-agent-rounds",
        AGENT_AT_WORK.replace("await go_on.wait()", "pass").replace(
            'AgentLoopMiddleware(max_iterations=2, message="Shorter, please.")',
            "AgentLoopMiddleware.with_judge(ScriptedChatClient(["
            '\'{"is_met": false, "reason": "It is longer than one word."}\', '
            '\'{"is_met": true, "reason": "It is a single word about cats."}\']))',
        )
        + "display(panel)\npanel.run()\npanel._screen.page._select('writer')",
    ),
    _stepper("at-breakpoint", "panel.break_at('review')\npanel.run()"),
    _stepper("waiting", "panel.run()"),
    _stepper("failed", "panel.run()", how=", fails=True"),
    _stepper("done", "panel.run()\npanel.respond(panel.pending[0].request_id, True)\npanel.run()"),
    _stepper("rejected", "panel.run()\npanel.respond(panel.pending[0].request_id, False)\npanel.run()"),
    _stepper("cancelled", "panel.step()\npanel.stop()"),
    _stepper("viewing", "panel.run()\npanel.back(2)"),
    _stepper("input", "panel.step(2)\npanel.goto('input')\npanel.edit('input', 'dogs')"),
    _stepper("edited", "panel.step(2)\npanel.edit('topic', 'dogs')"),
    _stepper("edited-earlier", "panel.step(2)\npanel.back()\npanel.edit('topic', 'dogs')"),
    *OVERLAYS,
    _stepper("editing", "panel.step(2)", "Edit topic"),
    _stepper("log", "panel.run()", "Expand"),
    _redo("changed", "async def finish", '"."', '"!"'),
    _redo("redone", "async def finish", '"."', '"!"', "Redo from superstep 2"),
    _redo("redo-asks", "async def plan", '"Write about "', '"Write <b>not</b> about "', "Redo from superstep 0"),
    Scene(
        "stepper-output",
        "import pandas as pd\nfrom agentbench import WorkflowBuilder, WorkflowContext, executor\n"
        "@executor\nasync def report(topic: str, ctx: WorkflowContext[str, object]) -> None:\n"
        "    await ctx.yield_output(pd.DataFrame({'topic': [topic, 'dogs'], 'papers': [3, 5]}))\n"
        "panel = stepper(WorkflowBuilder(start_executor=report, name='report').build(), 'cats')\n"
        "display(panel)\npanel.run()",
        press=("See output",),
    ),
    Scene(
        "stepper-asks-table",
        "import pandas as pd\n"
        "from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler\n"
        "class Report(Executor):\n"
        "    @handler\n"
        "    async def go(self, topic: str, ctx: WorkflowContext) -> None:\n"
        "        table = pd.DataFrame({name: range(40) for name in ('topic', 'papers', 'authors', 'cited')})\n"
        "        await ctx.request_info({'prompt': 'Publish this table?', 'table': table}, Approval)\n"
        "    @response_handler\n"
        "    async def decide(self, asked: dict, answer: Approval, ctx: WorkflowContext) -> None: ...\n"
        "panel = stepper(WorkflowBuilder(start_executor=Report('report'), name='report').build(), 'cats')\n"
        "display(panel)\npanel.run()",
    ),
    _graph("asks", "panel.run()"),
    _graph("breakpoint", "panel.run()", "interrupt_before=['judge']"),
    _graph("done", "panel.run()\npanel.respond(panel.pending[0], True)\npanel.run()"),
    Scene(
        "stepper-closed",
        "import ipywidgets\npanel = stepper(build(), 'cats')\nclose = ipywidgets.Button(description='Close it')\n"
        "close.on_click(lambda _: panel.close())\ndisplay(panel, close)\npanel.step()",
        OUTPUT,
        press=("Close it",),
    ),
    Scene("stepper-minimal", "panel = stepper(build(), 'cats', layout='minimal')\ndisplay(panel)\npanel.step()"),
    Scene("stepper-stacked", "panel = stepper(build(), 'cats', layout='stacked')\ndisplay(panel)\npanel.step()"),
    Scene("stepper-graph", "panel = stepper(build(), 'cats', layout='graph')\ndisplay(panel)\npanel.step()"),
    Scene(
        "stepper-plain",
        "configure(live_graph=False)\npanel = stepper(build(), 'cats')\npanel.step(2)\ndisplay(panel)\n"
        "configure(live_graph=True)",
        OUTPUT,
    ),
)

WITHDRAWABLE = """
draft = {'prompt': 'Publish this draft?', 'text': 'Once upon a time'}
request = WorkflowEvent.request_info('r', 'review', draft, Approval)
f = request_form(request, respond=lambda request_id, answer: None, withdraw=lambda request_id: None)
"""

MODELS = """
import datetime as dt, decimal, enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, Union
from pydantic import BaseModel, Field, SecretStr

class Colour(enum.Enum):
    RED = "r"
    GREEN = "g"
    BLUE = "b"

class Address(BaseModel):
    street: str
    city: str = "Vienna"

class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=1, le=9, description="How many are left")

class Dog(BaseModel):
    kind: Literal["dog"]
    breed: str

class Everything(BaseModel):
    '''Twelve fields of all kinds.'''
    name: str = Field(min_length=2, description="As in the passport")
    notes: str = Field("", max_length=500)
    age: int = Field(ge=0, le=150)
    price: decimal.Decimal = decimal.Decimal("9.99")
    member: bool
    colour: Colour = Colour.RED
    size: Literal["S", "M", "L", "XL", "XXL"] = "M"
    born: dt.date
    code: Union[int, str]
    address: Address
    nickname: Optional[str] = None
    tags: list[str] = ["new"]
"""


def _form(name: str, cell: str, *press: str) -> Scene:
    return Scene(f"form-{name}", cell, FORM, press=press)


AGENT_CALL = """
from agentbench import Content
call = Content.from_function_call("c", "delete_file", arguments={"path": "reports/2012.csv"})
request = Content.from_function_approval_request("r", call, additional_properties={"standing": True})
"""

FORM_SCENES = (
    _form("approval", "display(asking({'prompt': 'Publish this draft?', 'text': 'Once upon a time'}, Approval))"),
    _form(
        "approval-edit",
        "data = {'prompt': 'Send the mail?', 'arguments': {'to': 'all', 'text': 'Hello'}, 'editable': True}\n"
        "display(asking(data, Approval))",
        "Edit arguments",
    ),
    _form(
        "approval-reason",
        "display(asking({'prompt': 'Publish?', 'reason_required': True}, Approval))",
        "Reject",
    ),
    _form("always", AGENT_CALL + "display(asking(request, Content))"),
    _form("always-edit", AGENT_CALL + "display(asking(request, Content))", "Edit arguments"),
    _form(
        "server-question",
        """
from agentbench import Content
fields = {"day": {"type": "string", "title": "Day"}, "seats": {"type": "integer", "default": 2}}
asked = {"server": "restaurant", "message": "For which day is the table?",
         "requestedSchema": {"type": "object", "properties": fields, "required": ["day"]}}
call = Content.from_function_call("c", "answer to restaurant")
request = Content.from_function_approval_request("r", call, additional_properties={"elicitation": asked})
display(asking(request, Content))
""",
    ),
    _form("choice", "display(asking({'question': 'Which one?', 'choices': ['left', 'right', 'straight on']}, str))"),
    _form(
        "choice-many",
        "display(asking({'question': 'Which one?', 'choices': list('abcdefg'), 'allow_other': True}, str))",
    ),
    _form("text", "display(asking('What is the title?', str))"),
    _form("number-invalid", "f = asking('How many?', int)\ndisplay(f)\nf.set_raw('value', '1,5')", "Send"),
    _form("bool", "display(form(bool, title='Sure?'))"),
    _form("everything", MODELS + "display(form(Everything, title='A person'))"),
    _form("everything-invalid", MODELS + "display(form(Everything, title='A person'))", "Submit"),
    _form("union", MODELS + "display(form(Annotated[Union[Cat, Dog], Field(discriminator='kind')], title='A pet'))"),
    _form("rows", MODELS + "display(form(list[Address], value=[{'street': 'Ring 1'}], title='Addresses'))"),
    _form("dict", "display(form(dict[str, int], value={'a': 1, 'b': 2}, title='Scores'))"),
    _form("dates", MODELS + "display(form(dt.datetime, title='When?'))"),
    _form("secret", MODELS + "f = form(SecretStr, title='Key')\ndisplay(f)\nf.set_raw('value', 'abc')"),
    _form("file", "display(form(bytes, title='A file'))"),
    _form("json", "display(form(dict, value={'a': [1, 2]}, title='Anything'))"),
    _form(
        "schema",
        "schema = {'type': 'object', 'title': 'Ticket', 'required': ['title'], 'properties': {'title': {'type': "
        "'string'}, 'level': {'enum': ['low', 'high']}, 'mail': {'type': 'string', 'format': 'email'}}}\n"
        "display(form(schema, title='A ticket'))",
    ),
    _form("withdraw", WITHDRAWABLE + "display(f)"),
    _form("withdrawn", WITHDRAWABLE + "display(f)", "Withdraw the question"),
    _form("answered", "f = asking('How many?', int)\ndisplay(f)\nf.set_raw('value', '12')\nf.submit()"),
    _form(
        "refused",
        "def refuse(request_id, answer):\n    raise ValueError('not while the moon is full')\n"
        "f = asking('Title?', str, refuse)\ndisplay(f)\nf.set_raw('value', 'Ulysses')\nf.submit()",
    ),
    Scene(
        "inbox",
        "runs = [build().start(topic) for topic in ('cats', 'dogs', 'owls')]\n"
        "for run in runs:\n    await run.result()\n"
        "display(inbox(*runs))",
        INBOX,
    ),
)

RUN = """
storage = InMemoryCheckpointStorage()
run = build().start('cats', checkpoint_storage=storage)
await run.result()
await run.send_response(run.pending_requests[0].request_id, True)
await run.result()
other = build().start('dogs', checkpoint_storage=storage)
await other.result()
await other.send_response(other.pending_requests[0].request_id, False)
await other.result()
forked = await run.fork(run.checkpoints[1], state_updates={'topic': 'owls'})
await forked.result()
"""

USED = """
from agentbench import WorkflowEvent
used = []
for step in range(24):
    counts = {'input_tokens': 900 + 40 * step, 'output_tokens': 310 - 9 * step, 'cached_tokens': 20 * step}
    told = {'model': 'small', 'usage': counts}
    used += [
        WorkflowEvent.superstep_started(step),
        WorkflowEvent('model_usage', told, executor_id=('plan', 'review')[step % 2]),
    ]
"""


def _output(name: str, last: str) -> Scene:
    return Scene(name, RUN + last, OUTPUT)


FRAME_SCENES = (
    _output("frame-checkpoints", "checkpoints_frame(storage)"),
    _output("frame-messages", "messages_frame(storage)"),
    _output("frame-state", "state_frame(storage)"),
    _output("frame-events", "events_frame(run)"),
    _output("frame-timeline", "timeline_frame(run)"),
    _output("frame-requests", "requests_frame(run)"),
    _output("frame-runs", "runs_frame(storage)"),
    _output("frame-lineage", "lineage_frame(storage)"),
    _output("storage", "storage"),
    _output("run", "run"),
    _output("plot-timeline", "timeline(run)"),
    _output("plot-timeline-steps", "timeline(run, by='step')"),
    _output("plot-lineage", "lineage(storage)"),
    _output("plot-usage", USED + "usage(used, prices={'small': (1, 4)})"),
    _output("plot-usage-by-executor", USED + "usage(used, by='executor')"),
    _output("plot-diff", "diff(run.checkpoints[0], run.checkpoints[-1], source=storage)"),
    _output("plot-compare", "compare(run, other)"),
)

REVISIONS = """
import json, re, tempfile
from pathlib import Path
from agentbench import Executor, RunOptions, WorkflowBuilder, WorkflowContext, executor, handler, response_handler

@executor
async def draft(topic: str, ctx: WorkflowContext[str]) -> None:
    ctx.set_state("limit", "20")
    await ctx.send_message(f"A <b>report</b> on {topic}")

class Review(Executor):
    @handler
    async def review(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, Approval)

    @response_handler
    async def answered(self, text: str, answer: Approval, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)

def reviewing(name):
    return WorkflowBuilder(name="reports").add_chain([draft, Review(name)]).build()

storage = InMemoryCheckpointStorage()
run = reviewing("review").start("rain", checkpoint_storage=storage)
await run.result()
first = run.checkpoints[0]
"""


def _revision(name: str, last: str) -> Scene:
    return Scene(name, REVISIONS + last, OUTPUT)


REVISION_SCENES = (
    _output(
        "what-if",
        "variants = {'owls': {'state': {'topic': 'owls'}}, 'no': {'answers': {'review': False}},\n"
        "    'both': {'state': {'topic': 'owls'}, 'answers': {'review': False}}}\n"
        "tried = await run.what_if(at=2, variants=variants, repeat=6, progress=False)\ntried",
    ),
    _output(
        "what-if-paths",
        "tried = await run.what_if(at=2, variants={'no': {'answers': {'review': False}}}, progress=False)\n"
        "tried.plot()",
    ),
    _revision(
        "migration",
        "await reviewing('editor').migrate(\n"
        "    first, renamed={'review': 'editor'}, functions={'limit': int}, checkpoint_storage=storage)",
    ),
    _revision(
        "merge",
        "page = run.save(Path(tempfile.mkdtemp(), 'run.html'), editable=True).read_text()\n"
        "sheet = json.loads(re.search('id=\"sheet\">(.*?)</script>', page)[1])\n"
        "edits = [{'path': path, 'before': before, 'value': value} for path, before, value in (\n"
        "    ('limit', '\"20\"', '30'),\n"
        "    ('messages[0]', '\"A <b>report</b> on rain\"', 'A report <i>on</i> sun'))]\n"
        "head = {'format': sheet['format'], 'run': sheet['checkpoints'][first.checkpoint_id]['run']}\n"
        "answer = head | {'checkpoint': first.checkpoint_id, 'edits': edits, 'answers': [], 'name': 'Maria'}\n"
        "file = Path(tempfile.mkdtemp(), 'answer.json')\nfile.write_text(json.dumps(answer))\nawait run.merge(file)",
    ),
)

AGENT = """
from agentbench import Call, ScriptedChatClient, tool

@tool(approval_mode="always_require")
def warn(text: str, streets: list[str]) -> str:
    return "sent"

calls = [Call("warn", {"text": "Storm tonight", "streets": ["Pine", "Pike"]}), Call("warn", {"text": "Flood"})]
agent = ScriptedChatClient([calls, "Done."]).as_agent(name="warden", tools=[warn])
session = agent.create_session()
response = await agent.run("A storm is coming.", session=session)
"""

AGENT_SCENES = (
    Scene("response-waiting", AGENT + "response", OUTPUT),
    Scene("transcript-approval", AGENT + "transcript(session)", OUTPUT),
)

GRAPH_SCENES = (
    Scene("graph-static", "display(build(NODES))", OUTPUT, sized=True),
    Scene(
        "graph-panel",
        "panel = make_graph_panel(build(NODES))\ndisplay(panel)\n"
        "panel.update({'plan': 'done', 'library': 'running', 'archive': 'failed', 'review': 'waiting'}, "
        "{'plan': '2 visits'})",
        GRAPH,
        sized=True,
    ),
    Scene(
        "progress",
        "at_work = progress(build(holds=True).start('cats'), total=4)\n"
        "async def drive():\n    await at_work\n"
        "driven = asyncio.ensure_future(drive())\nawait until(lambda: at_work.state.elapsed_s > 0.5)",
        OUTPUT,
    ),
)

TALK = """
from agentbench import Agent, AgentExecutorResponse, AgentResponse, Call, Message, ScriptedChatClient, tool
from agentbench.orchestrations import (
    AgentRequestInfoResponse,
    HandoffAgentUserRequest,
    HandoffBuilder,
    MagenticPlanReviewRequest,
    MagenticPlanReviewResponse,
)

@tool
def weather(day: str, station: str) -> str:
    "What a station measured."
    return "54.1 mm of rain, wind 6.0 m/s"

@tool(approval_mode="always_require")
def print_paper(headline: str, copies: int) -> str:
    "Print the paper."
    return f"{copies} copies of {headline!r}"

script = [
    Call("weather", {"day": "2012-11-19", "station": "Seattle"}),
    "54.1 mm fell on 19 November 2012.\\n\\nThat is a third of the month, and the wettest day of the year.",
    Call("print_paper", {"headline": "A wet Monday", "copies": 1000}),
    "The paper is out.",
]

def press(*more):
    return Agent(ScriptedChatClient([*script, *more]), name="press", tools=[weather, print_paper])

def desk(name, *texts):
    model = ScriptedChatClient([*texts])
    return Agent(model, name=name, description=name, require_per_service_call_history_persistence=True)

def office():
    desks = [desk("switchboard", Call("handoff_to_refunds")), desk("refunds", "Which order was it?", "Paid back.")]
    return HandoffBuilder(participants=desks, name="office").with_start_agent(desks[0]).build()

said = AgentResponse(messages=[Message("assistant", ["Fog stopped the ferries for nine hours on Monday."])])
plan = MagenticPlanReviewRequest(Message("assistant", ["1. reader: find the hours.\\n2. writer: write a sentence."]))
"""
CHAT, RUNS = ".widget-vbox:has(> * > .abc), .widget-vbox:has(> .abc)", ".widget-vbox:has(.abr)"
ASKED = "talk.send('How wet was 19 November 2012?')\n"


def _chat(name: str, target: str, then: str = "", *, press: tuple[str, ...] = ()) -> Scene:
    return Scene(f"chat-{name}", f"{TALK}\ntalk = chat({target})\n{then}display(talk)", CHAT, press=press)


def _runs(name: str, what: str, *press: str) -> Scene:
    made = "configure(deterministic=True)\nstorage = InMemoryCheckpointStorage()\nfor topic in ('cats', 'dogs'):\n"
    made += "    panel = stepper(build(NODES), topic, storage=storage)\n    panel.run()\n"
    made += "panel.respond(panel.pending[0], True)\npanel.run()\n"
    return Scene(f"runs-{name}", made + f"display(runs({what}))", RUNS, press=press)


TALK_SCENES = (
    _form("handoff", TALK + "display(asking(HandoffAgentUserRequest(said), list[Message]))"),
    _form("handoff-empty", TALK + "display(asking(HandoffAgentUserRequest(said), list[Message]))", "Send"),
    _form("review", TALK + "display(asking(AgentExecutorResponse('desk', said, []), AgentRequestInfoResponse))"),
    _form("plan", TALK + "display(asking(plan, MagenticPlanReviewResponse))"),
    _chat("empty", "press()"),
    _chat("agent", "press()", ASKED),
    _chat("asks", "press()", ASKED + "talk.send('Print it.')\n"),
    _chat("approved", "press()", ASKED + "talk.send('Print it.')\ntalk.respond(talk.pending[0], True)\n"),
    _chat("failed", "desk('refunds')", "try:\n    talk.send('Money!')\nexcept Exception:\n    pass\n"),
    _chat("fork", "press('Other answer')", ASKED, press=("Fork turn 1",)),
    _chat("handoff", "office()", "talk.send('I want my money back.')\n"),
    _runs("list", "storage"),
    _runs("read", "storage", "research-flow, run-2: Open for reading"),
    _runs("stepper", "storage, build(NODES)", "research-flow, run-1: Open in a stepper"),
)

BATCH, EXPLORE = ".widget-vbox:has(.abb)", ".widget-vbox:has(.abb-map)"
BATCHES = """
from agentbench.notebook.batches.cards import batch_bundle
from agentbench.notebook.batches.explore import explore
from agentbench.notebook.batches.inbox import batch_inbox
from agentbench.notebook.batches.panel import BatchPanel
from tests.parts.batches import FakeBatch, many_rows, questions_of, review_flow

running = {"state": "running", "running": 12, "total": 2000, "rate": 14.2, "remaining_s": 83.0, "elapsed_s": 62.0}
running |= {"budget": {"tokens": (619_500, 2_000_000), "cost": (1.0, 2.5)}, "skipped": 300}
asked = [*questions_of(312), *questions_of(1, "Is this review about the book or about the delivery?", first=400)]

def batch(count=1000, **facts):
    return FakeBatch(many_rows(count), workflow=review_flow(), questions=asked, **facts)
"""


def _batch(name: str, then: str, *press: str, shown: str = BATCH) -> Scene:
    return Scene(f"batch-{name}", BATCHES + then, shown, press=press)


BATCH_SCENES = (
    _batch("running", "display(BatchPanel(batch(**running)))"),
    _batch("done", "display(BatchPanel(batch(repeats={1: 'row-00000'})))"),
    _batch("filtered", "display(BatchPanel(batch(state='stopped', reason='Budget used.')))", "TimeoutError 50"),
    _batch("opened", "display(BatchPanel(batch(keeps=True)))", "TimeoutError 50", "row-00003"),
    _batch("not-kept", "display(BatchPanel(batch()))", "TimeoutError 50", "row-00003"),
    _batch("answers", "display(BatchPanel(batch()))", "Answer 20 waiting"),
    _batch("empty", "display(BatchPanel(FakeBatch(state='running')))"),
    _batch("card", "display(batch_bundle(batch(**running)), raw=True)", shown=OUTPUT),
    _batch("row", "display(many_rows(4)[3])", shown=OUTPUT),
    _batch("inbox", "display(batch_inbox(batch()))", shown=INBOX),
    _batch("explore", "display(explore(batch()))", shown=EXPLORE),
    _batch("explore-error", "display(explore(batch()))", "TimeoutError", "row-00003", shown=EXPLORE),
    _batch("explore-static", "display(explore(batch()).bundle(), raw=True)", shown=OUTPUT),
)

SCENES = (
    *BATCH_SCENES,
    *STEPPER_SCENES,
    *TALK_SCENES,
    *FORM_SCENES,
    *FRAME_SCENES,
    *REVISION_SCENES,
    *AGENT_SCENES,
    *GRAPH_SCENES,
)
