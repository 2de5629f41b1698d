"""One look at a callable's types, with every rule of the decorators that it may break."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from agentbench._signatures.annotations import Scope, UnknownNameError, holds_text, scope_of
from agentbench._signatures.callables import Callee
from agentbench._signatures.forms import NoneType, TypeLike, flatten_union, is_type_form, origin_of, unwrap
from agentbench._signatures.signature import NOT_GIVEN, ExplicitTypes, is_given

if TYPE_CHECKING:
    from agentbench._signatures.wording import Complaint


class ContextTypes(NamedTuple):
    """The two type arguments of a context, as declared."""

    send: TypeLike = NOT_GIVEN
    yields: TypeLike = NOT_GIVEN

    def or_else(self, other: ContextTypes) -> ContextTypes:
        """Return these types, filled up with the other's where nothing was declared."""
        return ContextTypes(*(mine if is_given(mine) else theirs for mine, theirs in zip(self, other, strict=True)))

    def members(self) -> tuple[tuple[TypeLike, ...], tuple[TypeLike, ...]]:
        """Return the types to send and to yield, unions as their members."""
        send, yields = (flatten_union(type_) if is_given(type_) else () for type_ in self)
        return send, yields


class Reading:
    """One look at a callable.

    A name that is not known yet does not end it: the type counts as `Any` and the error is kept in `unknown`, so
    that mistakes which no later look can mend are reported at once.

    Attributes:
        callee: The callable.
        explicit: Types passed to the decorator.
        unknown: Errors about names that are not known (yet).
    """

    __slots__ = ("_context_type", "_decorator", "_known", "_scope", "callee", "explicit", "unknown")

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
    def _complaint(self) -> Complaint:
        from agentbench._signatures.wording import Complaint  # noqa: PLC0415 - only mistakes need words

        return Complaint(self._decorator, self.callee.name, self._context_type.__name__)

    @property
    def scope(self) -> Scope:
        """Where names are looked up; built on first use, for most signatures hold no text."""
        if self._scope is None:
            fallbacks = {self._context_type.__name__: self._context_type}
            self._scope = scope_of(self.callee, known=self._known, fallbacks=fallbacks)
        return self._scope

    def with_names(self, names: Mapping[str, object]) -> Reading:
        """Return a later look, which also knows these names."""
        return Reading(self._decorator, self.callee, self._context_type, self.explicit, {**self._known, **names})

    def types_in_scope(self) -> dict[str, object]:
        """Return the local names that stand for types or modules; other values are not kept alive for a later look."""
        names = self.scope.local_names.items()
        return {name: value for name, value in names if isinstance(value, ModuleType) or is_type_form(value)}

    def expect_parameters(self, *forms: str) -> None:
        """Check the number of parameters against forms such as `(self, message, ctx)`."""
        given, others = self.callee.parameters, self.callee.other_parameters
        if others or len(given) not in [form.count(",") + 1 for form in forms]:
            raise self._complaint.wrong_parameters((*given, *others), forms)

    def expect_explicit(self, *slots: str) -> None:
        """Check that these types were passed."""
        missing = [slot for slot in slots if not self.explicit.has(slot)]
        if missing:
            raise self._complaint.missing_types(missing, slots)

    def expect_unannotated(self, position: int, slot: str) -> None:
        """Check that a parameter whose type was passed has no annotation."""
        name = self.callee.parameters[position]
        if name in self.callee.annotations:
            raise self._complaint.types_given_twice(name, slot)

    def expect_agreement(self, annotated: ContextTypes, passed: ContextTypes) -> None:
        """Check that the context annotation names no type that was not passed."""
        if self.unknown:
            return
        slots = ("output", "workflow_output")
        for slot, written, allowed in zip(slots, annotated.members(), passed.members(), strict=True):
            extra = [type_ for type_ in written if type_ not in allowed]
            if extra and Any not in allowed:
                raise self._complaint.contradiction(slot, extra)

    def explicit_type(self, slot: str) -> TypeLike:
        """Return a type that was passed; `NOT_GIVEN` if it was not. Text that names nothing is a `NameError`."""
        given = getattr(self.explicit, slot)
        if not is_given(given):
            return NOT_GIVEN
        return self._resolve_message_type(
            given, f"{slot}=", lambda error: self._complaint.unknown_explicit_name(slot, error.name, error.text)
        )

    def explicit_context_types(self) -> ContextTypes:
        """Return `output` and `workflow_output` as passed."""
        return ContextTypes(self.explicit_type("output"), self.explicit_type("workflow_output"))

    def message_type(self, position: int) -> TypeLike:
        """Return the annotated type of a message parameter."""
        name = self.callee.parameters[position]
        annotation = self.callee.annotations.get(name, NOT_GIVEN)
        if annotation is NOT_GIVEN:
            raise self._complaint.missing_annotation(name)
        return self._resolve_message_type(
            annotation, repr(name), lambda error: self._complaint.unknown_name(name, error.name, error.text)
        )

    def context_types(self, position: int, *, required: bool) -> ContextTypes:
        """Return the type arguments of the context annotation; a `required` one has to be there."""
        name = self.callee.parameters[position]
        written = self.callee.annotations.get(name, NOT_GIVEN)
        if written is NOT_GIVEN:
            if required:
                raise self._complaint.missing_context_annotation(name)
            return ContextTypes()
        annotation = unwrap(self._resolve_context(name, written))
        if annotation is self._context_type:
            return ContextTypes()
        args = get_args(annotation)
        if origin_of(annotation) is not self._context_type or len(args) > 2 or not all(map(is_type_form, args)):
            raise self._complaint.wrong_context(name, annotation)
        return ContextTypes(*(NoneType if arg is None else arg for arg in args))

    def _resolve_message_type(
        self, written: TypeLike, place: str, complain: Callable[[UnknownNameError], Exception]
    ) -> TypeLike:
        type_ = written
        if holds_text(written):
            try:
                type_ = self.scope.resolve(written)
            except UnknownNameError as error:
                self.unknown.append(complain(error))
                return Any
            except ValueError as error:
                raise self._complaint.unreadable(place, error) from error
        if isinstance(unwrap(type_), TypeVar):
            raise self._complaint.type_variable(place, type_)
        if not is_type_form(type_):
            raise self._complaint.not_a_type(place, type_)
        return NoneType if type_ is None else type_

    def _resolve_context(self, name: str, written: TypeLike) -> TypeLike:
        if not holds_text(written):
            return written
        try:
            return self.scope.resolve(written)
        except UnknownNameError as error:
            # Inside WorkflowContext[...] a later look may help; any other unknown name is no context.
            complaint = self._complaint.unknown_name(name, error.name, error.text)
            if not self._is_context_form(written):
                raise complaint from error
            self.unknown.append(complaint)
            return self._context_type
        except ValueError as error:
            raise self._complaint.wrong_context(name, written) from error

    def _is_context_form(self, written: TypeLike) -> bool:
        if not isinstance(written, str):
            return origin_of(written) is self._context_type
        try:
            return self.scope.resolve(written.strip("'\" ").partition("[")[0]) is self._context_type
        except (UnknownNameError, ValueError):
            return False
