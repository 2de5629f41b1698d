// Runs pytest in Pyodide: node run_tests.mjs PYODIDE PACKAGES REPOSITORY REPORTS ARGUMENT...
// The repository and the packages are mounted, so that nothing is copied; temporary files are in memory.
import { pathToFileURL } from "node:url";

const [pyodideFolder, packages, repository, reports, ...args] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodideFolder}/pyodide.mjs`));
const pyodide = await loadPyodide({ indexURL: pyodideFolder });
for (const [name, folder] of Object.entries({ packages, repository, reports })) {
  pyodide.FS.mkdirTree(`/${name}`);
  pyodide.mountNodeFS(`/${name}`, folder);
}
pyodide.globals.set("arguments", pyodide.toPy(args));
const code = await pyodide.runPythonAsync(`
import os, sys

sys.dont_write_bytecode = True
sys.path[:0] = ["/repository", "/packages"]
os.environ["CI"] = "1"  # always the same examples
os.chdir("/repository")

import asyncio, pytest

# Where tests raise these in tasks, the loop goes on, as it does under other Pythons; by default Node.js would end.
asyncio.get_running_loop()._keyboard_interrupt_handler = lambda: None
asyncio.get_running_loop()._system_exit_handler = lambda code: None

int(pytest.main(arguments))
`);
// Timers of the tests, such as those of timeouts that were not reached, would keep this process alive.
process.exit(code);
