"""Which recorded call is served next."""

from __future__ import annotations

from typing import Any

from agentbench.agents.clients.cassette.recorded import RecordedCall
from agentbench.agents.clients.cassette.shelf import Shelf
from agentbench.agents.clients.cassette.tape import Tape


def shelf_of(*keys: str, repeat: bool = True) -> tuple[Shelf, Tape]:
    shelf, tape = Shelf(lambda request: str(request["key"]), repeat=repeat), Tape()
    add(tape, *keys)
    shelf.take_in(tape)
    return shelf, tape


def add(tape: Tape, *keys: str) -> None:
    for key in keys:
        tape.calls.append(RecordedCall(len(tape.calls) + 1, 0, {"key": key}))


def served(shelf: Shelf, *keys: str) -> list[Any]:
    return [None if call is None else call.number for call in map(shelf.serve, keys)]


def test_equal_requests_are_served_in_recorded_order_and_the_last_one_again() -> None:
    shelf, _ = shelf_of("a", "b", "a")
    assert served(shelf, "a", "a", "a", "a", "b") == [1, 3, 3, 3, 2]


def test_without_repetition_the_next_one_is_a_miss() -> None:
    shelf, _ = shelf_of("a", repeat=False)
    assert served(shelf, "a", "a") == [1, None]
    assert shelf.count("a") == 1


def test_the_order_of_other_requests_does_not_matter() -> None:
    shelf, _ = shelf_of("a", "b", "c")
    assert served(shelf, "c", "a", "b", "x") == [3, 1, 2, None]


def test_what_comes_later_is_served_too() -> None:
    shelf, tape = shelf_of("a")
    assert served(shelf, "a", "b") == [1, None]
    add(tape, "b", "a")
    shelf.take_in(tape)
    assert served(shelf, "a", "b") == [3, 2]


def test_what_was_just_recorded_counts_as_used() -> None:
    shelf, tape = shelf_of("a")
    add(tape, "b")
    shelf.take_in(tape)
    assert shelf.use_last().number == 2
    assert [call.number for call in shelf.used] == [2]
    assert [call.number for call in shelf.unused] == [1]


def test_another_tape_begins_anew() -> None:
    shelf, _ = shelf_of("a")
    shelf.serve("a")
    tape = Tape()
    add(tape, "a")
    shelf.take_in(tape)
    assert (len(shelf.unused), len(shelf.used)) == (1, 0)
    shelf.use_all()
    assert (len(shelf.unused), len(shelf.used)) == (0, 1)
