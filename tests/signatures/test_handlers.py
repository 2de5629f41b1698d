# ruff: noqa: UP007, UP045  the older spellings of types are tested, too
# Annotations that no type checker accepts are what is tested, and the context here is generic at run time only.
# mypy: disable-error-code="misc, name-defined, type-arg, valid-type, var-annotated"
import functools
from collections.abc import Callable
from types import GenericAlias
from typing import Annotated, Any, Literal, NoReturn, Optional, TypeVar, Union

import pytest
import typing_extensions

from agentbench._signatures import (
    ExplicitTypes,
    HandlerSignature,
    PendingSignature,
    read_function,
    read_handler,
    read_response_handler,
)
from tests.parts.errors import raises

T = TypeVar("T")
Bounded = TypeVar("Bounded", bound=int)
NoneType = type(None)


class WorkflowContext:
    __class_getitem__ = classmethod(GenericAlias)


class OtherContext(WorkflowContext):
    pass


class Question: ...


class Answer: ...


def handler(func: Callable[..., Any], **explicit: Any) -> Any:
    return read_handler(func, context_type=WorkflowContext, explicit=ExplicitTypes(**explicit))


def response_handler(func: Callable[..., Any], **explicit: Any) -> Any:
    return read_response_handler(func, context_type=WorkflowContext, explicit=ExplicitTypes(**explicit))


def function(func: Callable[..., Any], **explicit: Any) -> HandlerSignature:
    return read_function(func, context_type=WorkflowContext, explicit=ExplicitTypes(**explicit))


def with_context(annotation: Any) -> Callable[..., Any]:
    async def handle(self, message: str, ctx: annotation) -> None: ...

    return handle


def with_message(annotation: Any) -> Callable[..., Any]:
    async def handle(self, message: annotation, ctx: WorkflowContext) -> None: ...

    return handle


async def unannotated(self, message, ctx) -> None: ...


# ---- @handler, types from annotations


@pytest.mark.parametrize(
    ("annotation", "sends", "yields"),
    [
        (WorkflowContext, (), ()),
        (WorkflowContext[int], (int,), ()),
        (WorkflowContext[int, str], (int,), (str,)),
        (WorkflowContext[NoReturn, str], (), (str,)),
        (WorkflowContext[typing_extensions.Never, str], (), (str,)),
        (WorkflowContext[typing_extensions.Never], (), ()),
        (WorkflowContext[int, NoReturn], (int,), ()),
        (WorkflowContext[None], (NoneType,), ()),
        (WorkflowContext[int | str], (int, str), ()),
        (WorkflowContext[Union[int, str], Optional[int]], (int, str), (int, NoneType)),
        (WorkflowContext[Any], (Any,), ()),
        (WorkflowContext[Any, Any], (Any,), (Any,)),
        (WorkflowContext[list[str], dict[str, int]], (list[str],), (dict[str, int],)),
        (WorkflowContext[T], (T,), ()),
        (Annotated[WorkflowContext[int], "note"], (int,), ()),
        ("WorkflowContext", (), ()),
        ("WorkflowContext[int, str | None]", (int,), (str, NoneType)),
        (WorkflowContext["Question"], (Question,), ()),
        (WorkflowContext["Question | Answer", list["Question"]], (Question, Answer), (list[Question],)),
    ],
)
def test_the_context_annotation_says_what_a_handler_sends_and_yields(annotation, sends, yields):
    signature = handler(with_context(annotation))
    assert (signature.send_types, signature.yield_types) == (sends, yields)
    assert (signature.can_send, signature.can_yield) == (bool(sends), bool(yields))
    assert signature.takes_context


@pytest.mark.parametrize(
    ("annotation", "message_type"),
    [
        (str, str),
        (int | str, int | str),
        (Any, Any),
        (None, NoneType),
        (Literal["a"], Literal["a"]),
        (list[T], list[T]),
        ("Question", Question),
        (list["Question"], list[Question]),
        (Optional["Question"], Question | None),
        (Callable[["Question"], "Answer"], Callable[[Question], Answer]),
        (Annotated["Question", "text"], Annotated[Question, "text"]),
        (Literal["Question"], Literal["Question"]),
    ],
)
def test_the_message_annotation_is_one_type_unions_included(annotation, message_type):
    assert handler(with_message(annotation)).message_type == message_type


def test_a_plain_method_and_a_wrapped_one_are_read_alike():
    def handle(self, message: int, ctx: WorkflowContext[str]) -> None: ...

    @functools.wraps(handle)
    def wrapper(*args: Any) -> None: ...

    assert handler(handle) == handler(wrapper) == HandlerSignature(message_type=int, send_types=(str,), can_send=True)


def no_context(self, message: int) -> None: ...
def one_too_many(self, message: int, ctx: WorkflowContext, more: int) -> None: ...
def keyword_only(self, message: int, *, ctx: WorkflowContext) -> None: ...
def variadic(self, *rest: int) -> None: ...
def without_context_type(self, message: int, ctx) -> None: ...


@pytest.mark.parametrize(
    ("func", "told"),
    [
        *((func, "exactly") for func in (no_context, one_too_many, keyword_only, variadic)),
        *((with_message(variable), "@handler(input=...)") for variable in (T, Bounded, "T", Annotated[T, "x"])),
        *((with_message(annotation), "'message'") for annotation in (5, "5", [int], "1 +", "list[int]()")),
        (unannotated, "@handler(input=...)"),
        (without_context_type, "'ctx'"),
    ],
)
def test_a_handler_without_proper_annotations_is_an_error_that_shows_what_to_write(func, told):
    with raises(ValueError, told):
        handler(func)


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        Any,
        OtherContext,
        OtherContext[int],
        Optional[WorkflowContext],
        WorkflowContext[int, str, bytes],
        WorkflowContext[5],
        WorkflowContext[int, 5],
        WorkflowContext["5"],
        WorkflowContext[[int]],
        "Nope",
        "Nope[int]",
        "WorkflowContext[int",
        "WorkflowContext[5]",
    ],
)
def test_a_context_annotation_of_another_form_is_an_error_at_once(annotation):
    with raises(ValueError, "'ctx'"):
        handler(with_context(annotation))


# ---- @handler, explicit types


@pytest.mark.parametrize(
    ("explicit", "expected"),
    [
        ({"input": str}, HandlerSignature(message_type=str)),
        ({"input": str | int}, HandlerSignature(message_type=str | int)),
        ({"input": "Question | None"}, HandlerSignature(message_type=Question | None)),
        ({"input": "Union[Question, Optional[int]]"}, HandlerSignature(message_type=Union[Question, Optional[int]])),
        (
            {"input": str, "output": Union[int, str]},
            HandlerSignature(message_type=str, send_types=(int, str), can_send=True),
        ),
        (
            {"input": str, "workflow_output": Optional[int]},
            HandlerSignature(message_type=str, yield_types=(int, NoneType), can_yield=True),
        ),
        ({"input": str, "output": NoReturn}, HandlerSignature(message_type=str, sends_never=True)),
        ({"input": str, "output": None}, HandlerSignature(message_type=str)),
        ({"input": str, "output": NoneType}, HandlerSignature(message_type=str, send_types=(NoneType,), can_send=True)),
        ({"input": Any, "output": Any}, HandlerSignature(message_type=Any, send_types=(Any,), can_send=True)),
    ],
)
def test_explicit_types_stand_for_annotations(explicit, expected):
    assert handler(unannotated, **explicit) == expected


@pytest.mark.parametrize("explicit", [{"output": str}, {"workflow_output": str}])
def test_explicit_types_need_the_input(explicit):
    with raises(ValueError, "input="):
        handler(unannotated, **explicit)


def test_an_annotated_message_next_to_an_explicit_input_is_an_error():
    with raises(ValueError, "'message'", "input="):
        handler(with_message(str), input=str)


def with_context_only(annotation: Any) -> Callable[..., Any]:
    async def handle(self, message, ctx: annotation) -> None: ...

    return handle


@pytest.mark.parametrize(
    ("annotation", "explicit", "reason"),
    [
        (WorkflowContext[int], {"output": bytes}, "int, which output="),
        (WorkflowContext[int | bytes], {"output": bytes}, "int, which output="),
        (WorkflowContext[int], {}, "int, which output="),
        (WorkflowContext[bytes, int], {"output": bytes}, "int, which workflow_output="),
        (int, {"output": bytes}, "'ctx' with int"),
        ("Nope", {"output": bytes}, "'Nope' is not defined"),
    ],
)
def test_a_context_annotation_that_contradicts_the_explicit_types_is_an_error(annotation, explicit, reason):
    with pytest.raises(ValueError, match=reason):
        handler(with_context_only(annotation), input=str, **explicit)


@pytest.mark.parametrize(("value", "reason"), [(5, "not a type"), (T, "type variable"), ("1 +", "unreadable")])
def test_an_explicit_input_that_is_no_type_is_an_error(value, reason):
    with pytest.raises(ValueError, match=reason):
        handler(unannotated, input=value)


# ---- names that are not known yet


def test_a_name_of_a_class_around_the_handler_is_known_at_once():
    class Local: ...

    class Host:
        class Nested: ...

        signature = handler(with_local_names := lambda self, message, ctx: None, input="Local | Nested")

        async def handle(self, message: "Local", ctx: WorkflowContext["Nested"]) -> None: ...

        annotated = handler(handle)

    assert Host.with_local_names is not None
    assert Host.signature.message_type == Local | Host.Nested
    assert (Host.annotated.message_type, Host.annotated.send_types) == (Local, (Host.Nested,))


def test_a_handler_may_name_its_own_class_and_classes_defined_further_down():
    class Host:
        async def handle(self, message: "Host | Later", ctx: WorkflowContext["Later"]) -> None: ...

        signature = handler(handle)
        explicit = handler(unannotated, input="Later", output="Host")

    class Later: ...

    assert isinstance(Host.signature, PendingSignature)
    expected = HandlerSignature(message_type=Host | Later, send_types=(Later,), can_send=True)
    assert Host.signature.resolve(Host) == expected
    expected = HandlerSignature(message_type=Later, send_types=(Host,), can_send=True)
    assert Host.explicit.resolve(Host) == expected


def test_a_type_seen_at_the_decoration_is_known_after_the_function_has_returned():
    def define() -> Any:
        class Seen: ...

        class Host:
            async def handle(self, message: "Seen | Host", ctx: WorkflowContext) -> None: ...

            signature = handler(handle)

        return Host, Seen

    host, seen = define()
    assert host.signature.resolve(host).message_type == host | seen


def test_an_annotation_that_never_gets_a_meaning_is_an_error_when_it_is_needed():
    signature = handler(with_message("Nope"))
    with raises(ValueError, "'Nope'", "'message'"):
        signature.resolve(Question)


def test_an_explicit_name_that_never_gets_a_meaning_is_a_name_error():
    signature = handler(unannotated, input="Nope")
    with raises(NameError, "'Nope'", "input=") as caught:
        signature.resolve(Question)
    assert caught.value.name == "Nope"


# ---- @response_handler


def test_a_response_handler_has_a_request_and_a_response_type():
    async def handle(self, original_request: Question, response: Answer, ctx: WorkflowContext[int, str]) -> None: ...

    signature = response_handler(handle)
    assert (signature.request_type, signature.response_type) == (Question, Answer)
    assert (signature.send_types, signature.yield_types) == ((int,), (str,))
    assert signature.can_send
    assert signature.can_yield


def test_the_context_of_a_response_handler_needs_no_annotation():
    async def handle(self, original_request: Question, response: Answer, ctx) -> None: ...

    signature = response_handler(handle)
    assert (signature.request_type, signature.response_type) == (Question, Answer)
    assert not signature.can_send


async def unannotated_response(self, original_request, response, ctx) -> None: ...


def test_explicit_types_of_a_response_handler_stand_for_annotations():
    signature = response_handler(unannotated_response, request="Question", response=bool, output=int | str)
    assert (signature.request_type, signature.response_type) == (Question, bool)
    assert signature.send_types == (int, str)
    assert not signature.can_yield


@pytest.mark.parametrize("explicit", [{"request": Question}, {"response": Answer}, {"output": int}])
def test_explicit_types_of_a_response_handler_need_request_and_response(explicit):
    missing = [f"{name}=" for name in ("request", "response") if name not in explicit]
    with raises(ValueError, "without", *missing):
        response_handler(unannotated_response, **explicit)


def response_without_context(self, original_request: Question, response: Answer) -> None: ...
def response_without_request_type(self, original_request, response: Answer, ctx: WorkflowContext) -> None: ...
def response_without_response_type(self, original_request: Question, response, ctx: WorkflowContext) -> None: ...
def response_of_any_type(self, original_request: Question, response: T, ctx: WorkflowContext) -> None: ...
def response_with_wrong_context(self, original_request: Question, response: Answer, ctx: int) -> None: ...


@pytest.mark.parametrize(
    ("func", "told"),
    [
        (response_without_context, "original_request"),
        (with_message(int), "original_request"),
        (unannotated_response, "'original_request'"),
        (response_without_request_type, "'original_request'"),
        (response_without_response_type, "@response_handler(request=..., response=...)"),
        (response_of_any_type, "type variable"),
        (response_with_wrong_context, "'ctx' with int"),
    ],
)
def test_a_response_handler_without_proper_annotations_is_an_error(func, told):
    with raises(ValueError, told):
        response_handler(func)


# ---- functions


def test_a_function_with_and_without_context_is_read():
    async def full(text: str, ctx: WorkflowContext[int, bytes]) -> None: ...

    def short(number: int) -> int:
        return number

    expected = HandlerSignature(
        message_type=str, send_types=(int,), yield_types=(bytes,), can_send=True, can_yield=True, takes_context=True
    )
    assert function(full) == expected
    assert function(short) == HandlerSignature(message_type=int, takes_context=False)


def test_explicit_types_beat_annotations_one_by_one():
    async def func(text: float, ctx: WorkflowContext[bool, dict]) -> None: ...

    signature = function(func, input=str, output=int)
    assert (signature.message_type, signature.send_types, signature.yield_types) == (str, (int,), (dict,))
    signature = function(func, workflow_output=int)
    assert (signature.message_type, signature.send_types, signature.yield_types) == (float, (bool,), (int,))


def test_text_in_a_function_s_types_is_looked_up_where_it_was_written():
    class Local: ...

    def func(message: "Local", ctx: "WorkflowContext[list[Local]]") -> None: ...

    assert function(func).message_type is Local
    assert function(func).send_types == (list[Local],)
    assert function(lambda m: None, input="Local | Question").message_type == Local | Question


def unannotated_function(message): ...
def without_parameters() -> None: ...
def with_three(message: int, ctx: WorkflowContext, more: int) -> None: ...
def without_context_annotation(message: int, ctx) -> None: ...
def with_wrong_context(message: int, ctx: int) -> None: ...
def with_type_variable(message: T) -> None: ...


@pytest.mark.parametrize(
    ("func", "reason"),
    [
        (without_parameters, r"Expected exactly \(message\) or \(message, ctx\)"),
        (with_three, r"Expected exactly \(message\) or \(message, ctx\)"),
        (unannotated_function, "no annotation for 'message'"),
        (without_context_annotation, "no annotation for 'ctx'"),
        (with_wrong_context, "'ctx' with int"),
        (with_type_variable, "type variable"),
    ],
)
def test_a_function_of_another_form_is_an_error(func, reason):
    with pytest.raises(ValueError, match=reason):
        function(func)


def test_unknown_names_in_a_function_s_types_are_errors_at_once():
    def func(message: "Nope") -> None: ...  # noqa: F821

    with raises(ValueError, "'Nope'"):
        function(func)
    with raises(NameError, "'Nope'"):
        function(unannotated_function, input="Nope")


class Worker:
    def work(self, message: int, ctx: WorkflowContext[str]) -> None: ...

    def __call__(self, message: "Question") -> None: ...


def formatted(prefix: str, message: bytes, ctx: WorkflowContext[str], *, suffix: str = "") -> None: ...


@pytest.mark.parametrize(
    ("func", "message_type", "takes_context"),
    [
        (Worker().work, int, True),
        (Worker(), Question, False),
        (functools.partial(formatted, "-", suffix="!"), bytes, True),
        (functools.partial(Worker().work, ctx=WorkflowContext()), int, False),
    ],
)
def test_bound_methods_partials_and_callable_objects_are_functions_too(func, message_type, takes_context):
    signature = function(func)
    assert (signature.message_type, signature.takes_context) == (message_type, takes_context)


# ---- the values


@pytest.mark.parametrize("thing", [5, None, Worker])
def test_what_is_no_function_is_refused(thing):
    with raises(TypeError, "function"):
        function(thing)
