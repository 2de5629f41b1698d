"""Reads the types of one callable, keywords of `Unpack` included, and checks the rules of the decorators."""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Annotated, Any, NamedTuple, NoReturn, NotRequired, Required, TypeVar, get_args, get_type_hints
from weakref import WeakKeyDictionary

from agentbench._signatures.annotations import Callee, Scope, UnknownNameError, holds_text, scope_of
from agentbench._signatures.forms import (
    NoneType,
    TypeLike,
    flatten_union,
    is_type_form,
    is_typed_dict,
    is_union,
    origin_of,
    required_keys_of,
    type_name,
    unwrap,
)


class ExplicitTypes(NamedTuple):
    """Types passed to a decorator: each a type, a union or text that names one. `None` is none; write `type(None)`."""

    input: TypeLike = None
    output: TypeLike = None
    workflow_output: TypeLike = None
    request: TypeLike = None
    response: TypeLike = None

    def has_any(self) -> bool:
        """Return whether any type was passed, which makes all types explicit."""
        return any(type_ is not None for type_ in self)


class HandlerSignature(NamedTuple):
    """The types that a handler takes (or, for a response handler, the response), sends and yields, unions flattened."""

    message_type: TypeLike
    send_types: tuple[TypeLike, ...] = ()
    yield_types: tuple[TypeLike, ...] = ()
    can_send: bool = False
    can_yield: bool = False
    takes_context: bool = True
    sends_never: bool = False
    """Whether the context declares `Never` as the type that it sends; one without type arguments declares nothing."""
    request_type: TypeLike = None
    response_type: TypeLike = None

    def resolve(self, owner: type) -> HandlerSignature:
        """Return this signature, since all its types are known."""
        return self


class ContextTypes(NamedTuple):
    """The two type arguments of a context; `None` if one was not declared."""

    send: TypeLike = None
    yields: TypeLike = None

    def or_else(self, other: ContextTypes) -> ContextTypes:
        """Return these types, completed by the other's where none was declared."""
        return ContextTypes(*(theirs if mine is None else mine for mine, theirs in zip(self, other, strict=True)))

    def members(self) -> tuple[tuple[TypeLike, ...], tuple[TypeLike, ...]]:
        """Return the types to send and to yield, unions as their members."""
        send, yields = (() if type_ is None else flatten_union(type_) for type_ in self)
        return send, yields


class Reading:
    """Reads the types of one callable. An unknown name counts as `Any`, and its error is collected in `unknown`."""

    def __init__(
        self,
        decorator: str,
        callee: Callee,
        context_type: type,
        explicit: ExplicitTypes,
        known: Mapping[str, object] | None = None,
    ) -> None:
        self.callee, self.explicit = callee, explicit
        self.unknown: list[Exception] = []
        self._decorator, self._context_type = decorator, context_type
        self._known: Mapping[str, object] = known or {}
        self._scope: Scope | None = None

    @property
    def scope(self) -> Scope:
        """The scope for names; built on first use, because most signatures contain no text."""
        if self._scope is None:  # not a cached_property, whose frame would look like the caller's
            fallbacks = {self._context_type.__name__: self._context_type}
            self._scope = scope_of(self.callee, known=self._known, fallbacks=fallbacks)
        return self._scope

    def with_names(self, names: Mapping[str, object]) -> Reading:
        """Return a later reading, which also knows these names."""
        return Reading(self._decorator, self.callee, self._context_type, self.explicit, {**self._known, **names})

    def types_in_scope(self) -> dict[str, object]:
        """Return the local names of types and modules; a later reading does not keep other values alive."""
        names = self.scope.local_names.items()
        return {name: value for name, value in names if isinstance(value, ModuleType) or is_type_form(value)}

    def expect_parameters(self, *forms: str) -> None:
        """Raise unless the number of parameters matches one of the forms, such as `(self, message, ctx)`."""
        names, others = self.callee.parameters, self.callee.other_parameters
        if others or len(names) not in [form.count(",") + 1 for form in forms]:
            found = f"has the parameters ({', '.join((*names, *others))})"
            self._refuse(found, f"Expected exactly {' or '.join(forms)}.")

    def expect_explicit(self, *slots: str) -> None:
        """Raise unless these types were passed."""
        missing = [slot for slot in slots if getattr(self.explicit, slot) is None]
        if missing:
            hint = f"With explicit types, all types come from the decorator. Pass {_keywords(slots)}."
            self._refuse(f"has explicit types without {_keywords(missing)}", hint)

    def expect_unannotated(self, position: int, slot: str) -> None:
        """Raise if a parameter whose type was passed has an annotation."""
        name = self.callee.parameters[position]
        if name in self.callee.annotations:
            hint = f"Remove the annotation, or remove the types from {self._decorator}(...)."
            self._refuse(f"annotates {name!r} although {slot}= was passed", hint)

    def expect_agreement(self, annotated: ContextTypes, passed: ContextTypes) -> None:
        """Raise if the context annotation names a type that was not passed."""
        if self.unknown:
            return
        slots = ("output", "workflow_output")
        for slot, written, allowed in zip(slots, annotated.members(), passed.members(), strict=True):
            extra = [type_ for type_ in written if type_ not in allowed]
            if extra and Any not in allowed:
                found = f"annotates its context with {' | '.join(map(type_name, extra))}, which {slot}= lacks"
                self._refuse(found, f"Add it to {slot}=, or write the context annotation without arguments.")

    def explicit_type(self, slot: str) -> TypeLike:
        """Return a type that was passed, or `None`. Text that names nothing is a `NameError`."""
        passed = getattr(self.explicit, slot)
        return None if passed is None else self._message_type(passed, f"{slot}=")

    def explicit_context_types(self) -> ContextTypes:
        """Return `output` and `workflow_output` as passed."""
        return ContextTypes(self.explicit_type("output"), self.explicit_type("workflow_output"))

    def message_type(self, position: int) -> TypeLike:
        """Return the annotated type of a message parameter."""
        name = self.callee.parameters[position]
        if name not in self.callee.annotations:
            self._refuse(f"has no annotation for {name!r}", f"Expected a type. {self._explicit_hint()}")
        return self._message_type(self.callee.annotations[name], repr(name))

    def context_types(self, position: int, *, required: bool) -> ContextTypes:
        """Return the type arguments of the context annotation; omitting it is an error if it is `required`."""
        name = self.callee.parameters[position]
        if name not in self.callee.annotations:
            if required:
                self._refuse(f"has no annotation for {name!r}", self._context_hint())
            return ContextTypes()
        annotation = unwrap(self._context_annotation(name, self.callee.annotations[name]))
        if annotation is self._context_type:
            return ContextTypes()
        args = get_args(annotation)
        if origin_of(annotation) is not self._context_type or len(args) > 2 or not all(map(is_type_form, args)):
            self._refuse_context(name, annotation)
        return ContextTypes(*(NoneType if arg is None else arg for arg in args))

    def _message_type(self, written: TypeLike, place: str) -> TypeLike:
        type_ = written
        if holds_text(written):
            try:
                type_ = self.scope.resolve(written)
            except UnknownNameError as error:
                self.unknown.append(self._unknown_name(place, error))
                return Any
            except ValueError as error:
                self._refuse(f"has an unreadable type for {place}", str(error), error)
        if isinstance(unwrap(type_), TypeVar):
            found = f"has the type variable {type_name(type_)} for {place}, which says nothing about a message"
            self._refuse(found, f"Expected a concrete type. {self._explicit_hint()}")
        if not is_type_form(type_):
            hint = "Expected a type, a union of types, or text that names one."
            self._refuse(f"has {type_!r} for {place}, which is not a type", hint)
        return NoneType if type_ is None else type_

    def _context_annotation(self, name: str, written: TypeLike) -> TypeLike:
        if not holds_text(written):
            return written
        try:
            return self.scope.resolve(written)
        except UnknownNameError as error:
            # Inside WorkflowContext[...] a later reading may help; any other unknown name cannot be a context.
            complaint = self._unknown_name(repr(name), error)
            if not self._is_context_form(written):
                raise complaint from error
            self.unknown.append(complaint)
            return self._context_type
        except ValueError as error:
            self._refuse_context(name, written, error)

    def _is_context_form(self, written: TypeLike) -> bool:
        if not isinstance(written, str):
            return origin_of(written) is self._context_type
        try:
            return self.scope.resolve(written.strip("'\" ").partition("[")[0]) is self._context_type
        except (UnknownNameError, ValueError):
            return False

    def _refuse(self, found: str, hint: str, cause: Exception | None = None) -> NoReturn:
        message = f"{self._decorator} {self.callee.name!r} {found}. {hint}"
        raise ValueError(message) from cause

    def _unknown_name(self, place: str, error: UnknownNameError) -> Exception:
        found = f"{self._decorator} {self.callee.name!r} has {error.text!r} for {place}, where {error.name!r}"
        hint = f"Expected the name of a type. Import or define {error.name!r}, or pass the type itself."
        message = f"{found} is not defined. {hint}"
        return NameError(message, name=error.name) if place.endswith("=") else ValueError(message)

    def _refuse_context(self, parameter: str, annotation: TypeLike, cause: Exception | None = None) -> NoReturn:
        is_named = is_type_form(annotation) and not isinstance(annotation, str)
        found = type_name(annotation) if is_named else repr(annotation)
        self._refuse(f"annotates {parameter!r} with {found}", self._context_hint(), cause)

    def _context_hint(self) -> str:
        name = self._context_type.__name__
        return f"Expected {name}, {name}[Sends] or {name}[Sends, Yields], with types as arguments."

    def _explicit_hint(self) -> str:
        keywords = "request=..., response=..." if self._decorator == "@response_handler" else "input=..."
        return f"Annotate the parameter with one, or pass the types: {self._decorator}({keywords})."


def _keywords(slots: Sequence[str]) -> str:
    return " and ".join(f"{slot}=" for slot in slots)


_readable_copies: WeakKeyDictionary[type, type] = WeakKeyDictionary()


def readable_by_pydantic(annotation: TypeLike) -> TypeLike:
    """Return a type in which every `typing.TypedDict` class is replaced by an equal one that pydantic supports."""
    if sys.version_info >= (3, 12):
        return annotation
    if is_typed_dict(annotation):
        return _readable_copy(annotation)
    arguments = get_args(annotation)
    if not arguments or not any(isinstance(one, type) or get_args(one) for one in arguments):
        return annotation
    if origin_of(annotation) is Annotated:
        return Annotated[(readable_by_pydantic(arguments[0]), *arguments[1:])]
    changed = tuple(readable_by_pydantic(one) for one in arguments)
    if all(map(operator.is_, changed, arguments)):
        return annotation
    if isinstance(annotation, types.UnionType) or is_union(annotation):
        return functools.reduce(operator.or_, changed)
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else origin_of(annotation)[changed]


def _readable_copy(cls: TypeLike) -> TypeLike:
    if type(cls).__module__ != "typing":
        return cls
    readable: TypeLike = _readable_copies.get(cls)
    if readable is None:
        from typing_extensions import TypedDict

        # It is registered before its fields are known, since they may refer to the class itself.
        _readable_copies[cls] = readable = TypedDict(cls.__name__, {})  # type: ignore[operator]
        readable.__doc__, readable.__module__ = cls.__doc__, cls.__module__
        hints, required = get_type_hints(cls, include_extras=True), required_keys_of(cls)
        readable.__required_keys__, readable.__optional_keys__ = required, frozenset(hints) - required
        readable.__annotations__ = {
            name: (Required if name in required else NotRequired)[readable_by_pydantic(_strip_requirement(type_))]
            for name, type_ in hints.items()
        }
    return readable


def _strip_requirement(type_: TypeLike) -> TypeLike:
    return get_args(type_)[0] if origin_of(type_) in (Required, NotRequired) else type_
