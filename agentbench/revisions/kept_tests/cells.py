"""The statements of a notebook's cells that define a workflow, found by their names. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from agentbench.exceptions import KeepTestError

_CHANGES: Final = ("add", "set", "append", "extend", "update", "insert", "register", "remove", "pop", "sort", "bind")
"""How the names of methods begin that change an object; other calls on a line of their own display or run it."""
_ALWAYS_KNOWN: Final = (frozenset(dir(builtins)) - {"get_ipython", "display"}) | {
    "__name__",
    "__doc__",
    "__file__",
    "__annotations__",
}


@dataclass(eq=False)
class Statement:
    """A statement at the top level of a cell.

    Attributes:
        source: Its text.
        defines: The names that it binds.
        now: The names that it needs when it is executed.
        later: The names that its functions need when they are called.
        changes: The names of objects that it changes in place.
        waits: Whether it awaits something, which a module cannot do.
        star: The module of a `from module import *`.
    """

    source: str
    defines: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    waits: bool = False
    star: str = ""


def source_of_names(names: Collection[str], cells: Sequence[str]) -> str:
    """Return the source of the statements that define some names, and everything that these need.

    Args:
        names: The names to define.
        cells: The sources of the executed cells, oldest first; one that was executed twice occurs twice.

    Raises:
        KeepTestError: A name is not defined by a cell, or only by one that awaits something; `names` lists all.
    """
    statements = [statement for cell in cells for statement in _statements(cell)]
    chosen: set[int] = set()
    missing: set[str] = set()
    # Names with the place before which their definition counts: functions see the latest, other code the previous one.
    queue = [(name, len(statements)) for name in sorted(names)]
    seen = set(queue)
    while queue:
        name, before = queue.pop()
        place = next((i for i in range(before - 1, -1, -1) if name in statements[i].defines), None)
        if place is None or statements[place].waits:
            stars = [i for i in range(before) if _imports(statements[i], name)]
            if stars:
                chosen.add(stars[-1])
            elif name not in _ALWAYS_KNOWN:
                missing.add(name)
            continue
        found = [place, *(i for i in range(place + 1, before) if name in statements[i].changes)]
        for index in set(found) - chosen:
            chosen.add(index)
            statement = statements[index]
            wanted = [(each, index) for each in statement.now]
            wanted += [(each, len(statements)) for each in statement.later]
            wanted += [(each, index) for each in statement.changes]
            queue += [each for each in wanted if each not in seen]
            seen.update(wanted)
    if missing:
        listed = ", ".join(sorted(missing))
        msg = (
            f"The test would need names that no executed cell defines: {listed}. A magic, a deleted cell, an await or "
            "the run itself may have made them. Define them in a cell, or move the workflow to a module and pass "
            'workflow="module:name".'
        )
        raise KeepTestError(msg, names=sorted(missing))
    future = sorted({line for cell in cells for line in cell.splitlines() if line.startswith("from __future__ import")})
    lines: list[str] = future
    for index in sorted(chosen):
        source = statements[index].source
        if source not in lines or "import" not in source.split()[0:3]:
            lines.append(source)
    return "\n".join(_with_blank_lines(lines))


def _with_blank_lines(sources: Sequence[str]) -> Iterator[str]:
    """Yield the statements with the blank lines that a formatter would put between them."""
    for index, source in enumerate(sources):
        is_block = source.startswith(("class ", "def ", "async def ", "@"))
        after_block = index > 0 and sources[index - 1].startswith(("class ", "def ", "async def ", "@"))
        if index and (is_block or after_block):
            yield "\n"
        yield source


def _imports(statement: Statement, name: str) -> bool:
    return bool(statement.star) and not name.startswith("_") and hasattr(sys.modules.get(statement.star), name)


def _statements(cell: str) -> Iterator[Statement]:
    """Yield the statements of a cell; a cell that is not Python was not executed either."""
    try:
        nodes = ast.parse(cell).body
    except SyntaxError:
        return
    lines = cell.splitlines()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        if node.col_offset == 0 and lines[first - 1].lstrip() == lines[first - 1]:
            source = "\n".join(lines[first - 1 : node.end_lineno])
        else:
            source = ""
        if ";" in source or not source:  # several statements may share the line
            source = ast.get_source_segment(cell, node) or ast.unparse(node)
            if getattr(node, "decorator_list", ()):
                source = ast.unparse(node)
        yield _read(source, node)


def _read(source: str, node: ast.stmt) -> Statement:
    statement = Statement(source)
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        statement.star = node.module or ""
        return statement
    statement.waits = any(_is_awaiting(each) for each in _at_top(node))
    if statement.waits:
        statement.defines = {each.id for each in _at_top(node) if isinstance(each, ast.Name) and _is_stored(each)}
        return statement
    table = symtable.symtable(source, "cell", "exec")
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported():
            statement.defines.add(symbol.get_name())
        if symbol.is_referenced():
            statement.now.add(symbol.get_name())
    for child in table.get_children():
        _read_table(child, statement, called_later=child.get_type() == "function")
    # A comprehension, lambda or class at the top level runs at once, and so do default values and decorators.
    statement.now -= {each for each in statement.defines if not isinstance(node, ast.AugAssign)} - _read_first(node)
    statement.changes = set(_find_changes(node)) - statement.defines
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        statement.defines.discard(node.target.id)
        statement.changes.add(node.target.id)
    for annotation in _annotations(node):
        statement.later |= {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)}
    return statement


def _read_table(table: symtable.SymbolTable, statement: Statement, *, called_later: bool) -> None:
    for symbol in table.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            (statement.later if called_later else statement.now).add(symbol.get_name())
    for child in table.get_children():
        _read_table(child, statement, called_later=called_later or child.get_type() == "function")


def _read_first(node: ast.stmt) -> set[str]:
    """Return the names that an assignment reads before it binds them again, as in `x = x + 1`."""
    value = getattr(node, "value", None)
    return {each.id for each in ast.walk(value) if isinstance(each, ast.Name)} if isinstance(value, ast.AST) else set()


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    """Yield the annotations, of which texts are parsed: the engine reads the types of handlers from them."""
    for each in ast.walk(node):
        for found in (getattr(each, "annotation", None), getattr(each, "returns", None)):
            for part in ast.walk(found) if isinstance(found, ast.AST) else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    try:
                        yield ast.parse(part.value, mode="eval").body
                    except SyntaxError:
                        continue


def _at_top(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are executed with the statement, without the bodies of its functions."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _at_top(child)


def _is_awaiting(node: ast.AST) -> bool:
    return isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or (
        isinstance(node, ast.comprehension) and bool(node.is_async)
    )


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _find_changes(node: ast.stmt) -> Iterator[str]:
    """Yield the names of objects that a statement changes in place."""
    for each in _at_top(node):
        if isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, (ast.Store, ast.Del)):
            yield from _root(each)
        elif isinstance(each, (ast.Expr, ast.Assign)):  # `_ = builder.add_edge(…)` displays nothing
            call: ast.expr = each.value
            changed: list[str] = []
            while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                if call.func.attr.startswith(_CHANGES):
                    changed += _root(call.func)
                call = call.func.value
            if isinstance(each, ast.Expr) or not isinstance(call, ast.Call):  # `x = Builder().add_edge(…)` makes x
                yield from changed


def _root(node: ast.expr) -> Iterator[str]:
    """Yield the name at the beginning of `name.attribute[key].method()`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return
    yield node.id
