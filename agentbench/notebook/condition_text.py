"""What a condition without a name says: the text of a lambda, `score < 0.5` for `lambda draft: draft.score < 0.5`.

Read from the source by its place and checked against the compiled code: after an edit that was not loaded yet, nothing
is said rather than something wrong. Nothing is executed.
"""

import ast
import functools
import linecache
import warnings
from types import CodeType

__all__ = ["lambda_text"]

_TEXTS_KEPT = 8


def lambda_text(function: object) -> str | None:
    """Return the body of a lambda as text, without the name of its argument; `None` for anything else.

    Args:
        function: A condition.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "<lambda>":
        return None
    linecache.checkcache(code.co_filename)
    source = "".join(linecache.getlines(code.co_filename))
    texts = {_spoken(node) for node in _lambdas(source).get(code.co_firstlineno, ()) if _is_source_of(node, code)}
    return texts.pop() if len(texts) == 1 else None


@functools.lru_cache(maxsize=_TEXTS_KEPT)
def _lambdas(source: str) -> dict[int, list[ast.Lambda]]:
    """All lambdas of a source text by line; none if it is no Python."""
    try:
        # Cells may await outside of functions.
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        with warnings.catch_warnings():  # they were given when the code was loaded
            warnings.simplefilter("ignore")
            tree: ast.AST = compile(source, "<source>", "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, list[ast.Lambda]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
    return found


def _is_source_of(node: ast.Lambda, code: CodeType) -> bool:
    """Whether a lambda, compiled, would be this code; names from around it may be of either kind."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outer = compile(ast.Expression(node), "<source>", "eval", dont_inherit=True)
    except (SyntaxError, ValueError):  # such as `await` inside
        return False
    return any(_facts(each) == _facts(code) for each in outer.co_consts if isinstance(each, CodeType))


def _facts(code: CodeType) -> tuple[object, ...]:
    """What does not depend on where code stands. Python 3.10 keeps that in a constant, for the functions inside."""
    constants = tuple(
        (type(each), each)
        for each in code.co_consts
        if not isinstance(each, CodeType) and not (isinstance(each, str) and "<locals>" in each)
    )
    return code.co_varnames, constants, _names(code)


def _names(code: CodeType) -> frozenset[str]:
    inner = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(code.co_names).union(code.co_freevars, *inner)


def _spoken(node: ast.Lambda) -> str:
    arguments = [*node.args.posonlyargs, *node.args.args]
    body = _Without(arguments[0].arg).visit(_copied(node.body)) if len(arguments) == 1 else node.body
    return ast.unparse(body)


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


class _Without(ast.NodeTransformer):
    """Takes the argument away where one of its attributes is meant: the arrow says where the message comes from."""

    def __init__(self, argument: str) -> None:
        self._argument = argument

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == self._argument:
            return ast.copy_location(ast.Name(id=node.attr, ctx=ast.Load()), node)
        self.generic_visit(node)
        return node
