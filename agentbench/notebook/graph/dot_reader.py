"""Reads the DOT that this project writes (nodes, edges, clusters, attributes), for the built-in layout.

Everything of the language that ends in boxes and arrows is understood; HTML labels, ports and records are not.
"""

import html
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from agentbench.exceptions import RenderFailed

__all__ = ["DotCluster", "DotEdge", "DotGraph", "read_dot"]

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|^\#[^\n]*|/\*.*?\*/)
  | (?P<arrow>->|--)
  | (?P<sign>[{}\[\];,=:+])
  | "(?P<quoted>(?:[^"\\]|\\.)*)"
  | (?P<word>[^\W\d]\w*|-?(?:\.\d+|\d+(?:\.\d*)?))
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MAX_NODES = 20_000
_MAX_DEPTH = 50

Attributes = dict[str, str]


@dataclass
class DotEdge:
    """One edge with its attributes, defaults included.

    Attributes:
        source: Where its arrow comes from.
        target: Where its arrow points to.
        attributes: As written.
        back: Whether it is drawn against the ranks: written the other way round, with `dir=back`.
    """

    source: str
    target: str
    attributes: Attributes
    back: bool = False

    @property
    def tail(self) -> str:
        """Name of the cluster at whose border it begins, or empty."""
        return self.attributes.get("lhead" if self.back else "ltail", "")

    @property
    def head(self) -> str:
        """Name of the cluster at whose border it ends, or empty."""
        return self.attributes.get("ltail" if self.back else "lhead", "")


@dataclass
class DotCluster:
    """A subgraph whose name begins with `cluster`; `parent` is the index of the cluster around it."""

    name: str
    parent: int | None
    attributes: Attributes = field(default_factory=dict)


@dataclass
class DotGraph:
    """A parsed DOT graph.

    Attributes:
        attributes: Of the graph.
        nodes: Attributes by name, defaults included, in order of appearance.
        cluster_of: Index of the innermost cluster of a node.
        edges: In order.
        clusters: In order, outer before inner.
    """

    attributes: Attributes = field(default_factory=dict)
    nodes: dict[str, Attributes] = field(default_factory=dict)
    cluster_of: dict[str, int] = field(default_factory=dict)
    edges: list[DotEdge] = field(default_factory=list)
    clusters: list[DotCluster] = field(default_factory=list)


def read_dot(text: str) -> DotGraph:
    """Read DOT text.

    Raises:
        RenderFailed: It is not DOT, or uses what the built-in renderer does not know.
    """
    return _Parser(text).graph()


@dataclass
class _Scope:
    """The defaults inside one pair of braces."""

    node: Attributes
    edge: Attributes
    own: Attributes
    cluster: int | None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens = self._tokens()
        self.kind, self.value = "", ""
        self.depth = 0
        self.result = DotGraph()
        self._next()

    def graph(self) -> DotGraph:
        if self.kind == "word" and self.value.lower() == "strict":
            self._next()
        if not (self.kind == "word" and self.value.lower() in ("digraph", "graph")):
            self._fail("expected 'digraph'")
        self._next()
        if self.kind in ("word", "quoted"):
            self._next()
        self._block(_Scope({}, {}, self.result.attributes, None))
        return self.result

    def _tokens(self) -> Iterator[tuple[str, str]]:
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                self._fail(f"unexpected {self.text[self.at]!r}")
            self.at = match.end()
            kind = str(match.lastgroup)
            if kind != "skip":
                yield kind, match.group(kind)
        yield "end", ""

    def _next(self) -> None:
        self.kind, self.value = next(self.tokens, ("end", ""))

    def _take(self, sign: str) -> bool:
        if self.kind == "sign" and self.value == sign:
            self._next()
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            self._fail(f"expected {sign!r}")

    def _fail(self, reason: str) -> NoReturn:
        number = self.text.count("\n", 0, self.at) + 1
        line = self.text.splitlines()[number - 1 : number] or [""]
        raise RenderFailed("builtin", f"{reason} in line {number}", dot_line=line[0].strip()[:200])

    def _block(self, scope: _Scope) -> list[str]:
        self._need("{")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self._fail(f"more than {_MAX_DEPTH} levels of braces")
        members: list[str] = []
        while not self._take("}"):
            if self.kind == "end":
                self._fail("expected '}'")
            members += self._statement(scope)
            self._take(";")
        self.depth -= 1
        return members

    def _statement(self, scope: _Scope) -> list[str]:
        word = self.value.lower() if self.kind == "word" else ""
        if word in ("graph", "node", "edge"):
            self._next()
            target = {"graph": scope.own, "node": scope.node, "edge": scope.edge}[word]
            target.update(self._attribute_lists())
            return []
        ends = [self._operand(scope)]
        if isinstance(ends[0], str) and self._take("="):
            scope.own[ends[0]] = self._text()
            return []
        while self.kind == "arrow":
            self._next()
            ends.append(self._operand(scope))
        return self._connect(ends, scope)

    def _connect(self, ends: "list[str | list[str]]", scope: _Scope) -> list[str]:
        groups = [[end] if isinstance(end, str) else end for end in ends]
        attributes = self._attribute_lists()
        if len(ends) == 1 and isinstance(ends[0], str):
            self._node(ends[0], scope).update(attributes)
            return groups[0]
        for group in groups:
            for name in group:
                self._node(name, scope)
        attributes = scope.edge | attributes
        back = attributes.get("dir") == "back"
        for sources, targets in itertools.pairwise(groups):
            for ends_of in itertools.product(sources, targets):
                self.result.edges.append(DotEdge(*(ends_of[::-1] if back else ends_of), attributes, back))
        return [name for group in groups for name in group]

    def _node(self, name: str, scope: _Scope) -> Attributes:
        if name not in self.result.nodes:
            if len(self.result.nodes) >= _MAX_NODES:
                self._fail(f"more than {_MAX_NODES:,} nodes")
            self.result.nodes[name] = dict(scope.node)
        if scope.cluster is not None:
            self.result.cluster_of.setdefault(name, scope.cluster)
        return self.result.nodes[name]

    def _operand(self, scope: _Scope) -> "str | list[str]":
        if self.kind == "sign" and self.value == "{":
            return self._subgraph("", scope)
        if self.kind == "word" and self.value.lower() == "subgraph":
            self._next()
            name = self._text() if self.kind in ("word", "quoted") else ""
            return self._subgraph(name, scope)
        name = self._text()
        while self._take(":"):  # a port: the built-in layout has none
            self._text()
        return name

    def _subgraph(self, name: str, scope: _Scope) -> list[str]:
        inner = _Scope(dict(scope.node), dict(scope.edge), {}, scope.cluster)
        if name.startswith("cluster"):
            self.result.clusters.append(DotCluster(name, scope.cluster, inner.own))
            inner.cluster = len(self.result.clusters) - 1
        return self._block(inner)

    def _attribute_lists(self) -> Attributes:
        found: Attributes = {}
        while self._take("["):
            while not self._take("]"):
                name = self._text()
                found[name] = self._text() if self._take("=") else "true"
                _ = self._take(",") or self._take(";")
        return found

    def _text(self) -> str:
        if self.kind not in ("word", "quoted"):
            self._fail(f"expected a name, found {self.value or 'the end'!r}")
        text = _unescape(self.value) if self.kind == "quoted" else self.value
        self._next()
        return text


def _unescape(quoted: str) -> str:
    """Read escapes and entities the way Graphviz does in labels."""
    text = _ESCAPE.sub(lambda match: "\n" if match.group(1) in "nlr" else match.group(1), quoted)
    return html.unescape(text)
