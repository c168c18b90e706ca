"""Columns of comma-separated values as arrays, with defaults for empty fields."""

import numpy as np

from tapewright.core.errors import InvalidArgumentError

from .lines import split_row

DTYPES = [np.dtype(n) for n in ("float32", "float64", "int32", "int64", "object")]


class Columns:
    """A reader of rows of comma-separated values.

    ``defaults`` has an array for each column: its default value, or an empty array if
    there is no default. ``selected`` are the column numbers in ascending order, or None
    for all.

    Raises:
        ValueError: For an invalid column.
    """

    def __init__(
        self, who, defaults, delimiter=",", quoted=True, na_value="", selected=None
    ):
        self._who, self._quoted = who, quoted
        self._delimiter = delimiter.encode()
        self._missing = {b"", na_value.encode()}
        if len(self._delimiter) != 1 or delimiter in '"\r\n':
            raise InvalidArgumentError(
                f"{who}: field_delim must be one character, got {delimiter!r}"
            )
        self.defaults, self.selected = defaults, selected
        for i, default in enumerate(defaults):
            if default.dtype not in DTYPES or default.size > 1 or default.ndim > 1:
                raise InvalidArgumentError(
                    f"{who}: record_defaults[{i}] must be one value, or none, of float32, "
                    f"float64, int32, int64 or string, got {default!r}"
                )
        if selected is not None and (
            len(selected) != len(defaults)
            or any([n < 0 for n in selected])
            or sorted(set(selected)) != list(selected)
        ):
            raise InvalidArgumentError(
                f"{who}: select_cols must be one number for each of {len(defaults)} "
                f"record_defaults, ascending from 0, got {selected!r}"
            )

    def values(self, row, number=0):
        """Return the value of each column in a row, which is bytes.

        Raises:
            InvalidArgumentError: If a row does not match the columns.
        """
        pairs = enumerate(zip(self._fields(row, number), self.defaults, strict=True))
        with np.errstate(over="ignore"):  # to infinity
            return [self._value(*pair, i, number) for i, pair in pairs]

    def _fields(self, row, number):
        fields = split_row(row, self._delimiter, self._quoted)
        if self.selected is not None:
            if self.selected and self.selected[-1] >= len(fields):
                raise self._wrong(
                    number, f"{len(fields)} fields, but no field {self.selected[-1]}"
                )
            fields = [fields[n] for n in self.selected]
        if len(fields) != len(self.defaults):
            raise self._wrong(number, f"{len(fields)} fields, not {len(self.defaults)}")
        return fields

    def _value(self, field, default, i, number):
        if field in self._missing:
            if not default.size:
                raise self._wrong(
                    number, f"no value in field {i}, which has no default"
                )
            return default.reshape(-1)[0]
        if default.dtype == object:
            return field
        try:
            return _number(field, default.dtype)
        except (ValueError, OverflowError):
            raise self._wrong(
                number,
                f"{field!r} in field {i}, which is not a valid {default.dtype.name}",
            ) from None

    def arrays(self, rows, shape):
        """Return the columns of rows as arrays of a shape.

        Raises:
            InvalidArgumentError: If a row, such as an empty one, does not match the
                columns.
        """
        if b"" in rows:
            raise self._wrong(rows.index(b""), f"0 fields, not {len(self.defaults)}")
        try:
            fields = [self._fields(row, number) for number, row in enumerate(rows)]
            columns = [None] * len(self.defaults)
            with np.errstate(over="ignore"):  # to infinity
                for numbers in self._alike():
                    # at once: a row may have a million columns
                    part = [row[n] for n in numbers for row in fields]
                    part = self._array(part, self.defaults[numbers[0]])
                    part = part.reshape(len(numbers), *shape)
                    for i, n in enumerate(numbers):
                        columns[n] = part[i, ...].copy()
            return columns
        except (ValueError, OverflowError):
            for number, row in enumerate(rows):
                self.values(row, number)  # finds the first that does not fit
            raise

    def _alike(self):
        """Return the column numbers with the same default."""
        objects = {id(default): default for default in self.defaults}  # often one
        keys = {key: (x.dtype, *x.reshape(-1).tolist()) for key, x in objects.items()}
        alike = {key: [] for key in keys.values()}
        of_object = {key: alike[of] for key, of in keys.items()}
        for n, default in enumerate(self.defaults):
            of_object[id(default)].append(n)
        return alike.values()

    def _array(self, fields, default):
        """Return the values of columns; may raise ``ValueError`` and ``OverflowError``."""
        if not self._missing.isdisjoint(fields):
            if not default.size:
                raise ValueError
            value = default.reshape(-1)[0]
            text = value if default.dtype == object else repr(value.item()).encode()
            fields = [text if field in self._missing else field for field in fields]
        if default.dtype == object:
            array = np.empty(len(fields), object)
            array[:] = fields
            return array
        if b"_" in b"".join(fields):
            raise ValueError
        if default.dtype.kind != "f":
            return np.array([*map(int, fields)], default.dtype)
        return np.array([*map(float, fields)]).astype(default.dtype)

    def _wrong(self, number, what):
        return InvalidArgumentError(f"{self._who}: row {number} has {what}")


def _number(field, dtype):
    if b"_" in field:
        raise ValueError
    if dtype.kind == "f":
        return dtype.type(float(field))
    value = int(field)
    if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise OverflowError
    return dtype.type(value)


def infer_default(fields):
    """Infer the default of a column with these fields: 0 of int32, int64, float32, or text.

    As in TensorFlow: float64 if a number needs it, text for "nan"; empty fields are
    skipped.
    """
    kinds = [np.dtype(name) for name in ("int32", "int64", "float32", "float64")]
    rank = 0
    for field in fields:
        while field and rank < len(kinds) and not _fits(field, kinds[rank]):
            rank += 1
    return np.zeros((), kinds[rank]) if rank < len(kinds) else np.array(b"", object)


def _fits(field, dtype):
    try:
        with np.errstate(over="ignore"):
            value = _number(field, dtype)
    except (ValueError, OverflowError):
        return False
    return dtype.kind != "f" or value < np.inf
