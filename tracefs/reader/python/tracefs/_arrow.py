"""Batches of columns, read out of Arrow's C structures or handed on in them."""

from __future__ import annotations

import ctypes
from itertools import compress
from operator import itemgetter
from typing import Any, List, Optional, Sequence, Tuple

from ._library import ArrowArray, ArrowArrayStream, ArrowSchema

# Letters of Arrow's formats to those of memoryview.cast and numpy.
_CODES = {"l": "q", "L": "Q", "i": "i", "I": "I", "s": "h", "S": "H",
          "c": "b", "C": "B", "tsn:": "q"}
# Of each byte its bits, lowest first, a byte each; and those that are not set.
_BITS = [bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256)]
_CLEAR = [bytes(1 - bit for bit in bits) for bits in _BITS]


class Batch:
    """Some rows; what views show of its memory holds it."""

    def __init__(self, array: ArrowArray, columns: Sequence["ColumnType"]):
        self._array = array
        self.columns = columns
        self.rows = array.length

    def __del__(self) -> None:
        if self._array.release:
            self._array.release(ctypes.byref(self._array))

    def _buffer(self, child: ArrowArray, number: int, size: int) -> Any:
        address = child.buffers[number]
        if not address or size == 0:
            return b""
        view = (ctypes.c_char * size).from_address(address)
        view._owner = self  # holds the batch as long as any view lives
        return view

    def valid(self, number: int) -> Optional[Any]:
        """Bits, lowest first; None where no row is absent."""
        child = self._array.children[number].contents
        if child.null_count == 0:
            return None
        return self._buffer(child, 0, (self.rows + 7) // 8)

    def data(self, number: int) -> Any:
        """The memory of the column: see ColumnType.code."""
        child = self._array.children[number].contents
        kind = self.columns[number]
        size = ((self.rows + 7) // 8 if kind.code == "?" else
                self.rows * kind.width)
        return self._buffer(child, 1, size)

    def texts(self, number: int) -> List[bytes]:
        """What the numbers of a dictionary stand for."""
        texts = self._array.children[number].contents.dictionary.contents
        count = texts.length
        offsets = memoryview(self._buffer(texts, 1, 4 * (count + 1))).cast(
            "B").cast("i").tolist()
        whole = bytes(self._buffer(texts, 2, offsets[-1]))
        return [whole[a:b] for a, b in zip(offsets, offsets[1:])]

    def values(self, number: int, decode: bool = True) -> List[Any]:
        """One value a row, None where it is absent. Texts are str with the
        bytes that are no UTF-8 as os.fsdecode has them, or bytes."""
        kind = self.columns[number]
        rows = self.rows
        absent = self._array.children[number].contents.null_count
        if absent == rows:
            return [None] * rows
        if kind.code == "?":
            return list(map((None, True).__getitem__,
                            _bits(self.data(number), rows, _BITS)))
        values: List[Any] = memoryview(self.data(number)).cast("B").cast(
            kind.code).tolist()
        if kind.is_dictionary:
            texts: List[Any] = self.texts(number)
            if decode:
                texts = [text.decode("utf-8", "surrogateescape")
                         for text in texts]
            values = _picked(texts, values)
        if absent == 0:
            return values
        valid = self.valid(number)
        # Whichever are fewer are put among the others.
        if 2 * absent <= rows:
            for row in compress(range(rows), _bits(valid, rows, _CLEAR)):
                values[row] = None
            return values
        sparse: List[Any] = [None] * rows
        for row in compress(range(rows), _bits(valid, rows, _BITS)):
            sparse[row] = values[row]
        return sparse


def _picked(texts: List[Any], numbers: List[int]) -> List[Any]:
    """The text of each number: one call, not one for each of them."""
    if len(numbers) == 1:  # of one itemgetter makes no tuple
        return [texts[numbers[0]]]
    return list(itemgetter(*numbers)(texts))


def _bits(buffer: Any, rows: int, table: Sequence[bytes]) -> bytes:
    """One byte a row."""
    return b"".join(map(table.__getitem__, bytes(buffer)))[:rows]


class ColumnType:
    """What a column holds."""

    def __init__(self, schema: ArrowSchema):
        self.name: str = schema.name.decode()
        self.format: str = schema.format.decode()
        self.is_dictionary = bool(schema.dictionary)
        self.is_time = self.format.startswith("tsn")
        # As memoryview.cast and numpy name it; "?" is a bit a row.
        self.code = "?" if self.format == "b" else _CODES[self.format]
        self.width = {"q": 8, "Q": 8, "i": 4, "I": 4, "h": 2, "H": 2}.get(
            self.code, 1)


class Stream:
    """Batches of a reader; owns the stream and the structures in it."""

    def __init__(self, stream: ArrowArrayStream):
        self._stream = stream
        schema = ArrowSchema()
        if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
            raise MemoryError
        self.columns: Tuple[ColumnType, ...] = tuple(
            ColumnType(schema.children[i].contents)
            for i in range(schema.n_children))
        schema.release(ctypes.byref(schema))

    def __del__(self) -> None:
        if self._stream.release:
            self._stream.release(ctypes.byref(self._stream))

    def next(self) -> Tuple[int, Optional[Batch]]:
        """An errno and a batch; none at the end."""
        array = ArrowArray()
        error = self._stream.get_next(ctypes.byref(self._stream),
                                      ctypes.byref(array))
        if error != 0 or not array.release:
            return error, None
        return 0, Batch(array, self.columns)


# --- Capsules: how Python libraries hand streams to each other.

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                               ctypes.c_void_p]
# The capsule by its address: it is about to go, and must not be counted.
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p,
                                ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api))
_NAME = b"arrow_array_stream"
_held: dict = {}  # streams in capsules, by address


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    address = _pointer_of(capsule, _NAME)
    stream = _held.pop(address, None)
    # The consumer has moved it out, and set its release to null.
    if stream is not None and stream.release:
        stream.release(ctypes.byref(stream))


def capsule_of(stream: ArrowArrayStream) -> Any:
    address = ctypes.addressof(stream)
    _held[address] = stream
    return _api.PyCapsule_New(
        address, _NAME, ctypes.cast(_destroy, ctypes.c_void_p))


