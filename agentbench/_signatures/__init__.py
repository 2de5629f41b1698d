"""Reads the input and output types of callables, and matches values with types."""

from agentbench._signatures.compatibility import always_fits, is_type_compatible
from agentbench._signatures.equivalence import describe_redefinition, python_number, types_in, warn_of_redefinition
from agentbench._signatures.forms import flatten_union, type_name, type_of
from agentbench._signatures.handlers import PendingSignature, read_function, read_handler, read_response_handler
from agentbench._signatures.matching import (
    check_for,
    coerce_answer,
    decided_by_class,
    find_misfits,
    is_instance_of,
    text_reader,
)
from agentbench._signatures.reading import ExplicitTypes, HandlerSignature
from agentbench._signatures.type_codec import find_loaded_type, type_from_dict, type_to_dict

__all__ = [
    "ExplicitTypes",
    "HandlerSignature",
    "PendingSignature",
    "always_fits",
    "check_for",
    "coerce_answer",
    "decided_by_class",
    "describe_redefinition",
    "find_loaded_type",
    "find_misfits",
    "flatten_union",
    "is_instance_of",
    "is_type_compatible",
    "python_number",
    "read_function",
    "read_handler",
    "read_response_handler",
    "text_reader",
    "type_from_dict",
    "type_name",
    "type_of",
    "type_to_dict",
    "types_in",
    "warn_of_redefinition",
]
