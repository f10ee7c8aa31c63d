"""Logs as older versions left them: their own tables, with rows that their writers could have written."""

from __future__ import annotations

from tests.storage.log_values import NOW, vector

_VERSION_2 = """
CREATE TABLE meta (key VARCHAR NOT NULL, value TEXT NOT NULL, PRIMARY KEY (key));
CREATE TABLE owners (owner_no NUMBER NOT NULL, tenant TEXT NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (owner_no),
    UNIQUE (tenant, owner));
CREATE TABLE generations (generation NUMBER NOT NULL, identity TEXT NOT NULL, model_name TEXT NOT NULL,
    dimension INTEGER NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (generation), UNIQUE (identity));
CREATE TABLE entries (seq NUMBER NOT NULL, owner_no NUMBER NOT NULL REFERENCES owners (owner_no),
    owner_seq NUMBER NOT NULL, kind VARCHAR NOT NULL, subject TEXT NOT NULL, payload TEXT NOT NULL,
    recorded_at BIGINT NOT NULL, PRIMARY KEY (seq), UNIQUE (subject, owner_no, kind));
CREATE INDEX entries_by_owner ON entries (owner_no, seq);
CREATE TABLE vectors (seq NUMBER NOT NULL REFERENCES entries (seq),
    generation NUMBER NOT NULL REFERENCES generations (generation), vector BINARY NOT NULL,
    PRIMARY KEY (seq, generation));
CREATE TABLE operations (op_seq NUMBER NOT NULL, owner_no NUMBER NOT NULL REFERENCES owners (owner_no),
    op_type VARCHAR NOT NULL, target TEXT NOT NULL, payload BINARY NOT NULL, recorded_at BIGINT NOT NULL,
    PRIMARY KEY (op_seq));
CREATE INDEX operations_by_owner ON operations (owner_no, op_seq);
CREATE INDEX operations_by_target ON operations (target, owner_no, op_seq)
"""

OWNERS = [(1, "acme", "anna"), (2, "acme", "ben"), (3, "acme", "carol")]
ENTRIES = [(seq, 1 + seq % 2, (seq + 1) // 2, "event", f"e{seq}", "{}", NOW) for seq in range(1, 7)]
VECTORS = [(seq, 1, vector(seq, 1)) for seq in (2, 4)]
OPERATIONS = [
    (number, 1 + number % 2, "RETRIEVAL_REQUEST", f"r{number}", bytes([number % 256]) * number, NOW)
    for number in range(1, 451)
]


def statements(*, postgres: bool) -> list[str]:
    """Return the tables of version 2."""
    number, binary = ("BIGINT", "BYTEA") if postgres else ("INTEGER", "BLOB")
    return _VERSION_2.replace("NUMBER", number).replace("BINARY", binary).split(";")


def rows() -> dict[str, list[tuple]]:
    """Return what is in them, by table in an order in which they can be filled."""
    return {
        "meta": [("schema_version", "2"), ("writer_epoch", "4")],
        "owners": OWNERS,
        "generations": [(1, "id-1", "mini", 2, NOW)],
        "entries": ENTRIES,
        "vectors": VECTORS,
        "operations": OPERATIONS,
    }
