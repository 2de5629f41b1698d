import collections
import copy
import copyreg
import datetime
import decimal
import enum
import fractions
import gc
import sys
import threading
import types
import uuid
import weakref
import zoneinfo
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench._copying import is_atomic, isolate, isolate_or_same, register_frozen
from tests.ids import steady


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


@dataclass
class Note:
    text: str
    tags: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class SlottedNote:
    text: str
    tags: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FrozenSlottedNote:
    text: str
    tags: Any = None


@dataclass(frozen=True)
class HashableNote:
    text: str
    tags: tuple[Any, ...] = ()


# ------------------------------------------------------------------------------------------------------- what is shared

ATOMS = [
    "text",
    7,
    1.5,
    True,
    None,
    b"bytes",
    2j,
    range(3),
    Colour.RED,
    Level.LOW | Level.HIGH,
    datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    datetime.date(2024, 1, 2),
    datetime.time(1, 2),
    datetime.timedelta(seconds=1),
    datetime.UTC,
    decimal.Decimal("1.5"),
    fractions.Fraction(1, 3),
    uuid.UUID(int=1),
    zoneinfo.ZoneInfo("UTC"),
    Note,
    enum.EnumMeta,
    len,
    lambda: None,
    sys,
    list[str],
    int | str,
    ...,
    NotImplemented,
    weakref.ref(Note),
]


def test_immutable_values_are_returned_as_they_are():
    for value in ATOMS:
        assert is_atomic(value)
        assert isolate(value) is value
        assert isolate([[value]])[0][0] is value
        assert isolate_or_same(value) is value


def test_a_subclass_of_an_immutable_type_is_copied_because_it_may_carry_attributes():
    class Tagged(str):
        tags: list[int]

    value = Tagged("a")
    value.tags = [1]
    result = isolate([value])[0]
    assert result == "a"
    assert type(result) is Tagged
    assert result.tags == [1]
    assert result.tags is not value.tags


# ------------------------------------------------------------------------------------------------------- what is copied


@pytest.mark.parametrize(
    "value",
    [
        bytearray(b"x"),
        collections.deque([[1]], maxlen=3),
        collections.defaultdict(list, a=[1]),
        collections.Counter("aab"),
        types.SimpleNamespace(a=[1]),
        {HashableNote("k", ("a",))},
    ],
    ids=steady,
)
def test_mutable_values_are_copied_with_an_equal_result_of_the_same_type(value):
    result = isolate(value)
    assert result == value
    assert type(result) is type(value)
    assert not mutable_ids(result) & mutable_ids(value)


def test_private_and_inherited_slots_are_copied():
    class Base:
        __slots__ = ("__secret", "shown")

        def __init__(self):
            self.__secret = [1]
            self.shown = [2]

        def secret(self):
            return self.__secret

    class Derived(Base):
        __slots__ = ("more",)

    value: Any = Derived()
    value.more = [3]
    result = isolate(value)
    assert (result.secret(), result.shown, result.more) == ([1], [2], [3])
    assert result.secret() is not value.secret()


def test_copying_an_object_runs_neither_its_constructor_nor_its_attribute_setter():
    class Guarded:
        def __init__(self, items):
            vars(self)["items"] = items

        def __setattr__(self, name, value):
            raise AttributeError(name)

    value: Any = Guarded([1])
    result = isolate(value)
    assert result.items == [1]
    assert result.items is not value.items


class WithDeepcopy:
    def __init__(self, items):
        self.items = items

    def __deepcopy__(self, memo):
        return WithDeepcopy(["deepcopy", *self.items])


class WithReduce:
    def __init__(self, items):
        self.items = items

    def __reduce__(self):
        return WithReduce, (["reduce", *self.items],)


class WithState:
    def __init__(self, items):
        self.items = items

    def __getstate__(self):
        return {"items": [*self.items, "getstate"]}

    def __setstate__(self, state):
        self.items = [*state["items"], "setstate"]


class WithNewArguments:
    items: list[str]

    def __new__(cls, items):
        self = super().__new__(cls)
        self.items = ["new", *items]
        return self

    def __getnewargs__(self):
        return (self.items[1:],)


class WithRegisteredReduce:
    def __init__(self, items):
        self.items = items


def reduce_registered(value):
    return WithRegisteredReduce, (["copyreg", *value.items],)


@pytest.fixture(autouse=True, scope="module")
def registered_reduce():
    copyreg.pickle(WithRegisteredReduce, reduce_registered)
    yield
    del copyreg.dispatch_table[WithRegisteredReduce]


@pytest.mark.parametrize("cls", [WithDeepcopy, WithReduce, WithRegisteredReduce, WithState, WithNewArguments])
def test_classes_that_say_how_they_are_copied_are_obeyed(cls):
    value = cls(["a"])
    assert isolate(value).items == copy.deepcopy(value).items
    assert isolate([[value]])[0][0].items == copy.deepcopy(value).items


# ------------------------------------------------------------------------------------------------- aliases and cycles


def test_a_cycle_that_starts_at_a_tuple_is_preserved():
    inner: list[Any] = []
    value = (inner,)
    inner.append(value)
    result = isolate(value)
    assert result[0][0] is result
    assert result is not value


def test_a_cycle_through_a_frozenset_is_preserved():
    node = types.SimpleNamespace()
    holder = HashableByIdentity(node)
    value = frozenset({holder})
    node.back = value
    result = isolate(value)
    (copied,) = result
    assert copied is not holder
    assert copied.node.back is result


def test_a_set_that_contains_its_owner_is_preserved():
    owner = HashableByIdentity(set())
    owner.node.add(owner)
    result = isolate(owner.node)
    (copied,) = result
    assert copied is not owner
    assert copied.node is result


class HashableByIdentity:
    def __init__(self, node):
        self.node = node


# --------------------------------------------------------------------------------------------------- frozen once saved


class Sealed:
    def __init__(self, parts):
        self.parts = parts


class HalfSealed(Sealed):
    pass


@pytest.fixture(scope="module")
def sealed():
    register_frozen(Sealed)
    return Sealed([1])


def test_a_subclass_of_a_registered_class_is_copied_until_it_is_registered(sealed):
    value = HalfSealed([1])
    assert not is_atomic(value)
    assert isolate(value).parts is not value.parts


# --------------------------------------------------------------------------------------------------------- what fails


def uncopyable():
    return threading.Lock()


class RefusesToBeCopied:
    def __deepcopy__(self, memo):
        raise RuntimeError("never")


@pytest.mark.parametrize("make", [uncopyable, RefusesToBeCopied, lambda: (number for number in range(3))])
def test_what_cannot_be_copied_raises_in_isolate_and_is_returned_live_by_isolate_or_same(make):
    for value in (make(), [make()], {"a": (make(),)}, Note("x", [make()])):
        with pytest.raises((TypeError, RuntimeError)):
            isolate(value)
        assert isolate_or_same(value) is value


def test_an_interrupt_is_not_taken_for_an_uncopyable_value():
    class Interrupts:
        def __deepcopy__(self, memo):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        isolate_or_same([Interrupts()])


def test_a_class_whose_instances_were_copied_can_still_be_collected():
    cls: Any = type("OfACell", (), {})
    isolate(cls())
    reference = weakref.ref(cls)
    del cls
    gc.collect()
    assert reference() is None


# ---------------------------------------------------------------------------------------------------------------- laws

hashable = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=3),
        st.binary(max_size=3),
        st.sampled_from([Colour.RED, decimal.Decimal("1.5"), uuid.UUID(int=1), datetime.date(2024, 1, 2), Note]),
    ),
    lambda children: st.one_of(
        st.tuples(children, children),
        st.frozensets(children, max_size=3),
        st.builds(HashableNote, st.text(max_size=2), st.tuples(children)),
    ),
    max_leaves=4,
)

values = st.recursive(
    hashable,
    lambda children: st.one_of(
        st.lists(children, max_size=4),
        st.dictionaries(st.text(max_size=2), children, max_size=4),
        st.dictionaries(hashable, children, max_size=3),
        st.sets(hashable, max_size=3),
        st.tuples(children, children),
        st.builds(Note, st.text(max_size=2), st.lists(children, max_size=2)),
        st.builds(SlottedNote, st.text(max_size=2), st.lists(children, max_size=2)),
        st.builds(FrozenSlottedNote, st.text(max_size=2), children),
        st.builds(collections.deque, st.lists(children, max_size=2)),
        st.builds(collections.OrderedDict, st.dictionaries(st.text(max_size=2), children, max_size=2)),
    ),
    max_leaves=12,
)


@st.composite
def tangled_values(draw):
    """Values whose containers also stand inside each other, so that aliases and cycles occur."""
    parts = draw(st.lists(values, min_size=1, max_size=4))
    containers = [part for part in parts if isinstance(part, (list, dict, Note, SlottedNote))]
    for holder in containers:
        if not draw(st.booleans()):
            continue
        guest = draw(st.sampled_from(containers))
        if isinstance(holder, list):
            holder.append(guest)
        elif isinstance(holder, dict):
            holder["guest"] = guest
        else:
            holder.tags.append(guest)
    return draw(st.sampled_from([parts, tuple(parts), {"parts": parts, "first": parts[0]}]))


@given(values)
def test_a_copy_equals_the_deep_copy(value):
    assert isolate(value) == copy.deepcopy(value) == value


@given(tangled_values())
def test_a_copy_has_the_aliases_and_cycles_of_the_deep_copy(value):
    assert shape(isolate(value)) == shape(copy.deepcopy(value)) == shape(value)


@given(tangled_values())
def test_a_copy_shares_nothing_mutable_with_its_original(value):
    assert not mutable_ids(isolate(value)) & mutable_ids(value)


def parts_of(value):
    """Direct parts, in an order that copies agree on; `None` for what has none."""
    if isinstance(value, (list, tuple, collections.deque)):
        return list(value)
    if isinstance(value, dict):
        return [part for entry in value.items() for part in entry]
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (Note, SlottedNote, HashableNote, FrozenSlottedNote)):
        return [value.text, value.tags]
    if isinstance(value, (types.SimpleNamespace, HashableByIdentity)):
        return list(vars(value).values())
    return None


def is_mutable(value):
    return isinstance(value, (list, dict, set, collections.deque, bytearray, Note, SlottedNote, types.SimpleNamespace))


def walk(value, visit):
    """Call `visit` for everything reachable, containers once each, in a fixed order."""
    seen = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        parts = parts_of(item)
        known = is_mutable(item) and id(item) in seen
        visit(item, parts)
        if parts and not known:
            seen.add(id(item))
            waiting.extend(reversed(parts))


def mutable_ids(value):
    found = set()
    walk(value, lambda item, parts: found.add(id(item)) if is_mutable(item) else None)
    return found


def shape(value):
    """What a value looks like with its mutable parts numbered by first visit: equal for equal aliasing."""
    numbers: dict[int, int] = {}
    lines = []

    def visit(item, parts):
        number = numbers.setdefault(id(item), len(numbers)) if is_mutable(item) else None
        lines.append((type(item), number, repr(item) if parts is None else len(parts)))

    walk(value, visit)
    return lines
