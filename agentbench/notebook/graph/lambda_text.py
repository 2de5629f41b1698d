"""The text of a condition that is a lambda: `score < 0.5` for `lambda draft: draft.score < 0.5`.

The text is found in the source by its line and checked against the compiled code, so that a source that was edited
since gives no text rather than a wrong one. Nothing is executed.
"""

import ast
import functools
import linecache
import warnings
from types import CodeType

__all__ = ["lambda_text"]

_CACHED_SOURCES = 8


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
    texts = {_body_text(node) for node in _lambdas(source).get(code.co_firstlineno, ()) if _is_source_of(node, code)}
    return texts.pop() if len(texts) == 1 else None


@functools.lru_cache(maxsize=_CACHED_SOURCES)
def _lambdas(source: str) -> dict[int, list[ast.Lambda]]:
    """Return all lambdas of a source text by line; none if it is not Python."""
    try:
        # Cells may await outside of functions.
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        with warnings.catch_warnings():  # the import of the code emitted them already
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
    """Return the parts of code that do not depend on its place; Python 3.10 stores that in a constant of inner code."""
    constants = tuple(
        (type(each), each)
        for each in code.co_consts
        if not isinstance(each, CodeType) and not (isinstance(each, str) and "<locals>" in each)
    )
    return code.co_varnames, constants, _names(code)


def _names(code: CodeType) -> frozenset[str]:
    inner = (_names(each) for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(code.co_names).union(code.co_freevars, *inner)


def _body_text(node: ast.Lambda) -> str:
    arguments = [*node.args.posonlyargs, *node.args.args]
    if len(arguments) != 1:
        return ast.unparse(node.body)
    copied = ast.parse(ast.unparse(node.body), mode="eval").body  # the cached tree stays as it is
    return ast.unparse(_AttributesOnly(arguments[0].arg).visit(copied))


class _AttributesOnly(ast.NodeTransformer):
    """Replaces `draft.score` by `score` for the argument `draft`, whose name says nothing at an edge."""

    def __init__(self, argument: str) -> None:
        self._argument = argument

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == self._argument:
            return ast.copy_location(ast.Name(id=node.attr, ctx=ast.Load()), node)
        self.generic_visit(node)
        return node
