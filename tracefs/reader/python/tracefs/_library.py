"""libtracefs-reader by ctypes: what tracefs_reader.h declares, and no more."""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_uint, c_uint32, c_uint64, c_void_p)

END, ITEM, WAIT = 0, 1, 2
BAD_DATA, BAD_USE, SYSTEM, CANCELLED = -1, -2, -3, -4
FOLLOW, MEMORY_BYTES, THREADS, FILE_ORDER, BATCH_ROWS, NO_OPERATIONS = (
    1, 2, 3, 4, 5, 6)
TEXT = 3

# By number.
KINDS = ("unknown_message", "unknown_argument", "bad_argument", "bad_message",
         "bad_definition", "damaged_block", "missing_block", "cut_file",
         "duplicate_block", "unknown_block", "loss", "unordered",
         "still_written", "note")


class TraceError(Exception):
    """A trace could not be read; the text says which, and what to do."""


class DataError(TraceError, ValueError):
    """It is not a trace, or has what `strict` forbids."""


class UsageError(TraceError, ValueError):
    """An option, a filter or a name of a field is wrong."""


class SystemRefused(TraceError, OSError):
    """A file, a key or memory could not be had."""


class Cancelled(TraceError):
    """Somebody called cancel()."""


class IncompleteWarning(UserWarning):
    """Something that was recorded could not be read, or was lost before."""


ERRORS = {BAD_DATA: DataError, BAD_USE: UsageError, SYSTEM: SystemRefused,
          CANCELLED: Cancelled}


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p),
    ("flags", c_int64), ("n_children", c_int64),
    ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)),
    ("release", CFUNCTYPE(None, POINTER(ArrowSchema))),
    ("private_data", c_void_p)]


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64),
    ("n_buffers", c_int64), ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(ArrowArray))),
    ("dictionary", POINTER(ArrowArray)),
    ("release", CFUNCTYPE(None, POINTER(ArrowArray))),
    ("private_data", c_void_p)]


class ArrowArrayStream(ctypes.Structure):
    pass


ArrowArrayStream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(ArrowArrayStream),
                             POINTER(ArrowSchema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(ArrowArrayStream),
                           POINTER(ArrowArray))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(ArrowArrayStream))),
    ("release", CFUNCTYPE(None, POINTER(ArrowArrayStream))),
    ("private_data", c_void_p)]

class Argument(ctypes.Structure):
    _fields_ = [("id", c_uint32), ("type", c_uint32), ("name", c_char_p),
                ("value", c_void_p), ("size", c_size_t), ("is_number", c_int),
                ("number", c_uint64), ("reserved", c_uint64 * 2)]


class Message(ctypes.Structure):
    _fields_ = [("id", c_uint32), ("reserved0", c_uint32), ("name", c_char_p),
                ("trace", c_size_t), ("block", c_uint64),
                ("offset", c_uint64), ("bytes", c_void_p),
                ("size", c_size_t), ("reserved", c_uint64 * 4)]


class Text(ctypes.Structure):
    _fields_ = [("text", c_void_p), ("size", c_size_t)]


class Pipe(ctypes.Structure):
    _fields_ = [("fd", c_uint32), ("access", c_uint32), ("inode", c_uint64)]


class Process(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("flags", c_uint32), ("time", c_uint64),
                ("trace", c_size_t), ("tracer", c_uint32),
                ("source", c_uint32), ("pid", c_uint32), ("tid", c_uint32),
                ("ppid", c_uint32), ("ns_pid", c_uint32), ("key", c_uint64),
                ("child_key", c_uint64), ("child_pid", c_uint32),
                ("child_tid", c_uint32), ("child_ns_pid", c_uint32),
                ("exit_code", c_int32), ("exit_signal", c_int32),
                ("cpu", c_int32), ("clone_flags", c_int64),
                ("program", Text), ("exe", Text), ("cwd", Text),
                ("argv", Text), ("environment", Text), ("comm", Text),
                ("cgroup", Text), ("pipes", POINTER(Pipe)),
                ("pipe_count", c_size_t), ("reserved", c_uint64 * 8)]


ReportFunction = CFUNCTYPE(None, c_void_p, c_void_p)
TextFunction = CFUNCTYPE(c_int, c_void_p, c_uint32, c_void_p, c_size_t,
                         POINTER(c_void_p), POINTER(c_size_t))

_SIGNATURES = {
    "options_new": (c_void_p,),
    "options_free": (None, c_void_p),
    "options_message": (c_char_p, c_void_p),
    "options_add_path": (c_int, c_void_p, c_char_p),
    "options_add_fd": (c_int, c_void_p, c_int, c_char_p),
    "options_add_memory": (c_int, c_void_p, c_void_p, c_size_t, c_char_p),
    "options_add_key": (c_int, c_void_p, c_char_p),
    "options_set_filter": (c_int, c_void_p, c_char_p),
    "options_set_range": (c_int, c_void_p, c_uint64, c_uint64),
    "options_set": (c_int, c_void_p, c_int, c_uint64),
    "options_set_strict": (c_int, c_void_p, c_uint64),
    "options_on_report": (c_int, c_void_p, ReportFunction, c_void_p),
    "options_on_text": (c_int, c_void_p, TextFunction, c_void_p),
    "report_kind": (c_int, c_void_p),
    "report_trace": (c_size_t, c_void_p),
    "report_offset": (c_uint64, c_void_p),
    "report_text": (c_char_p, c_void_p),
    "reader_open": (c_void_p, c_void_p),
    "reader_close": (None, c_void_p),
    "reader_status": (c_int, c_void_p),
    "reader_message": (c_char_p, c_void_p),
    "reader_count": (c_uint64, c_void_p, c_int),
    "reader_complete": (c_int, c_void_p),
    "reader_cancel": (None, c_void_p),
    "reader_progress": (None, c_void_p, POINTER(c_uint64), POINTER(c_uint64)),
    "reader_stop": (None, c_void_p),
    "reader_traces": (c_size_t, c_void_p),
    "reader_trace_name": (c_char_p, c_void_p, c_size_t),
    "reader_property_at": (c_int, c_void_p, c_size_t, c_size_t,
                           POINTER(c_void_p), POINTER(c_size_t),
                           POINTER(c_void_p), POINTER(c_size_t)),
    "reader_format": (c_int, c_void_p, c_size_t, POINTER(c_uint),
                      POINTER(c_uint)),
    "reader_time_span": (c_int, c_void_p, POINTER(c_uint64),
                         POINTER(c_uint64)),
    "reader_next_message": (c_int, c_void_p, POINTER(Message)),
    "reader_next_argument": (c_int, c_void_p, POINTER(c_size_t),
                             POINTER(Argument)),
    "reader_next_process": (c_int, c_void_p, POINTER(Process)),
    "reader_columns": (c_int, c_void_p, c_char_p, POINTER(ArrowArrayStream)),
    "reader_version": (c_char_p,),
    "reader_format_version": (c_uint,),
    "field_by_name": (c_uint32, c_char_p),
    "field_name": (c_char_p, c_uint32),
    "field_type": (c_int, c_uint32),
    "field_after": (c_uint32, c_uint32),
}


def _load() -> ctypes.CDLL:
    name = "libtracefs-reader.so.1"
    named = os.environ.get("TRACEFS_READER_LIBRARY")
    if named:
        return ctypes.CDLL(named)
    # Installed below the same prefix, wherever that is.
    for folder in pathlib.Path(__file__).resolve().parents[:6]:
        for found in sorted(folder.glob(f"lib*/{name}")) + sorted(
                folder.glob(f"lib*/*/{name}")):
            return ctypes.CDLL(str(found))
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(
            f"{name} is not found: install libtracefs-reader, or name it in "
            "TRACEFS_READER_LIBRARY") from error


class _Calls:
    """The functions, without tracefs_ before their names."""

    def __init__(self) -> None:
        library = _load()
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(library, "tracefs_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)


lib = _Calls()
LIBRARY_VERSION: str = lib.reader_version().decode()
FORMAT_VERSION: int = lib.reader_format_version()
