"""Tables and reports, as the commands make them: a number is the same in a
notebook, in a terminal and on the page."""

import html
import json
import os
import pathlib
import shutil
import subprocess
import warnings
from typing import Any, Dict, Iterator, List, Sequence, Union

from ._library import (DataError, IncompleteWarning, SystemRefused,
                       UsageError)

# The exit statuses of the commands.
_ERRORS = {1: DataError, 2: UsageError, 3: SystemRefused}


def _command(name: str) -> str:
    """Where it is: in the folder that TRACEFS_COMMANDS names, below the prefix
    of this module, or in PATH."""
    named = os.environ.get("TRACEFS_COMMANDS")
    folders = [named] if named else [
        str(up / "bin") for up in pathlib.Path(__file__).resolve().parents[:6]]
    found = shutil.which(name, path=os.pathsep.join(folders)) or (
        None if named else shutil.which(name))
    if found is None:
        raise SystemRefused(f"{name} is not found: install the commands, or "
                            "name their folder in TRACEFS_COMMANDS")
    return found


def run(name: str, words: Sequence[str], strict: bool) -> bytes:
    """What a command answers; its complaint is raised. If a trace is damaged,
    the answer is what could be read of it, and a warning says so; `strict`:
    that is raised, too."""
    done = subprocess.run([_command(name), *words], capture_output=True,
                          check=False, stdin=subprocess.DEVNULL)
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode == 1 and done.stdout and not strict:
        warnings.warn(said, IncompleteWarning, stacklevel=3)
    elif done.returncode != 0:
        raise _ERRORS.get(done.returncode, SystemRefused)(said)
    return done.stdout


class Table(Sequence[Dict[str, Any]]):
    """Rows of dictionaries, that notebooks draw. Times are in ns."""

    def __init__(self, rows: List[Dict[str, Any]]):
        self.rows = rows
        # A row lacks what is not known of it.
        self.columns: List[str] = list(
            dict.fromkeys(name for row in rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of it."""
        import pandas  # only where it is
        return pandas.DataFrame(self.rows, columns=self.columns)

    def __repr__(self) -> str:
        cells = [self.columns] + [
            [_shown(row.get(name)) for name in self.columns]
            for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)
                      ).rstrip() for line in cells)

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>"
                                    for cell in cells) + "</tr>"
        body = "".join(line("td", [_shown(row.get(name))
                                   for name in self.columns])
                       for row in self.rows)
        return (f"<table><thead>{line('th', self.columns)}</thead>"
                f"<tbody>{body}</tbody></table>")


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def table_of(lines: bytes) -> Table:
    return Table([json.loads(line) for line in lines.splitlines()])


class Report:
    """The page (docs/report.md); notebooks show it."""

    def __init__(self, page: str):
        self.html = page

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it to a file that any browser opens."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # Its own styles and scripts stay within it.
        return (f'<iframe srcdoc="{html.escape(self.html)}" width="100%" '
                'height="800" sandbox="allow-scripts"></iframe>')
