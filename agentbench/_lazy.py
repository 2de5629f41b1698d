"""Lazy imports: the public names of a package, each imported on first use.

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
_OBJECTS: dict[str, object] = {}
"""A cache of the objects at public paths."""
_PATHS: dict[type, str] = {}
"""A cache of the public paths of classes."""


class Door:
    """The public names of one package.

    Args:
        namespace: The globals of the package, in which loaded names are stored.
        table: The modules and the names that they define: `module: name name module: name`.
        parts: The submodules that are loaded on first use, separated by spaces.
        stored: A table of internal classes that are stored in checkpoints. They can be loaded by `PACKAGE.NAME` like
            public names, but are not listed.
        instead: What to use instead of names that other libraries have and this one does not, as sentences.
    """

    def __init__(
        self,
        namespace: dict[str, object],
        table: str,
        *,
        parts: str = "",
        stored: str = "",
        instead: dict[str, str] | None = None,
    ) -> None:
        self.package = str(namespace["__name__"])
        self.parts = tuple(parts.split())
        self.instead = instead or {}
        self._namespace = namespace
        self.homes = self._read(table)
        """The module that defines a public name, and its name there."""
        self.names = sorted(self.homes)
        self.all_homes = {**self._read(stored), **self.homes}
        """The same for all names that can be loaded, including the stored ones."""

    def _read(self, table: str) -> dict[str, tuple[str, str]]:
        homes = {}
        module = ""
        for word in table.split():
            if word.endswith(":"):
                module = word[:-1] if word.startswith(f"{_ROOT}.") else f"{self.package}.{word[:-1]}"
            else:
                name, _, original = word.partition("=")
                homes[name] = module, original or name
        return homes

    def load(self, name: str) -> object:
        """Import a name: the `__getattr__` of the package."""
        if name in self.all_homes:
            home, original = self.all_homes[name]
            module = importlib.import_module(home)
            value = getattr(module, original)
            if name in self.homes:
                value = importlib.import_module("agentbench._arguments").name_arguments(value)
            if original not in vars(module):  # a module-level __getattr__ computes the value each time
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
        """Return the error for a missing name. It says where the name is defined, or suggests a similar name.

        `from package import NAME` replaces the text of an `AttributeError`, so it gets an `ImportError`.
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
        # With `obj` set as well, Python would add a second suggestion.
        return AttributeError(f"{message}. {hint}", name=name)

    def _has_module(self, name: str) -> bool:
        finder = importlib.import_module("importlib.machinery").PathFinder
        return finder.find_spec(f"{self.package}.{name}", self._namespace["__path__"]) is not None

    def _hint(self, name: str) -> str:
        if name in self.instead:
            return self.instead[name]
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
    """List the packages from which users import; the root comes first."""
    return [_ROOT, *(f"{_ROOT}.{part}" for part in importlib.import_module(_ROOT)._door.parts)]  # noqa: SLF001


def find_packages(name: str) -> list[str]:
    """List the packages that export a name."""
    return [package for package in public_packages() if name in importlib.import_module(package).__all__]


def public_path(cls: type) -> str | None:
    """Return the path by which a class of the library is stored: its first public one, such as `agentbench.Message`.

    Returns `None` for other classes, which are stored under the module that defines them.
    """
    if cls in _PATHS:
        return _PATHS[cls]
    module, name = cls.__module__, cls.__qualname__
    if not module.startswith(f"{_ROOT}."):
        return None
    package = ".".join(module.split(".", 2)[:2])
    for each in dict.fromkeys((_ROOT, package, *public_packages())):
        path = f"{each}.{name}"
        if find_public(path) is cls:
            _PATHS[cls] = path
            return path
    return None


def find_public(path: str) -> object:
    """Return the object at a public path of the library, whose module is imported; `None` if there is none."""
    if path in _OBJECTS:
        return _OBJECTS[path]
    package, _, name = path.rpartition(".")
    if package not in public_packages():
        return None
    module = importlib.import_module(package)
    door = getattr(module, "_door", None)
    home, original = (package, name) if door is None else door.all_homes.get(name, ("", ""))
    if not home or (door is None and name not in module.__all__):
        return None
    found = _OBJECTS[path] = getattr(importlib.import_module(home), original)  # not wrapped by `name_arguments`
    return found
