"""DuckDB for Node (scripts/setup), as somebody who asks questions of Parquet."""

import json
import os
import shutil
import subprocess

NODE = r"""
const { readFileSync, writeSync } = require('fs');
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const results = [];
  for (const statement of JSON.parse(readFileSync(process.argv[2]))) {
    try {
      const reader = await connection.runAndReadAll(statement);
      results.push({ names: reader.columnNames(), rows: reader.getRowsJson() });
    } catch (error) {
      results.push({ error: String(error) });
    }
  }
  const text = Buffer.from(JSON.stringify(results));
  for (let at = 0; at < text.length;) at += writeSync(1, text, at);
})();
"""


def missing(npm):
    """Why it cannot be asked, or None. `npm`: the folder with node_modules."""
    if not shutil.which("node"):
        return "node is not installed"
    if not os.path.isdir(os.path.join(npm or "", "node_modules", "@duckdb")):
        return "DuckDB is not installed (scripts/setup)"
    return None


def ask(npm, folder, *statements):
    """For each statement its rows as dictionaries, or the error as a text;
    `folder` is for its files."""
    script = os.path.join(folder, "query.js")
    if not os.path.exists(script):
        with open(script, "w", encoding="ascii") as file:
            file.write(NODE)
        os.symlink(os.path.join(os.path.abspath(npm), "node_modules"),
                   os.path.join(folder, "node_modules"))
    words = os.path.join(folder, "statements.json")
    with open(words, "w", encoding="utf-8") as file:
        json.dump(statements, file)
    done = subprocess.run(["node", script, words], capture_output=True,
                          check=False, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return [result["error"] if "error" in result else
            [dict(zip(result["names"], row)) for row in result["rows"]]
            for result in json.loads(done.stdout)]
