"""What every place for records and parts must do. A test module gives it a fixture `open_backend`, and derives a class.

`open_backend()` returns a backend; called again, one more at the same place, as another process would have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError, StorageBackend
from agentbench.checkpoints.parts.parts import part_id
from agentbench.exceptions import CheckpointNotFoundError, WorkflowBusyError
from tests.parts.errors import raises

OpenBackend: TypeAlias = Callable[[], StorageBackend]

NOON = "2026-01-01T12:00:00.000000+00:00"
LATER = "2026-01-01T13:00:00.000000+00:00"
ODD_TEXTS = (
    "a",
    "A",
    "aa",
    "a%",
    "a_b",
    "ä",
    "a\0b",
    "a\0",
    "\0",
    "a\ud800",
    "\ud800",
    "\uffff",
    "\U0001f600",
    "'\"\\;--",
    "a\nb",
)


def record(
    checkpoint_id: str, seq: int = 1, *, chain: str = "flow", needs: tuple[str, ...] = (), **changes: Any
) -> Any:
    """A record whose content refers to the parts that these texts make."""
    values: dict[str, Any] = {"timestamp": NOON, "run_id": None, "head": f'{{"of":"{seq}"}}', **changes}
    content = "[" + ",".join(f'"{part_id(text)}"' for text in needs) + "]"
    return CheckpointRecord(checkpoint_id, chain, seq, content=content, **values)


def put(
    backend: StorageBackend, each: CheckpointRecord, *texts: str, expected_seq: int | None = None
) -> CheckpointRecord:
    parts = {part_id(text): text for text in texts}
    backend.put(each, parts, generation=backend.generation(each.workflow_name), expected_seq=expected_seq)
    return each


def bare(each: CheckpointRecord) -> CheckpointRecord:
    return replace(each, content="")


def kept(backend: StorageBackend, *texts: str, chain: str = "flow") -> list[str]:
    """Which of the texts are there as parts."""
    found = backend.parts(chain, [part_id(text) for text in texts])
    assert all(part_id(text) == name for name, text in found.items())
    return [text for text in texts if part_id(text) in found]


def refers_to(*texts: str) -> str:
    """The text of a part that refers to other parts."""
    return "[" + ",".join(f'"{part_id(text)}"' for text in texts) + "]"


def delete_chain(backend: StorageBackend, chain: str) -> int:
    return backend.delete(chain, backend.ids(chain), sweep=True)


class BackendContract:
    def id_of(self, backend: StorageBackend, text: str) -> str:
        """An id for a text; any text is one, unless a backend says otherwise."""
        return f"id {text}"

    @pytest.fixture
    def backend(self, open_backend: OpenBackend) -> StorageBackend:
        return open_backend()

    # ---------------------------------------------------------------------------------------------------- keeping

    def test_in_an_empty_place_nothing_is_found(self, backend: StorageBackend) -> None:
        assert backend.get("one") is None
        assert backend.latest("flow") is None
        assert backend.heads("flow") == []
        assert backend.ids("flow") == []
        assert backend.parts("flow", ["p" * 28]) == {}
        assert backend.parts("flow", []) == {}
        assert backend.chains() == []
        assert backend.delete("flow", ["one"], sweep=True) == 0
        assert delete_chain(backend, "flow") == 0
        assert backend.chains() == []

    def test_what_was_put_is_found_as_it_was(self, backend: StorageBackend) -> None:
        one = put(backend, record("one", 1, run_id="r1", needs=("x",)), "x")
        two = put(backend, record("two", 2, timestamp=LATER, head='{"ä":"\U0001f600"}'))
        assert backend.get("one") == one
        assert backend.get("two") == two
        assert backend.latest("flow") == two
        assert backend.heads("flow") == [bare(one), bare(two)]
        assert backend.ids("flow") == ["one", "two"]
        assert kept(backend, "x", "y") == ["x"]
        assert backend.chains() == ["flow"]

    def test_others_at_the_same_place_find_it_too(self, backend: StorageBackend, open_backend: OpenBackend) -> None:
        one = put(backend, record("one", needs=("x",)), "x")
        other = open_backend()
        assert other.get("one") == one
        assert kept(other, "x") == ["x"]
        two = put(other, record("two", 2))
        assert backend.heads("flow") == [bare(one), bare(two)]
        assert backend.latest("flow") == two

    def test_a_closed_place_opens_again(self, backend: StorageBackend) -> None:
        one = put(backend, record("one"))
        backend.close()
        backend.close()
        assert backend.get("one") == one
        put(backend, record("two", 2))
        assert backend.ids("flow") == ["one", "two"]

    def test_long_texts_are_stored(self, backend: StorageBackend) -> None:
        noise = Random(1)
        text = '"' + "".join(noise.choices("abcdefgh ä\U0001f600", k=300_000)) + '"'
        one = put(backend, record("one", head="[" + text + "]", needs=(text,)), text, '"' + "x" * 2_000_000 + '"')
        assert backend.get("one") == one
        assert kept(backend, text, '"' + "x" * 2_000_000 + '"', '"x"') == [text, '"' + "x" * 2_000_000 + '"']

    def test_chains_do_not_see_each_others_records_and_parts(self, backend: StorageBackend) -> None:
        one = put(backend, record("one", needs=("x",)), "x")
        other = put(backend, record("other", chain="other", needs=("y",)), "y")
        assert backend.heads("flow") == [bare(one)]
        assert backend.heads("other") == [bare(other)]
        assert kept(backend, "x", "y") == ["x"]
        assert kept(backend, "x", "y", chain="other") == ["y"]
        assert backend.chains() == ["flow", "other"]
        assert backend.chains("o") == ["other"]
        assert backend.chains("x") == []

    # ------------------------------------------------------------------------------------------------------ order

    def test_the_order_is_by_number_then_time_then_saving(self, backend: StorageBackend) -> None:
        places = [(2, NOON), (1, LATER), (0, LATER), (1, NOON), (10, NOON), (2, NOON), (1, LATER), (0, "")]
        for number, (seq, timestamp) in enumerate(places):
            put(backend, record(f"id{number}", seq, timestamp=timestamp))
        expected = [f"id{number}" for number in sorted(range(len(places)), key=places.__getitem__)]
        assert backend.ids("flow") == expected == [each.checkpoint_id for each in backend.heads("flow")]
        latest = backend.latest("flow")
        assert latest is not None
        assert latest.checkpoint_id == expected[-1]

    def test_a_record_of_the_same_id_takes_the_place_of_the_other(self, backend: StorageBackend) -> None:
        put(backend, record("one", 1))
        put(backend, record("two", 1))
        again = put(backend, record("one", 1, run_id="r2", needs=("x",)), "x")
        assert backend.ids("flow") == ["two", "one"]
        assert backend.latest("flow") == again == backend.get("one")
        moved = put(backend, record("one", 3, chain="other"))
        assert backend.ids("flow") == ["two"]
        assert backend.ids("other") == ["one"]
        assert backend.get("one") == moved
        put(backend, record("two", chain="other"))
        assert backend.chains() == ["other"]

    # ------------------------------------------------------------------------------------------------------ lists

    @pytest.fixture
    def listed(self, backend: StorageBackend) -> StorageBackend:
        for seq in range(1, 8):
            put(backend, record(f"id{seq}", seq, run_id=("r1", "r2", None)[seq % 3]))
        put(backend, record("elsewhere", 3, chain="other", run_id="r1"))
        return backend

    def test_lists_are_cut(self, listed: StorageBackend) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"limit": 2}, "67"),
            ({"limit": 0}, ""),
            ({"limit": 100}, "1234567"),
            ({"before": "id4"}, "123"),
            ({"before": "id1"}, ""),
            ({"before": "id7", "limit": 3}, "456"),
            ({"run_id": "r1"}, "36"),
            ({"run_id": "nobody"}, ""),
            ({"run_id": "r2", "limit": 2}, "47"),
            ({"run_id": "r2", "before": "id7"}, "14"),
            ({"run_id": "r2", "before": "id6", "limit": 1}, "4"),
        ]
        for limits, expected in cases:
            found = [each.checkpoint_id for each in listed.heads("flow", **limits)]
            assert found == [f"id{seq}" for seq in expected], limits

    def test_outlines_are_the_heads_perhaps_without_their_text(self, listed: StorageBackend) -> None:
        def outlines(chain: str) -> list[CheckpointRecord]:
            heads = {each.checkpoint_id: each.head for each in listed.heads(chain)}
            found = listed.outlines(chain)
            assert all(each.head in ("", heads[each.checkpoint_id]) for each in found)
            return [replace(each, head=heads[each.checkpoint_id]) for each in found]

        assert outlines("flow") == listed.heads("flow")
        assert outlines("other") == listed.heads("other")
        assert outlines("nobody's") == []

    def test_what_is_not_in_the_chain_cannot_be_listed_up_to(self, listed: StorageBackend) -> None:
        for before in ("unknown", "elsewhere"):
            with pytest.raises(CheckpointNotFoundError, match=before):
                listed.heads("flow", before=before)

    def test_equal_places_are_paged_through_without_loss(self, backend: StorageBackend) -> None:
        for number in range(5):
            put(backend, record(f"id{number}", 1))
        assert [each.checkpoint_id for each in backend.heads("flow", before="id3")] == ["id0", "id1", "id2"]

    # ------------------------------------------------------------------------------------------------ two writers

    def test_a_save_that_relies_on_removed_parts_is_stale(self, backend: StorageBackend) -> None:
        put(backend, record("one", needs=("x",)), "x")
        generation = backend.generation("flow")
        assert backend.generation("flow") == generation
        backend.delete("flow", ["one"], sweep=True)
        with pytest.raises(StalePartsError):
            backend.put(record("two", 2, needs=("x",)), {part_id("y"): "y"}, generation=generation)
        assert backend.ids("flow") == []
        assert kept(backend, "x", "y") == []
        assert backend.generation("flow") != generation

    def test_a_chain_that_comes_again_is_not_taken_for_the_one_before(self, backend: StorageBackend) -> None:
        put(backend, record("one"))
        generations = {backend.generation("flow")}
        for _ in range(3):
            delete_chain(backend, "flow")
            put(backend, record("one"))
            generations.add(backend.generation("flow"))
        assert len(generations) == 4

    def test_only_the_expected_end_of_a_chain_is_moved_on(self, backend: StorageBackend) -> None:
        put(backend, record("one", 1), expected_seq=0)
        put(backend, record("two", 5), expected_seq=1)
        for expected in (0, 1, 4, 6):
            with raises(WorkflowBusyError, "5", expected):
                put(backend, record("three", 6, needs=("x",)), "x", expected_seq=expected)
        assert backend.ids("flow") == ["one", "two"]
        assert backend.get("three") is None
        assert kept(backend, "x") == []
        put(backend, record("three", 6), expected_seq=5)
        assert backend.ids("flow") == ["one", "two", "three"]

    # --------------------------------------------------------------------------------------------------- removing

    def test_records_are_removed_from_their_chain_only(self, backend: StorageBackend) -> None:
        for seq in range(1, 6):
            put(backend, record(f"id{seq}", seq))
        put(backend, record("elsewhere", chain="other"))
        assert backend.delete("flow", ["id2", "unknown", "elsewhere", "id4"], sweep=False) == 2
        assert backend.ids("flow") == ["id1", "id3", "id5"]
        assert backend.get("id2") is None
        assert backend.ids("other") == ["elsewhere"]
        assert backend.delete("flow", [], sweep=False) == 0

    def test_parts_stay_until_they_are_swept(self, backend: StorageBackend) -> None:
        inner, outer, unused = '"inner"', refers_to('"inner"', '"leaf"'), refers_to('"gone"')
        put(backend, record("one", 1, needs=("x", unused)), "x", '"gone"', unused)
        put(backend, record("two", 2, needs=("y", outer)), "y", inner, '"leaf"', outer)
        put(backend, record("other", chain="other", needs=("x",)), "x")
        everything = ("x", "y", inner, '"leaf"', outer, '"gone"', unused)
        generation = backend.generation("flow")
        assert backend.delete("flow", ["one"], sweep=False) == 1
        assert kept(backend, *everything) == list(everything)
        assert backend.generation("flow") == generation
        assert backend.delete("flow", [], sweep=True) == 0
        assert kept(backend, *everything) == ["y", inner, '"leaf"', outer]
        assert backend.generation("flow") != generation
        assert kept(backend, "x", chain="other") == ["x"]

    def test_a_chain_is_removed_with_its_parts(self, backend: StorageBackend) -> None:
        put(backend, record("one", 1, needs=("x",)), "x")
        put(backend, record("two", 2))
        other = put(backend, record("other", chain="other", needs=("x",)), "x")
        assert delete_chain(backend, "flow") == 2
        assert backend.chains() == ["other"]
        assert backend.ids("flow") == []
        assert kept(backend, "x") == []
        assert backend.get("one") is None
        assert backend.latest("other") == other
        assert kept(backend, "x", chain="other") == ["x"]

    def test_many_at_once_are_no_trouble(self, backend: StorageBackend) -> None:
        texts = [f'"{number}"' for number in range(1500)]
        put(backend, record("many", 2000, needs=tuple(texts[:700])), *texts)
        for seq in range(1, 300):
            put(backend, record(f"id{seq}", seq))
        assert len(kept(backend, *texts)) == 1500
        assert backend.delete("flow", [f"id{seq}" for seq in range(1, 300)], sweep=True) == 299
        assert backend.ids("flow") == ["many"]
        assert kept(backend, *texts) == texts[:700]

    # ------------------------------------------------------------------------------------------------------ names

    def test_any_text_is_a_name_and_an_id(self, backend: StorageBackend) -> None:
        for text in ODD_TEXTS:
            put(backend, record(self.id_of(backend, text), chain=text, run_id=text))
        assert backend.chains() == sorted(ODD_TEXTS)
        for text in ODD_TEXTS:
            found = record(self.id_of(backend, text), chain=text, run_id=text)
            assert backend.get(self.id_of(backend, text)) == found
            assert backend.latest(text) == found
            assert backend.ids(text) == [self.id_of(backend, text)]
            assert backend.heads(text, run_id=text) == [bare(found)]
            assert backend.heads(text, run_id=f"{text}\0") == []
            assert backend.chains(text) == sorted(other for other in ODD_TEXTS if other.startswith(text))
        assert sum(backend.delete(text, [self.id_of(backend, text)], sweep=True) for text in ODD_TEXTS) == len(
            ODD_TEXTS
        )

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        names=st.lists(st.text(st.characters(codec=None), min_size=1, max_size=4), max_size=5),
        prefix=st.text(max_size=2),
    )
    def test_names_are_equal_sorted_and_searched_by_code_point(
        self, backend: StorageBackend, names: list[str], prefix: str
    ) -> None:
        for name in names:
            put(backend, record(self.id_of(backend, name), chain=name))
        expected = sorted(set(names))
        assert backend.chains() == expected
        assert backend.chains(prefix) == [name for name in expected if name.startswith(prefix)]
        assert [delete_chain(backend, name) for name in expected] == [1] * len(expected)
