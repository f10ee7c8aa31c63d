"""What rows of a projection have in common: filters, markers, each entry once, the schema that is expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["NO_OWNER", "bounds", "difference", "distinct", "marker", "owned"]

NO_OWNER = 0
"""Owner of markers; the log numbers owners from 1."""


def bounds(upto: int | None, owner_no: int | None) -> list[str]:
    """Return the conditions of a filter; numbers only, so nothing a caller names is part of it."""
    return [
        f"{name} {sign} {int(value)}"
        for name, sign, value in (("owner", "=", owner_no), ("seq", "<=", upto))
        if value is not None
    ]


def owned(owner_no: int, upto: int | None) -> str:
    """Return the filter for an owner's rows up to a sequence number."""
    return " AND ".join(bounds(upto, owner_no))


def distinct(found: pa.Table) -> pa.Table:
    """Return the rows in order of ``seq``, each entry once."""
    _, first = np.unique(found["seq"].to_numpy(), return_index=True)
    return found.take(pa.array(first))


def marker(seq: int, schema: pa.Schema) -> pa.Table:
    """Return the one row that says that everything up to ``seq`` has been applied."""
    row = {field.name: _blank(field) for field in schema} | {"seq": seq, "owner": NO_OWNER}
    return pa.Table.from_pylist([row], schema=schema)


def _blank(field: pa.Field) -> Any:
    if field.nullable:
        return None
    if pa.types.is_string(field.type):
        return ""
    return False if pa.types.is_boolean(field.type) else 0


def difference(found: pa.Schema, expected: pa.Schema) -> str | None:
    """Return what is wrong with the columns of a table, or ``None``."""
    for field in expected:
        index = found.get_field_index(field.name)
        kind = "nothing" if index < 0 else found.field(index).type
        if kind != field.type:
            return f"column {field.name} holds {kind} where {field.type} is expected"
    return None
