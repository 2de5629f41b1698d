"""What to tell people whose handler cannot be read: what is wrong, what was expected, how to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentbench._signatures.forms import TypeLike, is_type_form
from agentbench._signatures.naming import type_name


class Complaint(NamedTuple):
    """Writes the errors about one callable.

    Attributes:
        decorator: Name of the decorator, with its `@`.
        callable_name: Name of the callable.
        context_name: Name of the context class.
    """

    decorator: str
    callable_name: str
    context_name: str

    def wrong_parameters(self, names: Sequence[str], forms: Sequence[str]) -> ValueError:
        """The callable takes other parameters than `forms` allow."""
        return self._because(f"has the parameters ({', '.join(names)})", f"Expected exactly {' or '.join(forms)}.")

    def missing_types(self, missing: Sequence[str], needed: Sequence[str]) -> ValueError:
        """Explicit types were passed, but not all that are mandatory then."""
        found = f"is given explicit types without {_keywords(missing)}"
        return self._because(
            found, f"With explicit types all of them come from the decorator. Pass {_keywords(needed)}."
        )

    def types_given_twice(self, parameter: str, slot: str) -> ValueError:
        """A parameter is annotated although its type was passed."""
        hint = f"Remove the annotation, or remove the types from {self.decorator}(...)."
        return self._because(f"annotates {parameter!r} although {slot}= was passed", hint)

    def contradiction(self, slot: str, extra: Sequence[TypeLike]) -> ValueError:
        """The context annotation names types that were not passed."""
        found = f"annotates its context with {' | '.join(map(type_name, extra))}, which {slot}= does not hold"
        return self._because(found, f"Add it to {slot}=, or leave the context annotation without arguments.")

    def not_a_type(self, place: str, found: object) -> ValueError:
        """Something else stands where a type is expected; `place` is a parameter or a keyword."""
        hint = "Expected a type, a union of types, or text that names one."
        return self._because(f"has {found!r} for {place}, which is not a type", hint)

    def unreadable(self, place: str, reason: Exception) -> ValueError:
        """Text that should name a type is not a type expression."""
        return self._because(f"has an unreadable type for {place}", str(reason))

    def missing_annotation(self, parameter: str) -> ValueError:
        """A message parameter has no annotation."""
        return self._because(f"has no annotation for {parameter!r}", f"Expected a type. {self._explicit_hint()}")

    def type_variable(self, place: str, variable: TypeLike) -> ValueError:
        """A message is declared by a type variable alone."""
        found = f"has the type variable {type_name(variable)} for {place}, which says nothing about a message"
        return self._because(found, f"Expected a concrete type. {self._explicit_hint()}")

    def missing_context_annotation(self, parameter: str) -> ValueError:
        """The context parameter has no annotation."""
        return self._because(f"has no annotation for {parameter!r}", self._context_hint())

    def wrong_context(self, parameter: str, annotation: TypeLike) -> ValueError:
        """The context parameter is annotated with something else, or with wrong arguments."""
        return self._because(f"annotates {parameter!r} with {_written(annotation)}", self._context_hint())

    def unknown_name(self, parameter: str, name: str, text: str) -> ValueError:
        """A name in an annotation is not defined."""
        hint = f"Expected the name of a type. Import or define {name!r} where the annotation can see it."
        return self._because(f"annotates {parameter!r} with {text!r}, where {name!r} is not defined", hint)

    def unknown_explicit_name(self, slot: str, name: str, text: str) -> NameError:
        """A name in text passed to the decorator is not defined."""
        return NameError(
            f"{self.decorator} {self.callable_name!r} has {text!r} for {slot}=, where {name!r} is not defined. "
            f"Expected the name of a type. Import or define {name!r}, or pass the type itself.",
            name=name,
        )

    def _because(self, found: str, hint: str) -> ValueError:
        return ValueError(f"{self.decorator} {self.callable_name!r} {found}. {hint}")

    def _context_hint(self) -> str:
        name = self.context_name
        return f"Expected {name}, {name}[Sends] or {name}[Sends, Yields], with types as arguments."

    def _explicit_hint(self) -> str:
        keywords = "request=..., response=..." if self.decorator == "@response_handler" else "input=..."
        return f"Annotate the parameter with one, or pass the types: {self.decorator}({keywords})."


def _keywords(slots: Sequence[str]) -> str:
    return " and ".join(f"{slot}=" for slot in slots)


def _written(annotation: TypeLike) -> str:
    if isinstance(annotation, str) or not is_type_form(annotation):
        return repr(annotation)
    return type_name(annotation)
