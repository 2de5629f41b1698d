import copy
import pickle
import sys
import threading

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentbench.workflows.executors.state import ABSENT, State


def committed_state(**values):
    state = State()
    state.import_state(values)
    return state


def test_a_write_or_a_deletion_is_pending_until_the_commit():
    state = State()
    seen = [state.has_pending]
    for act in (lambda: state.set("a", 1), state.commit, lambda: state.delete("a"), state.commit):
        act()
        seen.append(state.has_pending)
    assert seen == [False, True, False, True, False]


def test_the_exported_dictionary_is_not_the_state_itself_but_holds_its_values():
    items = [1]
    state = committed_state(items=items)
    exported = state.export_state()
    exported["other"] = 1
    assert not state.has("other")
    assert exported["items"] is items


def test_the_mark_for_absent_values_survives_copying_and_pickling():
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert repr(ABSENT) == "<absent>"


def test_no_write_of_a_worker_thread_is_lost_while_another_commits():
    state = State()
    written = 2_000
    interval = sys.getswitchinterval()

    def write(worker):
        for number in range(written):
            state.set(f"{worker}-{number}", number)

    workers = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            state.commit()
    finally:
        sys.setswitchinterval(interval)
        for worker in workers:
            worker.join()
    state.commit()
    assert len(state.export_state()) == 3 * written


class WritesWhileItIsCommitted(dict[str, object]):
    """Committed layer that plays a thread which writes the same key again in the middle of a commit."""

    def __init__(self, state):
        super().__init__()
        self.state = state

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if value == "first":
            self.state.set(key, "second")


def test_a_write_in_the_middle_of_a_commit_wins_over_the_one_being_committed():
    state = State()
    state.committed = WritesWhileItIsCommitted(state)
    state.set("a", "first")
    state.commit()
    assert state.get("a") == "second"
    assert not state.pending


class DeletesWhileItIsCommitted(dict[str, object]):
    """Committed layer that plays a thread which takes another new key back in the middle of a commit."""

    def __init__(self, state):
        super().__init__()
        self.state = state

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if key == "a":
            self.state.delete("b")


def test_a_key_taken_back_in_the_middle_of_a_commit_is_not_committed():
    state = State()
    state.committed = DeletesWhileItIsCommitted(state)
    state.set("a", 1)
    state.set("b", 2)
    state.commit()
    assert state.export_state() == {"a": 1}
    assert not state.pending


KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.one_of(st.none(), st.integers(0, 3))


class StateAgainstTwoDictionaries(RuleBasedStateMachine):
    """The model: what is committed, and what a reader sees; `written` says which keys differ by a pending write."""

    def __init__(self):
        super().__init__()
        self.state = State()
        self.committed = {}
        self.visible = {}
        self.written = set()

    @rule(key=KEYS, value=VALUES)
    def set(self, key, value):
        self.state.set(key, value)
        self.visible[key] = value
        self.written.add(key)

    @rule(key=KEYS)
    def delete(self, key):
        if key not in self.visible:
            with pytest.raises(KeyError):
                self.state.delete(key)
            return
        self.state.delete(key)
        del self.visible[key]
        if key in self.committed:
            self.written.add(key)
        else:
            self.written.discard(key)

    @rule()
    def commit(self):
        self.state.commit()
        self.committed = dict(self.visible)
        self.written.clear()

    @rule()
    def discard(self):
        self.state.discard()
        self.visible = dict(self.committed)
        self.written.clear()

    @rule(values=st.dictionaries(KEYS, VALUES))
    def import_state(self, values):
        self.state.import_state(values)
        self.committed.update(values)
        self.visible.update({key: value for key, value in values.items() if key not in self.written})

    @precondition(lambda self: self.visible)
    @rule()
    def clear(self):
        self.state.clear()
        self.committed, self.visible = {}, {}
        self.written.clear()

    @invariant()
    def readers_see_the_visible_values(self):
        for key in ("a", "b", "c", "d"):
            assert self.state.has(key) == (key in self.visible)
            assert self.state.get(key, "default") == self.visible.get(key, "default")

    @invariant()
    def only_committed_values_are_exported(self):
        assert self.state.export_state() == self.committed

    @invariant()
    def changes_lead_from_the_committed_to_the_visible_values(self):
        changes = self.state.pending_changes()
        assert set(changes) == self.written
        assert bool(self.state.pending) == bool(self.written)
        for key, (old, new) in changes.items():
            assert old == self.committed.get(key, ABSENT)
            assert new == self.visible.get(key, ABSENT)


TestStateAgainstTwoDictionaries = StateAgainstTwoDictionaries.TestCase
