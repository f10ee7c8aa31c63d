"""Owners, a time and vectors for the tests of the log."""

import struct

from storage.records import OwnerKey

ANNA = OwnerKey("acme", "anna")
BEN = OwnerKey("acme", "ben")
DIMENSION = 2
NOW = 1_777_888_999_000_001


def vector(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)
