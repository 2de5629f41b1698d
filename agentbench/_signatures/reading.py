"""One look at a callable's types, with every rule of the decorators that it may break."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

from agentbench._signatures.annotations import Scope, UnknownNameError, holds_text, scope_of
from agentbench._signatures.callables import Callee
from agentbench._signatures.forms import NoneType, TypeLike, flatten_union, is_type_form, unwrap
from agentbench._signatures.naming import type_name
from agentbench._signatures.signature import NOT_GIVEN, ExplicitTypes, is_given


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
        decorator: Name of the decorator, for messages.
        callee: The callable.
        explicit: Types passed to the decorator.
        unknown: Errors about names that are not known (yet).
    """

    __slots__ = ("_context_type", "_known", "_scope", "callee", "decorator", "explicit", "unknown")

    def __init__(
        self,
        decorator: str,
        callee: Callee,
        context_type: type,
        explicit: ExplicitTypes,
        known: Mapping[str, object] | None = None,
    ) -> None:
        self.decorator, self.callee, self.explicit = decorator, callee, explicit
        self.unknown: list[Exception] = []
        self._context_type = context_type
        self._known: Mapping[str, object] = known or {}
        self._scope: Scope | None = None

    @property
    def scope(self) -> Scope:
        """Where names are looked up; built on first use, for most signatures hold no text."""
        if self._scope is None:
            fallbacks = {self._context_type.__name__: self._context_type}
            self._scope = scope_of(self.callee, known=self._known, fallbacks=fallbacks)
        return self._scope

    def again(self, owner: type) -> Reading:
        """Return a later look, which also knows what this one saw, the class that the handler is in, and its body."""
        known = {**self.scope.local_names, **vars(owner), owner.__name__: owner}
        return Reading(self.decorator, self.callee, self._context_type, self.explicit, known)

    def raise_unknown(self) -> None:
        """Raise the first error about an unknown name, if there is one."""
        if self.unknown:
            raise self.unknown[0]

    def expect_parameters(self, *forms: str) -> None:
        """Check the number of parameters against forms such as `(self, message, ctx)`."""
        given, others = self.callee.parameters, self.callee.other_parameters
        if others or len(given) not in [form.count(",") + 1 for form in forms]:
            written = ", ".join((*given, *others))
            raise self._problem(f"has the parameters ({written})", f"Expected exactly {' or '.join(forms)}.")

    def expect_explicit(self, *slots: str) -> None:
        """Check that these types were passed."""
        missing = [slot for slot in slots if not self.explicit.has(slot)]
        if missing:
            needed = " and ".join(f"{slot}=" for slot in slots)
            found = f"is given explicit types without {' and '.join(f'{slot}=' for slot in missing)}"
            raise self._problem(found, f"With explicit types all of them come from the decorator. Pass {needed}.")

    def expect_unannotated(self, position: int, slot: str) -> None:
        """Check that a parameter whose type was passed has no annotation."""
        name = self.callee.parameters[position]
        if name in self.callee.annotations:
            hint = f"Remove the annotation, or remove the types from {self.decorator}(...)."
            raise self._problem(f"annotates {name!r} although {slot}= was passed", hint)

    def expect_agreement(self, annotated: ContextTypes, passed: ContextTypes) -> None:
        """Check that the context annotation names no type that was not passed."""
        if self.unknown:
            return
        for slot, written, allowed in zip(
            ("output", "workflow_output"), annotated.members(), passed.members(), strict=True
        ):
            extra = [type_name(type_) for type_ in written if type_ not in allowed]
            if extra and Any not in allowed:
                hint = f"Add it to {slot}=, or leave the context annotation without arguments."
                raise self._problem(
                    f"annotates its context with {' | '.join(extra)}, which {slot}= does not hold", hint
                )

    def explicit_type(self, slot: str) -> TypeLike:
        """Return a type that was passed; `NOT_GIVEN` if it was not. Text that names nothing is a `NameError`."""
        given = getattr(self.explicit, slot)
        if not is_given(given):
            return NOT_GIVEN
        type_ = self._resolve(given, self._unknown_explicit_name(slot))
        if not is_type_form(type_):
            raise self._problem(
                f"is given {slot}={type_!r}, which is not a type", "Expected a type, a union or its name."
            )
        if isinstance(unwrap(type_), TypeVar):
            raise self._type_var_problem(f"{slot}=", type_)
        return type_

    def explicit_context_types(self) -> ContextTypes:
        """Return `output` and `workflow_output` as passed."""
        return ContextTypes(self.explicit_type("output"), self.explicit_type("workflow_output"))

    def message_type(self, position: int) -> TypeLike:
        """Return the annotated type of a message parameter."""
        name = self.callee.parameters[position]
        annotation = self.callee.annotations.get(name, NOT_GIVEN)
        if annotation is NOT_GIVEN:
            raise self._problem(f"has no annotation for {name!r}", f"Expected a type. {self._explicit_hint()}")
        type_ = self._resolve(annotation, self._unknown_annotation_name(name))
        if isinstance(unwrap(type_), TypeVar):
            raise self._type_var_problem(repr(name), type_)
        if not is_type_form(type_):
            raise self._problem(f"annotates {name!r} with {type_!r}, which is not a type", "Expected a type.")
        return NoneType if type_ is None else type_

    def context_types(self, position: int, *, required: bool) -> ContextTypes:
        """Return the type arguments of the context annotation."""
        name = self.callee.parameters[position]
        written = self.callee.annotations.get(name, NOT_GIVEN)
        if written is NOT_GIVEN:
            if required:
                raise self._context_problem(f"has no annotation for {name!r}")
            return ContextTypes()
        annotation = unwrap(self._resolve_context(name, written))
        if annotation is self._context_type:
            return ContextTypes()
        args = get_args(annotation)
        if get_origin(annotation) is not self._context_type or len(args) not in (1, 2):
            raise self._context_problem(f"annotates {name!r} with {_written(annotation)}")
        for arg in args:
            if not is_type_form(arg):
                raise self._context_problem(
                    f"annotates {name!r} with {_written(annotation)}, where {arg!r} is not a type"
                )
        return ContextTypes(*(NoneType if arg is None else arg for arg in args))

    def _resolve(self, annotation: TypeLike, unknown: Callable[[UnknownNameError], Exception]) -> TypeLike:
        if not holds_text(annotation):
            return annotation
        try:
            return self.scope.resolve(annotation)
        except UnknownNameError as error:
            self.unknown.append(unknown(error))
            return Any
        except ValueError as error:
            raise self._problem("has a type that cannot be read", str(error)) from error

    def _resolve_context(self, name: str, written: TypeLike) -> TypeLike:
        if not holds_text(written):
            return written
        try:
            return self.scope.resolve(written)
        except UnknownNameError as error:
            # Inside WorkflowContext[...] a later look may help; anything else cannot become a context any more.
            if not self._is_context_form(written):
                raise self._context_problem(
                    f"annotates {name!r} with {_written(written)}, which names nothing"
                ) from error
            self.unknown.append(self._unknown_annotation_name(name)(error))
            return self._context_type
        except ValueError as error:
            raise self._context_problem(f"annotates {name!r} with {_written(written)}") from error

    def _is_context_form(self, written: TypeLike) -> bool:
        if not isinstance(written, str):
            return get_origin(written) is self._context_type
        try:
            return self.scope.resolve(written.strip("'\" ").partition("[")[0]) is self._context_type
        except (UnknownNameError, ValueError):
            return False

    def _problem(self, found: str, hint: str) -> ValueError:
        return ValueError(f"{self.decorator} {self.callee.name!r} {found}. {hint}")

    def _context_problem(self, found: str) -> ValueError:
        context = self._context_type.__name__
        return self._problem(found, f"Expected {context}, {context}[Sends] or {context}[Sends, Yields], each a type.")

    def _type_var_problem(self, place: str, variable: TypeLike) -> ValueError:
        found = f"takes the type variable {type_name(variable)} for {place}, which no message can be matched with"
        return self._problem(found, f"Expected a concrete type. {self._explicit_hint()}")

    def _explicit_hint(self) -> str:
        keywords = "request=..., response=..." if self.decorator == "@response_handler" else "input=..."
        return f"Annotate it, or pass the types: {self.decorator}({keywords})."

    def _unknown_annotation_name(self, parameter: str) -> Callable[[UnknownNameError], Exception]:
        return lambda error: self._problem(
            f"annotates {parameter!r} with {error.text!r}, where {error.name!r} is not defined",
            f"Expected names of types. Import or define {error.name!r} where the annotation can see it.",
        )

    def _unknown_explicit_name(self, slot: str) -> Callable[[UnknownNameError], Exception]:
        return lambda error: NameError(
            f"{self.decorator} {self.callee.name!r} is given {slot}={error.text!r}, where {error.name!r} is not defined. "
            f"Expected a type or its name. Import or define {error.name!r}, or pass the type itself.",
            name=error.name,
        )


def _written(annotation: TypeLike) -> str:
    return annotation if isinstance(annotation, str) else type_name(annotation)
