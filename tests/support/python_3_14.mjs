// Runs a Python program by Pyodide (Python 3.14 for WebAssembly): node python_3_14.mjs MODULES PROGRAM FOLDER...
// MODULES is the folder node_modules that has pyodide; each FOLDER is put on sys.path.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, program, ...folders] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${modules}/pyodide/pyodide.mjs`));
const python = await loadPyodide({ stdout: (line) => console.log(line), stderr: () => {} });
for (const [number, folder] of folders.entries()) {
  python.FS.mkdirTree(`/path${number}`);
  python.mountNodeFS(`/path${number}`, folder);
  python.runPython(`import sys; sys.path.insert(${number}, "/path${number}")`);
}
try {
  python.runPython(fs.readFileSync(program, "utf8"));
} catch (error) {
  // Uncaught, it would be shown with a megabyte of Pyodide's source.
  console.error(error.message);
  process.exit(1);
}
