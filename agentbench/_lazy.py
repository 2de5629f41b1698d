"""Public names of a package, each imported at its first use.

A package lists its names in a table, by the modules that define them, and takes its attributes from a `Door`:

    _door = Door(globals(), '''
        workflows.run.run: StreamingRun=WorkflowRun WorkflowRun
        workflows.run.workflow: Workflow
    ''')
    __all__, __getattr__, __dir__ = _door.names, _door.load, _door.listing

Modules are relative to the package; `NAME=ORIGINAL` gives a name of a module a second name. After a change of a table,
`python -m tests.tools.write_stub` writes `__init__.pyi` beside it, which editors and type checkers read.
"""

import importlib
import sys

_ROOT = "agentbench"


class Door:
    """The public names of one package.

    Args:
        namespace: The globals of the package; names are kept there once they are loaded.
        table: Modules and the names that they define: `module: name name module: name`.
        parts: Submodules that are loaded when they are used, separated by spaces.
    """

    def __init__(self, namespace: dict[str, object], table: str, *, parts: str = "") -> None:
        self.package = str(namespace["__name__"])
        self.parts = tuple(parts.split())
        #: Public name -> the module that defines it and its name there.
        self.homes: dict[str, tuple[str, str]] = {}
        self._namespace = namespace
        module = ""
        for word in table.split():
            if word.endswith(":"):
                module = word[:-1] if word.startswith(f"{_ROOT}.") else f"{self.package}.{word[:-1]}"
            else:
                name, _, original = word.partition("=")
                self.homes[name] = module, original or name
        self.names = sorted(self.homes)

    def load(self, name: str) -> object:
        """Import a name: the `__getattr__` of the package."""
        if name in self.homes:
            home, original = self.homes[name]
            module = importlib.import_module(home)
            value = importlib.import_module("agentbench._arguments").name_arguments(getattr(module, original))
            if original not in vars(module):  # the module computes it anew each time
                return value
        elif name in self.parts:
            value = importlib.import_module(f"{self.package}.{name}")
        else:
            caller = sys._getframe(1).f_code.co_name  # noqa: SLF001 - documented
            raise self._missing(name, importing=caller == "_handle_fromlist")
        self._namespace[name] = value
        return value

    def listing(self) -> list[str]:
        """List the public names and parts: the `__dir__` of the package."""
        return sorted({*(name for name in self._namespace if name.startswith("__")), *self.names, *self.parts})

    def _missing(self, name: str, *, importing: bool) -> Exception:
        """Return the error for a name that the package lacks, which says where it is or which name is close.

        `from package import NAME` replaces an `AttributeError` by a message of its own, so it gets an `ImportError`.
        """
        message = f"module {self.package!r} has no attribute {name!r}"
        if name.startswith("_") or (importing and self._has_module(name)):
            return AttributeError(message)
        hint = self._hint(name)
        if not hint:
            return AttributeError(message)
        if importing:
            message = f"cannot import name {name!r} from {self.package!r}. {hint}"
            return ImportError(message, name=self.package, path=str(self._namespace["__file__"]))
        return AttributeError(f"{message}. {hint}", name=name)  # with its `obj`, too, Python would add a second guess

    def _has_module(self, name: str) -> bool:
        finder = importlib.import_module("importlib.machinery").PathFinder
        return finder.find_spec(f"{self.package}.{name}", self._namespace["__path__"]) is not None

    def _hint(self, name: str) -> str:
        packages = find_packages(name)
        if packages:
            return "Import it from its package: " + " or ".join(f"from {each} import {name}" for each in packages)
        everywhere = {known for package in public_packages() for known in importlib.import_module(package).__all__}
        matches = importlib.import_module("difflib").get_close_matches
        for known in ({*self.names, *self.parts}, everywhere):
            for match in matches(name, sorted(known), n=1):
                home = self.package if match in self.names or match in self.parts else find_packages(match)[0]
                return f"Did you mean {match!r}? from {home} import {match}"
        return ""


def public_packages() -> list[str]:
    """List the packages that users import from; the root is the first."""
    return [_ROOT, *(f"{_ROOT}.{part}" for part in importlib.import_module(_ROOT)._door.parts)]  # noqa: SLF001


def find_packages(name: str) -> list[str]:
    """List the packages that have a public name."""
    return [package for package in public_packages() if name in importlib.import_module(package).__all__]
