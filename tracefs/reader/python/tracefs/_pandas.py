"""Batches as a pandas.DataFrame. Imported only where pandas is asked for."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

import numpy
import pandas

from ._arrow import Batch, ColumnType


class _Column:
    """One column, batch by batch."""

    def __init__(self, kind: ColumnType):
        self.kind = kind
        self._pieces: List[Any] = []
        self._absent: List[Any] = []
        self._any_absent = False
        self._numbers: Dict[bytes, int] = {}  # of texts, in all batches

    def add(self, batch: Batch, number: int) -> None:
        valid = batch.valid(number)
        if valid is None:
            absent = numpy.zeros(batch.rows, dtype=bool)
        else:
            absent = ~_bits(valid, batch.rows)
            self._any_absent = True
        self._absent.append(absent)
        data = batch.data(number)
        if self.kind.code == "?":
            self._pieces.append(_bits(data, batch.rows))
            return
        piece = numpy.frombuffer(data, dtype=self.kind.code)
        if not self.kind.is_dictionary:
            # The memory of the batch itself, if there is only one.
            self._pieces.append(piece)
            return
        known = self._numbers
        mapping = numpy.fromiter(
            (known.setdefault(text, len(known))
             for text in batch.texts(number)), dtype="int32")
        codes = (mapping[piece] if len(mapping)
                 else numpy.zeros(batch.rows, dtype="int32"))
        codes[absent] = -1
        self._pieces.append(codes)

    def array(self) -> Any:
        data = (self._pieces[0] if len(self._pieces) == 1
                else numpy.concatenate(self._pieces))
        if self.kind.code == "?":
            return data
        absent = (numpy.concatenate(self._absent) if self._any_absent else None)
        if self.kind.is_dictionary:
            texts = [text.decode("utf-8", "surrogateescape")
                     for text in self._numbers]
            return pandas.Categorical.from_codes(data, pandas.Index(
                texts, dtype=object))
        if self.kind.is_time:
            data = data.view("datetime64[ns]")
            if absent is not None:
                data = data.copy()
                data[absent] = numpy.datetime64("NaT")
            return data
        if absent is None:
            return data
        return pandas.arrays.IntegerArray(numpy.array(data), absent)


def _bits(buffer: Any, rows: int) -> Any:
    return numpy.unpackbits(numpy.frombuffer(buffer, dtype="uint8"),
                            bitorder="little")[:rows].astype(bool)


def frame_of(batches: Iterator[Batch]) -> "pandas.DataFrame":
    columns: List[_Column] = []
    for batch in batches:
        if not columns:
            columns = [_Column(kind) for kind in batch.columns]
        for i, column in enumerate(columns):
            column.add(batch, i)
    return pandas.DataFrame(
        {column.kind.name: column.array() for column in columns}, copy=False)
