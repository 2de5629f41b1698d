"""Values cut into parts: what comes back, what is shared, and what it costs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import Message
from agentbench.checkpoints.parts import parts
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.checkpoints.parts.joining import join_part, join_parts, live_parts
from agentbench.checkpoints.parts.parts import LONG, part_id, verify_part
from agentbench.checkpoints.parts.runs import RUN
from agentbench.exceptions import WorkflowCheckpointException
from tests.parts.errors import raises


class Shelf:
    """Parts as a storage keeps them, and how often they were asked for."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.fetches = 0

    def keep(self, cut: tuple[str, Mapping[str, str]]) -> str:
        text, new = cut
        self.texts.update(new)
        return text

    def fetch(self, names: Collection[str]) -> dict[str, str]:
        self.fetches += 1
        return {name: self.texts[name] for name in names if name in self.texts}


def fetch_from(texts: dict[str, str]) -> Callable[[Collection[str]], dict[str, str]]:
    return lambda names: {name: texts[name] for name in names if name in texts}


def message(number: int, length: int = 200) -> str:
    return f"{number:08d}".ljust(length, "x")


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=80), st.just("y" * (LONG + 1))
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=40),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers(), st.just("__t__")), inner, max_size=40),
        st.tuples(inner, inner),
    ),
    max_leaves=60,
)


# ---------------------------------------------------------------------------------------------------------- round trips


@given(versions=st.lists(values, min_size=1, max_size=4))
def test_every_version_of_a_value_comes_back_and_is_cut_the_same_after_any_other_value(versions: list[Any]) -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    texts = [shelf.keep(memory.cut(version)) for version in versions]
    for version, text in zip(versions, texts, strict=True):
        back = join_parts(text, shelf.fetch)
        assert back == version
        assert repr(back) == repr(version)  # types too: True is not 1
        assert ChainMemory(0).cut(version)[0] == text


edits = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 40)),
        st.tuples(st.just("cut"), st.integers(0, 300)),
        st.tuples(st.just("set"), st.integers(0, 300)),
        st.tuples(st.just("insert"), st.integers(0, 300)),
    ),
    max_size=12,
)


@given(start=st.integers(0, 300), edits=edits, length=st.sampled_from([1, 100, 1500]))
def test_a_list_that_grows_shrinks_and_changes_in_place_comes_back_at_each_step(
    start: int, edits: list[tuple[str, int]], length: int
) -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    conversation = [message(each, length) for each in range(start)]
    fresh = 10_000
    for what, where in edits:
        if what == "append":
            conversation.extend(message(fresh + each, length) for each in range(where))
        elif what == "cut":
            del conversation[where:]
        elif what == "insert":
            conversation.insert(where, message(fresh, length))
        elif where < len(conversation):
            conversation[where] = message(fresh, length)
        fresh += 100
        text = shelf.keep(memory.cut({"conversation": conversation}))
        assert join_parts(text, shelf.fetch) == {"conversation": conversation}
        assert live_parts([text], shelf.fetch) <= shelf.texts.keys()


def test_changes_inside_mutable_entries_are_noticed() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    entries = [{"n": each, "text": message(each)} for each in range(50)]
    shelf.keep(memory.cut(entries))
    entries[3]["n"] = "changed"
    before = copy.deepcopy(entries)
    text = shelf.keep(memory.cut(entries))
    entries[3]["n"] = "changed again"
    assert join_parts(text, shelf.fetch) == before


@pytest.mark.parametrize("other", [True, 1.0, (1,), b"1", {1}])
def test_an_entry_that_changes_in_place_to_an_equal_value_of_another_type_is_noticed(other: Any) -> None:
    shelf, memory, entries = Shelf(), ChainMemory(0), [{"n": 1} for _ in range(50)]
    shelf.keep(memory.cut(entries))
    for value in (other, 1):
        entries[3]["n"] = value
        found = join_parts(shelf.keep(memory.cut(entries)), shelf.fetch)
        assert (found, type(found[3]["n"])) == (entries, type(value))


def test_two_lists_that_begin_with_the_same_entry_are_not_taken_for_each_other() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    entries = [message(each) for each in range(60)]
    for _ in range(3):
        value = {"long": entries, "short": entries[:20], "other": [entries[0], *entries[30:]]}
        assert join_parts(shelf.keep(memory.cut(value)), shelf.fetch) == value
        entries = [*entries, message(len(entries))]


def test_what_a_person_wrote_is_never_taken_for_a_part() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    name = part_id("some text")
    value = [name, {"__t__": "part", "v": name}, f'{{"__t__":"part","v":"{name}"}}', [name] * 40, {name: name}]
    text = shelf.keep(memory.cut(value))
    assert join_parts(text, shelf.fetch) == value


def test_a_settled_value_is_written_once_and_read_by_its_id() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    signature = {"start": "a", "edges": [["a", "b"]] * 30}
    reference, parts = memory.make_part(signature)
    again, none = memory.make_part(copy.deepcopy(signature))
    assert (again, none) == (reference, {})
    text = shelf.keep(memory.cut({"signature": reference}))
    shelf.texts.update(parts)
    assert join_part(reference, shelf.fetch) == signature
    assert join_parts(text, shelf.fetch) == {"signature": signature}
    assert live_parts([text], shelf.fetch) == {reference}


# ----------------------------------------------------------------------------------------------------------------- cost


def cost_of_growing(count: int) -> int:
    memory, conversation, written = ChainMemory(0), [], 0
    for each in range(count):
        conversation.append(message(each))
        cut = memory.cut({"conversation": conversation})
        written += len(cut[0]) + sum(map(len, cut[1].values()))
    return written


def test_n_saves_of_a_growing_list_cost_in_proportion_to_n() -> None:
    small, large = cost_of_growing(200), cost_of_growing(2000)
    assert large < 11 * small
    assert large < 2000 * 200 * 4  # four times the entries, for two thousand checkpoints of them


def test_a_change_in_the_middle_of_a_long_list_writes_its_run_and_the_lists_above_it() -> None:
    memory = ChainMemory(0)
    conversation = [message(each) for each in range(5000)]
    memory.cut(conversation)
    conversation[2500] = message(9999)
    cut = memory.cut(conversation)
    assert sum(map(len, cut[1].values())) < 2 * RUN * 220


def test_a_long_text_that_stays_is_written_once() -> None:
    memory, document = ChainMemory(0), "word " * 10_000
    first = memory.cut({"document": document, "n": 1})
    second = memory.cut({"document": document, "n": 2})
    third = memory.cut({"document": "".join(list(document)), "n": 3})
    assert len(first[1]) == 1
    assert (second[1], third[1]) == ({}, {})


def test_a_long_text_that_occurs_often_is_in_memory_once() -> None:
    shelf = Shelf()
    text = shelf.keep(ChainMemory(0).cut(dict.fromkeys("abc", "word " * 10000)))
    found = join_parts(text, shelf.fetch)
    assert found["a"] is found["b"] is found["c"]


def test_parts_are_fetched_level_by_level_and_not_one_by_one() -> None:
    shelf = Shelf()
    conversation = [message(each) for each in range(5000)]
    text = shelf.keep(ChainMemory(0).cut(conversation))
    assert join_parts(text, shelf.fetch) == conversation
    assert shelf.fetches <= 5


def test_parts_of_what_is_gone_are_not_live() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    old = shelf.keep(memory.cut([message(each) for each in range(100)]))
    new = shelf.keep(memory.cut([message(each) for each in range(1000, 1100)]))
    live = live_parts([new], shelf.fetch)
    assert live | live_parts([old], shelf.fetch) == shelf.texts.keys()
    kept = {name: shelf.texts[name] for name in live}
    assert len(join_parts(new, fetch_from(kept))) == 100
    with raises(WorkflowCheckpointException, "missing"):
        join_parts(old, fetch_from(kept))


# --------------------------------------------------------------------------------------------------------------- damage


def test_a_damaged_part_is_found_by_its_id() -> None:
    shelf = Shelf()
    text = shelf.keep(ChainMemory(0).cut([message(each) for each in range(40)]))
    for name, good in list(shelf.texts.items()):
        assert verify_part(name, good)
        shelf.texts[name] = good.replace("x", "y", 1) if "x" in good else good + " "
        with raises(WorkflowCheckpointException, "damaged"):
            join_parts(text, shelf.fetch)
        shelf.texts[name] = good
    assert not verify_part(part_id("a"), "\ud800")


def test_parts_that_unfold_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGEST", 1 << 22)
    texts, inner = {}, '"x"'
    for _ in range(60):  # twice as many at each level
        texts[part_id(inner)] = inner
        inner = f'[{{"__t__":"part","v":"{part_id(inner)}"}},{{"__t__":"part","v":"{part_id(inner)}"}}]'
    with raises(WorkflowCheckpointException, "unfold"):
        join_parts(inner, fetch_from(texts))


@pytest.mark.nightly
def test_a_list_that_is_sent_a_thousand_times_is_loaded() -> None:
    shelf, numbers = Shelf(), list(range(1000))
    text = shelf.keep(ChainMemory(0).cut([numbers] * 1000))
    found = join_parts(text, shelf.fetch)
    assert found == [numbers] * 1000
    assert len(set(map(id, found))) == 1000, "each is a list of its own"


def is_within(largest: int, work: Callable[..., object], *arguments: object) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "LARGEST", largest)
        try:
            work(*arguments)
        except WorkflowCheckpointException as error:
            return "unfold to more than" not in str(error)
        return True


changes = st.tuples(st.integers(0, 600), st.integers(0, 40), st.integers(0, 3), values)


@given(st.lists(changes, min_size=1, max_size=5), st.integers(100, 100_000))
def test_the_limit_of_a_save_is_that_of_a_load(edits: list[tuple[int, int, int, Any]], largest: int) -> None:
    shelf, unlimited, limited = Shelf(), ChainMemory(0), ChainMemory(0)
    talk: list[Any] = [message(each, 50 * (each % 4)) for each in range(300)]
    for place, more, times, value in edits:
        talk = [*talk[:place], *[message(each, 90) for each in range(more)]]
        often = [[value, [message(each, 1100), each, 2, 3]] for each in range(more)]
        state = {"talk": talk, "long": ["z" * 2000] * times, "often": [often, talk, [talk, 1, 2, 3]] * times}
        text = shelf.keep(unlimited.cut(state))
        is_saved = is_within(largest, limited.cut, state)
        assert is_saved == is_within(largest, join_parts, text, shelf.fetch)
        assert join_parts(text, shelf.fetch) == state
        limited = limited if is_saved else ChainMemory(0)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1, 2, 3, 4, 5]
    loop.append(loop)
    with pytest.raises((RecursionError, WorkflowCheckpointException)):
        ChainMemory(0).cut(loop)


# ---------------------------------------------------------------------------------------------- reading again and again


moves = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.integers(1, 40)),
        st.tuples(st.just("change"), st.integers(0, 400)),
        st.tuples(st.just("load"), st.integers(0, 20)),
        st.tuples(st.just("other process"), st.integers(1, 20)),
    ),
    max_size=14,
)


@given(start=st.integers(0, 300), moves=moves, twice=st.booleans())
def test_what_a_memory_reads_is_what_was_cut_and_what_it_read_is_cut_as_if_it_were_new(
    start: int, moves: list[tuple[str, int]], twice: bool
) -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    texts: list[str] = []
    contents: list[list[str]] = []

    def save(writer: ChainMemory, said: list[Any]) -> None:
        value = {"said": said, "again": said if twice else []}
        texts.append(shelf.keep(writer.cut(value)))
        contents.append([each.text for each in said])
        assert ChainMemory(0).cut(value)[0] == texts[-1]

    def load(number: int) -> list[Any]:
        found = memory.join(texts[number], shelf.fetch)
        assert [each.text for each in found["said"]] == contents[number]
        assert [each.text for each in found["again"]] == (contents[number] if twice else [])
        if twice and found["said"]:
            assert found["said"] is not found["again"]
        return list(found["said"])

    said = [said_at(each) for each in range(start)]
    save(memory, said)
    for fresh, (what, where) in enumerate(moves):
        numbers = range(1000 * (fresh + 1), 1000 * (fresh + 1) + where)
        if what == "save":
            said = [*said, *map(said_at, numbers)]
            save(memory, said)
        elif what == "change" and where < len(said):
            said = [*said]
            said[where] = said_at(1000 * (fresh + 1))
            save(memory, said)
        elif what == "load":
            said = load(where % len(texts))
            save(memory, said)
        elif what == "other process":
            other = ChainMemory(0)
            save(other, [*other.join(texts[-1], shelf.fetch)["said"], *map(said_at, numbers)])
            said = load(len(texts) - 1)


def test_a_second_load_reads_only_the_end_of_a_long_list_and_the_save_after_it_writes_only_what_is_new() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    first = shelf.keep(memory.cut([said_at(each) for each in range(5_000)]))
    said = memory.join(first, shelf.fetch)
    asked: list[str] = []

    def fetch(names: Collection[str]) -> dict[str, str]:
        asked.extend(names)
        return shelf.fetch(names)

    text, new = memory.cut([*said, said_at(5_000)])
    assert len(new) == 1
    shelf.texts.update(new)
    again = memory.join(text, fetch)

    assert len(again) == 5_001
    assert again[0] is said[0]
    assert len(asked) < 2 * RUN


def test_entries_that_can_change_are_made_anew_at_each_load() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    text = shelf.keep(memory.cut([{"n": each} for each in range(50)]))
    memory.join(text, shelf.fetch)[0]["n"] = "changed"

    assert memory.join(text, shelf.fetch)[0] == {"n": 0}


def test_a_loaded_list_that_its_reader_changes_is_as_it_was_at_the_next_load() -> None:
    shelf, memory = Shelf(), ChainMemory(0)
    text = shelf.keep(memory.cut([message(each) for each in range(50)]))
    memory.join(text, shelf.fetch).clear()

    assert len(memory.join(text, shelf.fetch)) == 50


def said_at(number: int) -> Message:
    return Message("user", [message(number, 40 + number % 90)], message_id=number)
