"""Reads traces of file-system operations made by Tracefs.

    import tracefs

    for event in tracefs.open("trace.log", where="op = write"):
        print(event["ts"], event["path"], event["size"])

    trace = tracefs.open("trace.log")
    print(trace.header["filter.text"], trace.time_span)
    frame = trace.to_pandas(columns=["ts", "op", "dur", "path"])
    trace.to_sqlite("trace.db")
    trace.by("op", sort="time", top=5)  # a table that notebooks draw
    trace.report().save("page.html")
    polars.DataFrame(trace)              # Arrow, without a copy
    duckdb.sql("FROM trace")

A trace is read again for each request; only what is asked for is decoded, in
batches, never the whole file at once. Names of fields are those of JSON Lines,
or the words of filters.

What is missing or damaged does not raise: see Trace.complete, Trace.counts and
Trace.findings after reading, or open with strict=True. IncompleteWarning tells.
"""

from ._library import (FORMAT_VERSION, KINDS, LIBRARY_VERSION, Cancelled,
                       DataError, SystemRefused, TraceError, UsageError)
from ._tables import Report, Table
from ._trace import (Finding, IncompleteWarning, Message, Process, Trace, fields,
                     open)

__all__ = [
    "Cancelled", "DataError", "FORMAT_VERSION", "Finding", "IncompleteWarning",
    "KINDS", "LIBRARY_VERSION", "Message", "Process", "Report", "SystemRefused",
    "Table", "Trace", "TraceError", "UsageError", "fields", "open",
]
