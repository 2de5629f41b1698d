"""The text of a condition that is a lambda: `score < 0.5` for `lambda draft: draft.score < 0.5`."""

import ast
import inspect
import warnings
from functools import lru_cache
from types import CodeType


def lambda_text(function: object) -> str | None:
    """Return the body of a lambda without its argument's name; `None` if its source is missing or ambiguous."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "<lambda>":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code itself has already warned
            found = _lambdas("".join(inspect.findsource(code)[0])).get((code.co_firstlineno, _words(code)), set())
    except (
        OSError,
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
        SystemError,
    ):  # the last: CPython 3.11, deep stacks
        return None
    return next(iter(found)) if len(found) == 1 else None


@lru_cache(maxsize=8)
def _lambdas(source: str) -> dict[tuple[int, frozenset[str]], set[str]]:
    """Return texts by line and words; the words differ if a file was changed after its code was loaded."""
    texts: dict[tuple[int, frozenset[str]], set[str]] = {}
    for node in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Lambda)):
        code = compile(ast.Expression(node), "<source>", "eval", dont_inherit=True).co_consts[0]
        body = ast.parse(ast.unparse(node.body), mode="eval")
        for each in ast.walk(body):
            if isinstance(each, ast.Attribute) and [getattr(each.value, "id", "")] == [a.arg for a in node.args.args]:
                each.value = ast.Name("\0")  # cannot occur in unparsed text
        texts.setdefault((node.lineno, _words(code)), set()).add(ast.unparse(body).replace("\0.", ""))
    return texts


def _words(code: CodeType) -> frozenset[str]:
    """Return the names and constants in a function and its inner functions."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    plain = (repr(each) for each in code.co_consts if each not in inner and "<lambda>" not in str(each))
    return frozenset(plain).union(code.co_names, code.co_freevars, code.co_varnames, *map(_words, inner))
