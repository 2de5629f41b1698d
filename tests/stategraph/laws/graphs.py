"""Random state graphs whose nodes depend on nothing but their state: made by a seed, the same in every process."""

from __future__ import annotations

import asyncio
import operator
import time
import warnings
from collections.abc import Callable, Mapping
from random import Random
from typing import Annotated, Any

from agentbench.stategraph import END, START, AgentState, Command, Message, Send, StateGraph, interrupt, replace_value


class Trace(AgentState):
    notes: Annotated[list[str], operator.add] = []
    total: Annotated[int, operator.add] = 0
    last: Annotated[str, replace_value] = ""
    word: str = ""


class RandomGraph:
    """A graph of 3 to 8 nodes: edges forward and at most one back, joins, a deferred node, sends and commands.

    `note` is called when a node begins and when it ends; `pause` returns the seconds that a node takes.
    """

    def __init__(
        self, seed: int, note: Callable[[str], object] = lambda line: None, pause: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.rng = rng = Random(f"graph {seed}")
        self.note = note
        self.pause = pause
        self.names = [f"n{place}" for place in range(rng.randint(3, 8))]
        self.kinds = {
            name: rng.choice(["plain", "plain", "async", "generator", "send", "goto", "ask"]) for name in self.names
        }
        self.kinds[self.names[-1]] = "plain"

    def compile(self, storage: Any = None, **settings: Any) -> Any:
        rng, names = Random(self.rng.random()), self.names
        graph = StateGraph(Trace, name="random")
        deferred = names[-1] if rng.random() < 0.3 else None
        for name in names:
            graph.add_node(name, self.node(name), defer=name == deferred)
        graph.add_edge(START, names[0])
        if rng.random() < 0.5:
            graph.add_edge(START, names[1])
        for place, name in enumerate(names[:-1]):
            following = rng.sample(names[place + 1 :], min(rng.randint(1, 2), len(names) - place - 1))
            if self.kinds[name] == "goto":
                continue
            for target in following:
                graph.add_edge(name, target)
        if len(names) > 4 and rng.random() < 0.5:
            graph.add_edge(names[1:3], names[4])
        if rng.random() < 0.4:
            graph.add_conditional_edges(
                names[-1], lambda state: names[0] if len(state.notes) < 12 else END, [names[0], END]
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a graph at random has ways of different length to a node
            return graph.compile(storage, **settings)

    def node(self, name: str) -> Any:
        place, kind = self.names.index(name), self.kinds[name]
        later = self.names[place + 1 :]

        def update(state: Trace) -> dict[str, Any]:
            text = f"{name}{state.word}:{len(state.notes)}:{state.total}"
            message = Message.text_message(text, "assistant", f"{text} {len(state.context)}")
            return {"notes": [text], "total": place + 1, "last": text, "context": [message]}

        def plain(state: Trace) -> Any:
            self.note(f"begin {name}")
            time.sleep(self.pause())
            found = update(state)
            if kind == "ask":
                found["notes"].append(f"answer {interrupt(found['last'])}")
            if kind == "generator":
                found["notes"].append("generated")
            self.note(f"end {name}")
            if kind == "goto":
                return Command(update=found, goto=[later[0]] if len(state.notes) % 2 else later[-1])
            if kind == "send" and len(state.notes) < 8:
                sends = [Send(each, {"word": f"<{number}>"}) for number in range(2) for each in later[-1:]]
                return Command(update=found, goto=sends)
            return found

        async def waiting(state: Trace) -> Any:
            self.note(f"begin {name}")
            await asyncio.sleep(self.pause())
            self.note(f"end {name}")
            return update(state)

        return waiting if kind == "async" else plain


def answers(asked: list[Any]) -> Mapping[str, Any]:
    """Return the answers to questions, which depend on the questions alone."""
    return {"resume": {question.id: f"to {question.value}" for question in asked}}


def to_the_end(app: Any, config: Mapping[str, Any], data: Any = "go") -> Any:
    """Run a thread to its end, and answer what it asks."""
    result = app.invoke(data, config)
    newest = {key: value for key, value in config.items() if key != "checkpoint_id"}
    while result.interrupts:
        result = app.invoke(answers(result.interrupts), newest)
    return result


def course(app: Any, config: Mapping[str, Any]) -> list[Any]:
    """Return what a thread did, without what differs between two runs: times and ids."""
    return [
        (
            snapshot.step,
            snapshot.metadata["source"],
            snapshot.status,
            snapshot.next,
            [(task.id, task.name, [question.id for question in task.interrupts]) for task in snapshot.tasks],
            values_of(snapshot.values),
        )
        for snapshot in reversed(app.get_state_history(config))
    ]


def values_of(state: Any) -> Any:
    return state.notes, state.total, state.last, [message.text for message in state.context]
