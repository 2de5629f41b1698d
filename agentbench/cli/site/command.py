"""The command `agentbench site`: its options, and what it prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from agentbench._extras import require
from agentbench.cli.commands import Commands, parse_port
from agentbench.cli.lab import find_notebooks_folder
from agentbench.cli.site.build import Site, build_site
from agentbench.cli.site.server import make_server


def add_site(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    site = commands.add_parser(
        "site",
        help="build static files with which notebooks run in a browser, without installation",
        description="Builds a folder for any web host: JupyterLab with Python in the page, the notebooks as HTML, and "
        "the API pages. Files and modules that a notebook uses and that lie below its folder are included. What "
        "cannot work in a browser is reported.",
    )
    site.add_argument("out", type=Path, metavar="OUT", help="folder to write; an older site in it is replaced")
    site.add_argument(
        "notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="notebooks to include (default: the tour)"
    )
    site.add_argument(
        "--pyodide",
        metavar="URL|FOLDER",
        help="where the page gets Python from; with a folder, the site needs no network (default: the public address)",
    )
    site.add_argument("--port", type=parse_port, help="when it is built, serve the site on this port of this machine")
    site.set_defaults(command=_site)


def _site(options: argparse.Namespace) -> int:
    for package in ("jupyterlite_core", "jupyterlite_pyodide_kernel", "pdoc", "nbconvert"):
        require(package, extra="site", purpose="build a site")
    notebooks = options.notebooks or sorted(find_notebooks_folder().glob("*.ipynb"))
    # Before the build, which takes a minute: the port may be taken.
    server = None if options.port is None else make_server(options.out, options.port)
    print(_summary(build_site(options.out, notebooks, pyodide=options.pyodide)))
    if server is not None:
        print(f"Open http://127.0.0.1:{options.port}/ in a browser. Press Ctrl-C to stop.", flush=True)
        server.serve_forever()
    return 0


def _summary(site: Site) -> str:
    lines = [f"  {notebook}" for notebook in site.notebooks]
    lines += [f"  {file} (used by a notebook)" for file in site.files]
    title = f"{len(site.notebooks)} notebook{'s' * (len(site.notebooks) != 1)}"
    parts = [f"Built {site.folder} with {title}:", *lines]
    if site.problems:
        parts.append("What will not work in the browser:")
        parts += [f"  {problem}" for problem in site.problems]
    size = f"Size: {site.n_bytes / 1e6:.1f} MB, {site.n_bytes_of_python / 1e6:.1f} MB of it Python."
    return "\n".join([*parts, size])
