"""Traces, opened by name, and what can be had of them."""

from __future__ import annotations

import ctypes
import datetime
import errno
import os
import sqlite3
import time
import warnings
from typing import (Any, Callable, Dict, Iterable, Iterator, List, NamedTuple,
                    Optional, Sequence, Tuple, Union)

from . import _library
from ._arrow import Batch, Stream, capsule_of
from ._library import (ERRORS, KINDS, ArrowArrayStream, IncompleteWarning,
                       TraceError, lib)
from ._tables import Report, Table, table_of
from ._tables import run as run_command

Path = Union[str, bytes, "os.PathLike[str]", int]
Time = Union[int, float, datetime.datetime]
# Gets the name of a field and a text; another text, or None to leave it.
TextHook = Callable[[str, bytes], Optional[bytes]]

_FOLLOW_PAUSE_S = 0.05
_MOST_FINDINGS = 1000
_SIGNED = (1,)  # types of arguments: FORMAT.md section 5
_forever: List[Any] = []  # what the library may call until the end


class Finding(NamedTuple):
    """What was found wrong, lost or unknown."""
    kind: str  # one of KINDS
    trace: str  # the name of the trace
    offset: int  # bytes of it
    text: str


class Message(NamedTuple):
    """A message of the format: FORMAT.md section 4."""
    name: str  # "MSG_FORK"; "MSG_999" if the trace does not describe it
    id: int
    block: int  # sequence number of its block
    arguments: Dict[str, Union[int, bytes, List[bytes]]]  # by name; lists where
    #             an argument repeats


class Process(NamedTuple):
    """What happened to a process. None: not known, or not of this kind."""
    kind: str  # "fork", "exec", "exit", "comm", "pipes", "running"
    ts: int  # ns since 1970
    pid: int
    tid: Optional[int]  # the thread that did it
    ppid: Optional[int]
    ns_pid: Optional[int]  # in its own pid namespace
    key: Optional[int]  # the process for good, when pids are used again
    child_pid: Optional[int]  # of a fork
    child_tid: Optional[int]
    child_ns_pid: Optional[int]
    child_key: Optional[int]
    clone_flags: Optional[int]
    exit_code: Optional[int]
    exit_signal: Optional[int]
    core_dumped: bool
    program: Optional[str]  # what was to run, as it was given
    exe: Optional[str]  # what runs: of a script its interpreter
    cwd: Optional[str]
    argv: Optional[List[str]]
    environment: Optional[Dict[str, str]]
    comm: Optional[str]
    cgroup: Optional[str]
    pipes: List[Tuple[int, str, int]]  # descriptor, "r", "w" or "rw", inode
    cpu: Optional[int]
    source: Optional[str]  # "ptrace", "connector" or "perf"
    late: bool  # some was read when it could have gone on already
    incomplete: bool  # something could not be read, or was too long
    tracer: int
    trace: int  # its number among those that were opened


_PROCESS_KINDS = ("", "fork", "exec", "exit", "comm", "pipes", "running")
_PROCESS_SOURCES = (None, "ptrace", "connector", "perf")
_PIPE_ACCESS = ("r", "w", "rw")


def fields() -> Dict[str, type]:
    """The names of all fields that columns can have, and the type of each."""
    found: Dict[str, type] = {}
    number = 0
    while number := lib.field_after(number):
        is_text = (lib.field_type(number) == _library.TEXT
                   or lib.field_name(number) in (b"op", b"errno", b"type"))
        found[lib.field_name(number).decode()] = str if is_text else int
    return found


def open(  # pylint: disable=redefined-builtin
        *traces: Path, where: Optional[str] = None,
        keys: Union[str, Iterable[str]] = (), start: Optional[Time] = None,
        end: Optional[Time] = None, strict: Union[bool, Iterable[str]] = False,
        follow: bool = False, threads: int = 0,
        text: Optional[TextHook] = None) -> "Trace":
    """Opens traces; several are merged by time.

    traces: files, folders, descriptors, or "-" for standard input.
    where: an expression in the language of capture filters.
    keys: of encrypted traces: a path, "env:NAME" or "keyring:NAME", or several.
    start, end: only what began from start on and before end: ns since 1970, a
        float in seconds, or a datetime (without a zone: local time; of pandas,
        as in frames: UTC).
    strict: True, or names of KINDS: the first such finding raises DataError.
    follow: goes on as a trace that is still being written grows.
    threads: that decode columns; 0: one a processor.
    text: gets every text before it is handed out, and may replace it.
    """
    return Trace(traces, where=where, keys=keys, start=start, end=end,
                 strict=strict, follow=follow, threads=threads, text=text)


class Trace:
    """One or more traces. Used by one thread at a time."""

    def __init__(self, traces: Sequence[Path], **options: Any):
        if not traces:
            raise _library.UsageError("there is nothing to open: name a trace")
        self._traces = tuple(traces)
        self._options = options
        self._reader: Optional[_Reader] = None  # that was used last
        self._header: Optional[Dict[str, str]] = None
        # Fails at once for what is not there or no trace.
        self._open().close()

    # --- What it says of itself.

    @property
    def header(self) -> Dict[str, str]:
        """What the first trace says of itself: FORMAT.md section 5."""
        if self._header is None:
            with self._open() as reader:
                self._header = reader.header(0)
        return self._header

    @property
    def time_span(self) -> Optional[Tuple[int, int]]:
        """When the first and the last event began, in ns since 1970, without
        reading what lies between; None where that is not known."""
        with self._open() as reader:
            return reader.time_span()

    def filter(self, where: str) -> "Trace":
        """The same traces, and of them only what matches that, too."""
        already = self._options.get("where")
        options = dict(self._options)
        # Either may end with a comment.
        options["where"] = (f"( {already}\n) AND ( {where}\n)" if already
                            else where)
        return Trace(self._traces, **options)

    # --- What reading them last has found.

    @property
    def complete(self) -> Optional[bool]:
        """Whether all that was recorded was read; None before anything was."""
        return self._reader.complete if self._reader else None

    @property
    def counts(self) -> Dict[str, int]:
        """How often each of KINDS was found."""
        return self._reader.counts if self._reader else {}

    @property
    def losses(self) -> int:
        """Operations that the tracer itself did not keep."""
        return self.counts.get("loss", 0)

    @property
    def findings(self) -> List[Finding]:
        """The first of what was found."""
        return self._reader.findings if self._reader else []

    @property
    def progress(self) -> Tuple[int, int]:
        """Bytes read, and in all (0: not known). Any thread may ask."""
        return self._reader.progress() if self._reader else (0, 0)

    def cancel(self) -> None:
        """Ends reading with Cancelled. Any thread may ask."""
        if self._reader:
            self._reader.cancel()

    # --- Events.

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return self.events()

    def events(self, columns: Optional[Sequence[str]] = None,
               ordered: bool = True) -> Iterator[Dict[str, Any]]:
        """A dictionary an event; absent values are None. Texts are str, with
        the bytes of names that are no UTF-8 as os.fsdecode has them."""
        for batch in self.batches(columns, ordered, raw=True):
            names = [_plain(column.name) for column in batch.columns]
            values = [batch.values(i) for i in range(len(names))]
            for row in zip(*values):
                yield dict(zip(names, row))

    def batches(self, columns: Optional[Sequence[str]] = None,
                ordered: bool = True, raw: bool = False) -> Iterator[Batch]:
        """Columns of many events at a time. ordered: by time; else in the order
        of the file, which is faster. raw: texts as their bytes."""
        if raw:
            columns = _raw_names(columns)
        reader = self._open(ordered=ordered)
        self._reader = reader
        try:
            stream = Stream(reader.stream(columns))
            while True:
                code, batch = stream.next()
                if batch is not None:
                    yield batch
                elif code == errno.EAGAIN:
                    time.sleep(_FOLLOW_PAUSE_S)
                elif code != 0:
                    reader.raise_error()
                else:
                    break
        finally:
            reader.end()
        self._warn()

    def messages(self, operations: bool = False) -> Iterator[Message]:
        """What stands in the trace, as it stands there: with `operations` all
        of it, without only what tells of something else (processes, losses,
        what was counted, totals). In the order of the file."""
        reader = self._open(messages=1 if operations else 2)
        self._reader = reader
        try:
            yield from reader.messages()
        finally:
            reader.end()

    def processes(self) -> Iterator[Process]:
        """What happened to processes, in order of time, where the trace has it
        (STR_PROCESS): within start and end; `where` is for events."""
        reader = self._open()
        self._reader = reader
        try:
            yield from reader.processes()
        finally:
            reader.end()
        self._warn()

    def columns(self, columns: Optional[Sequence[str]] = None,
                ordered: bool = True) -> Dict[str, List[Any]]:
        """All events as a list for each column."""
        all_of: Dict[str, List[Any]] = {}
        for batch in self.batches(columns, ordered, raw=True):
            for i, column in enumerate(batch.columns):
                all_of.setdefault(_plain(column.name), []).extend(
                    batch.values(i))
        if not all_of:
            all_of = {name: [] for name in columns or ()}
        return all_of

    def to_pandas(self, columns: Optional[Sequence[str]] = None,
                  ordered: bool = True) -> Any:
        """A pandas.DataFrame: `ts` as datetime64[ns] in UTC, texts as
        categories, numbers that some events lack as nullable integers."""
        from ._pandas import frame_of  # only where pandas is
        return frame_of(self.batches(columns, ordered))

    def to_sqlite(self, database: Union[str, "os.PathLike[str]",
                                        sqlite3.Connection],
                  table: str = "operations",
                  columns: Optional[Sequence[str]] = None,
                  ordered: bool = True) -> int:
        """Adds all events to a table, which is made where there is none, and
        returns how many. Texts that are no UTF-8 are stored as BLOBs, numbers
        from 2^63 on as negative ones with the same bits."""
        mine = not isinstance(database, sqlite3.Connection)
        connection = (sqlite3.connect(os.fspath(database)) if mine
                      else database)
        try:
            with connection:
                return _fill_table(connection, table,
                                   self.batches(columns, ordered, raw=True))
        finally:
            if mine:
                connection.close()

    def by(self, keys: str = "op", *, values: Optional[str] = None,
           sort: Optional[str] = None, top: Optional[int] = None,
           every: Optional[str] = None) -> Table:
        """Operations grouped by keys ("op", "cname,dir(1)"): the table of
        `tracefs-dump --by`, with the same words, all rows unless `top` says
        how many. Times and durations are in ns. Of a damaged trace, `strict`
        raises DataError, whichever kinds it names: the command tells none."""
        words = ["--by", keys, "--format", "jsonl",
                 "--top", "all" if top is None else str(top)]
        for name, value in (("values", values), ("sort", sort),
                            ("every", every)):
            if value is not None:
                words += ["--" + name, value]
        return table_of(run_command("tracefs-dump", words + self._words(),
                                    bool(self._options.get("strict"))))

    def report(self) -> Report:
        """The page of `tracefs-report`: Report.save() writes it."""
        page = run_command("tracefs-report",
                           ["--format", "html"] + self._words(),
                           bool(self._options.get("strict")))
        return Report(page.decode("utf-8", "replace"))

    def _words(self) -> List[str]:
        """The same traces, and of them the same, for a command."""
        options = self._options
        if options.get("text") or options.get("follow"):
            raise _library.UsageError(
                "tables and reports are made by commands, which take neither "
                "`text` nor `follow`")
        words: List[str] = []
        keys = options.get("keys") or ()
        for key in (keys,) if isinstance(keys, str) else keys:
            words += ["--key", os.fspath(key)]
        if options.get("where"):
            words += ["--filter", options["where"]]
        for name, moment in (("--from", options.get("start")),
                             ("--to", options.get("end"))):
            if moment is not None:
                words += [name, f"@{_ns(moment)}"]
        for trace in self._traces:
            if isinstance(trace, int):
                raise _library.UsageError(
                    "tables and reports are made of files, not descriptors")
            name = os.fsdecode(trace)
            words.append("./" + name if name.startswith("-") else name)
        return words

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Arrow's PyCapsule interface: polars, duckdb, pyarrow take it."""
        del requested_schema  # a wish, which need not be granted
        reader = self._open(reports=False)
        self._reader = reader
        if self._options.get("text"):
            # The consumer of the stream may hold it longer than all of this.
            _forever.append(reader)
        return capsule_of(reader.stream(None))

    def _open(self, **more: Any) -> "_Reader":
        return _Reader(self._traces, **more, **self._options)

    def _warn(self) -> None:
        if self.complete or self._reader is None or not self._reader.at_end:
            return
        told = "; ".join(f"{finding.trace}: {finding.text}"
                         for finding in self.findings[:3])
        warnings.warn(told or "the trace is not complete", IncompleteWarning,
                      stacklevel=3)


class _Reader:
    """A reader of the library, with what belongs to it."""

    def __init__(self, traces: Sequence[Path], where: Optional[str] = None,
                 keys: Union[str, Iterable[str]] = (),
                 start: Optional[Time] = None, end: Optional[Time] = None,
                 strict: Union[bool, Iterable[str]] = False,
                 follow: bool = False, threads: int = 0,
                 text: Optional[TextHook] = None, ordered: bool = True,
                 reports: bool = True, messages: int = 0):
        self.findings: List[Finding] = []
        self.counts: Dict[str, int] = {}
        self.complete: Optional[bool] = None
        self.at_end = False
        self._text = text
        self._text_held: Any = None
        self._raised: Optional[BaseException] = None
        self._handle = None
        # Kept as long as the library may call them.
        self._on_report = _library.ReportFunction(self._report)
        self._on_text = _library.TextFunction(self._replace)
        options = lib.options_new()
        if not options:
            raise MemoryError
        try:
            def check(code: int) -> None:
                if code < 0:
                    raise ERRORS[code](
                        lib.options_message(options).decode("utf-8",
                                                            "replace"))
            for trace in traces:
                if isinstance(trace, int):
                    check(lib.options_add_fd(options, trace,
                                             f"descriptor {trace}".encode()))
                else:
                    check(lib.options_add_path(options, os.fsencode(trace)))
            for key in [keys] if isinstance(keys, str) else keys:
                check(lib.options_add_key(options, os.fsencode(key)))
            if where:
                check(lib.options_set_filter(options, os.fsencode(where)))
            check(lib.options_set_range(
                options, 0 if start is None else _ns(start),
                2**64 - 1 if end is None else _ns(end)))
            check(lib.options_set(options, _library.FOLLOW, int(follow)))
            check(lib.options_set(options, _library.THREADS, threads))
            check(lib.options_set(options, _library.FILE_ORDER,
                                  int(not ordered)))
            if messages == 2:
                check(lib.options_set(options, _library.NO_OPERATIONS, 1))
            check(lib.options_set_strict(options, _kinds(strict)))
            if reports:
                check(lib.options_on_report(options, self._on_report, None))
            if text is not None:
                check(lib.options_on_text(options, self._on_text, None))
            self._handle = lib.reader_open(options)
        finally:
            lib.options_free(options)
        if not self._handle:
            raise MemoryError
        if lib.reader_status(self._handle) < 0:
            try:
                self.raise_error()
            finally:
                self.close()

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle:
            lib.reader_close(handle)

    def end(self) -> None:
        """Keeps what was found, and closes."""
        if not self._handle:
            return
        self.at_end = lib.reader_status(self._handle) == _library.END
        self.complete = bool(lib.reader_complete(self._handle))
        self.counts = {kind: lib.reader_count(self._handle, number)
                       for number, kind in enumerate(KINDS)}
        self.close()

    def raise_error(self) -> None:
        if self._raised is not None:
            raise self._raised
        code = lib.reader_status(self._handle)
        message = lib.reader_message(self._handle).decode("utf-8", "replace")
        raise ERRORS.get(code, TraceError)(message)

    def cancel(self) -> None:
        if self._handle:
            lib.reader_cancel(self._handle)

    def progress(self) -> Tuple[int, int]:
        done, total = ctypes.c_uint64(), ctypes.c_uint64()
        if self._handle:
            lib.reader_progress(self._handle, ctypes.byref(done),
                                ctypes.byref(total))
        return done.value, total.value

    def header(self, trace: int) -> Dict[str, str]:
        found: Dict[str, str] = {}
        key, value = ctypes.c_void_p(), ctypes.c_void_p()
        key_size, size = ctypes.c_size_t(), ctypes.c_size_t()
        number = 0
        while True:
            code = lib.reader_property_at(
                self._handle, trace, number, ctypes.byref(key),
                ctypes.byref(key_size), ctypes.byref(value),
                ctypes.byref(size))
            if code < 0:
                self.raise_error()
            if code != _library.ITEM:
                return found
            name = ctypes.string_at(key, key_size.value)
            text = ctypes.string_at(value, size.value) if size.value else b""
            found[os.fsdecode(name)] = os.fsdecode(text)
            number += 1

    def time_span(self) -> Optional[Tuple[int, int]]:
        first, last = ctypes.c_uint64(), ctypes.c_uint64()
        code = lib.reader_time_span(self._handle, ctypes.byref(first),
                                    ctypes.byref(last))
        if code < 0:
            self.raise_error()
        return ((first.value, last.value) if code == _library.ITEM else None)

    def messages(self) -> Iterator[Message]:
        message, argument = _library.Message(), _library.Argument()
        while True:
            code = lib.reader_next_message(self._handle, ctypes.byref(message))
            if code == _library.WAIT:
                time.sleep(_FOLLOW_PAUSE_S)
                continue
            if code < 0:
                self.raise_error()
            if code == _library.END:
                return
            found: Dict[str, Any] = {}
            at = ctypes.c_size_t()
            while lib.reader_next_argument(
                    self._handle, ctypes.byref(at),
                    ctypes.byref(argument)) == _library.ITEM:
                value: Any = argument.number
                if not argument.is_number:
                    value = (ctypes.string_at(argument.value, argument.size)
                             if argument.size else b"")
                elif argument.type in _SIGNED and value >= 2**63:
                    value -= 2**64
                name = argument.name.decode("utf-8", "replace")
                if name in found:
                    if not isinstance(found[name], list):
                        found[name] = [found[name]]
                    found[name].append(value)
                else:
                    found[name] = value
            yield Message(message.name.decode("utf-8", "replace"), message.id,
                          message.block, found)

    def processes(self) -> Iterator[Process]:
        found = _library.Process()
        while True:
            code = lib.reader_next_process(self._handle, ctypes.byref(found))
            if code == _library.WAIT:
                time.sleep(_FOLLOW_PAUSE_S)
                continue
            if code < 0:
                self.raise_error()
            if code == _library.END:
                return
            yield _process(found)

    def stream(self, columns: Optional[Sequence[str]]) -> ArrowArrayStream:
        stream = ArrowArrayStream()
        names = None if columns is None else ",".join(columns).encode()
        if lib.reader_columns(self._handle, names,
                              ctypes.byref(stream)) != _library.ITEM:
            self.raise_error()
        stream._owner = self  # its functions are called by the library
        return stream

    def _report(self, _context: Any, report: int) -> None:
        if len(self.findings) >= _MOST_FINDINGS:
            return
        kind = lib.report_kind(report)
        name = (lib.reader_trace_name(self._handle, lib.report_trace(report))
                if self._handle else None) or b""
        self.findings.append(Finding(
            KINDS[kind] if kind < len(KINDS) else "note",
            name.decode("utf-8", "replace"), lib.report_offset(report),
            lib.report_text(report).decode("utf-8", "replace")))

    def _replace(self, _context: Any, field: int, text: int, size: int,
                 new_text: Any, new_size: Any) -> int:
        try:
            other = self._text(lib.field_name(field).decode(),  # type: ignore
                               ctypes.string_at(text, size) if size else b"")
        except BaseException as error:  # pylint: disable=broad-except
            # None may pass through the library: it is raised afterwards.
            self._raised = self._raised or error
            self.cancel()
            return 0
        if other is None:
            return 0
        self._text_held = ctypes.create_string_buffer(other, len(other) or 1)
        new_text[0] = ctypes.addressof(self._text_held)
        new_size[0] = len(other)
        return 1


def _process(p: Any) -> Process:
    def text(value: Any) -> Optional[str]:
        return (os.fsdecode(ctypes.string_at(value.text, value.size))
                if value.size else None)

    def texts(value: Any) -> Optional[List[str]]:
        if not value.size:
            return None
        listed = ctypes.string_at(value.text, value.size)
        return [os.fsdecode(one) for one in
                (listed[:-1] if listed.endswith(b"\0") else listed).split(b"\0")]

    def known(number: int) -> Optional[int]:
        return None if number < 0 else number

    environment = texts(p.environment)
    return Process(
        kind=(_PROCESS_KINDS[p.kind] if p.kind < len(_PROCESS_KINDS)
              else str(p.kind)),
        ts=p.time, pid=p.pid, tid=p.tid or None, ppid=p.ppid or None,
        ns_pid=p.ns_pid or None, key=p.key or None,
        child_pid=p.child_pid or None, child_tid=p.child_tid or None,
        child_ns_pid=p.child_ns_pid or None, child_key=p.child_key or None,
        clone_flags=known(p.clone_flags), exit_code=known(p.exit_code),
        exit_signal=known(p.exit_signal), core_dumped=bool(p.flags & 4),
        program=text(p.program), exe=text(p.exe), cwd=text(p.cwd),
        argv=texts(p.argv),
        environment=(None if environment is None else
                     {name: value for name, _, value in
                      (one.partition("=") for one in environment)}),
        comm=text(p.comm), cgroup=text(p.cgroup),
        pipes=[(p.pipes[i].fd, _PIPE_ACCESS[min(p.pipes[i].access, 2)],
                p.pipes[i].inode) for i in range(p.pipe_count)],
        cpu=known(p.cpu),
        source=(_PROCESS_SOURCES[p.source]
                if p.source < len(_PROCESS_SOURCES) else str(p.source)),
        late=bool(p.flags & 1), incomplete=bool(p.flags & 2), tracer=p.tracer,
        trace=p.trace)


def _plain(name: str) -> str:
    return name[:-4] if name.endswith("_raw") else name


def _raw_names(columns: Optional[Sequence[str]]) -> List[str]:
    if columns is None:
        columns = COMMON
    return [name + "_raw" if lib.field_type(lib.field_by_name(
        name.encode())) == _library.TEXT else name for name in columns]


# What JSON Lines has in the first place, and so columns.
COMMON = ("ts", "dur", "op", "tid", "pid", "ppid", "uid", "gid", "comm", "path",
          "path2", "ino", "fh", "flags", "mode", "offset", "size", "result",
          "errno", "inferred", "tracer")


def _ns(moment: Time) -> int:
    if hasattr(moment, "nanosecond"):
        return int(moment.value)  # a pandas.Timestamp
    if isinstance(moment, datetime.datetime):
        since = moment.astimezone(datetime.timezone.utc) - datetime.datetime(
            1970, 1, 1, tzinfo=datetime.timezone.utc)
        return ((since.days * 86400 + since.seconds) * 10**9
                + since.microseconds * 1000)
    return round(moment * 10**9) if isinstance(moment, float) else int(moment)


def _kinds(strict: Union[bool, Iterable[str]]) -> int:
    if isinstance(strict, bool):
        # All but what is no fault.
        return (1 << KINDS.index("still_written")) - 1 if strict else 0
    try:
        return sum({1 << KINDS.index(kind) for kind in strict})
    except ValueError:
        raise _library.UsageError(
            "strict: there are " + ", ".join(KINDS)) from None


def _fill_table(connection: sqlite3.Connection, table: str,
                batches: Iterator[Batch]) -> int:
    quoted = '"' + table.replace('"', '""') + '"'
    rows = 0
    insert = ""
    for batch in batches:
        if not insert:
            names = ['"' + _plain(column.name) + '"' +
                     (" TEXT" if column.is_dictionary else " INTEGER")
                     for column in batch.columns]
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {quoted} ({', '.join(names)})")
            insert = (f"INSERT INTO {quoted} VALUES "
                      f"({', '.join('?' * len(names))})")
        values = [_storable(batch, i) for i in range(len(batch.columns))]
        connection.executemany(insert, zip(*values))
        rows += batch.rows
    return rows


def _storable(batch: Batch, number: int) -> List[Any]:
    column = batch.columns[number]
    values = batch.values(number, decode=False)
    if column.code == "Q":
        return [value if value is None or value < 2**63 else value - 2**64
                for value in values]
    if not column.is_dictionary:
        return values
    known: Dict[Optional[bytes], Any] = {None: None}
    for text in set(values) - {None}:
        try:
            known[text] = text.decode()
        except UnicodeDecodeError:
            known[text] = text
    return list(map(known.__getitem__, values))
