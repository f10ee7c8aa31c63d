"""A real, fast, deterministic encoder that writes down every text it is given."""

import hashlib
import os
from pathlib import Path

import numpy as np

DIMENSION = 32


def vector_of(text):
    """Return a unit vector drawn from the text's hash: different texts are far apart."""
    digest = hashlib.sha512(text.encode()).digest()
    drawn = np.frombuffer(digest, np.uint8)[:DIMENSION].astype(np.float32) - 127.5
    return drawn / np.linalg.norm(drawn)


class HashEncoder:
    """Embeds by hash.

    Args:
        book: File that gets a line, in hexadecimal, for every text before it is embedded; ``None``
            writes nothing down.
    """

    model_name = "hash"
    model_version = "1"
    dimension = DIMENSION

    def __init__(self, book=None):
        self._book = None if book is None else Path(book)

    def embed(self, texts):
        if self._book is not None:
            append(self._book, "".join(f"{text.encode().hex()}\n" for text in texts))
        return np.array([vector_of(text) for text in texts])


def texts_in(book):
    """Return the texts written down, in order; a line cut short by a kill is left out."""
    if not Path(book).exists():
        return []
    return [bytes.fromhex(line).decode() for line in Path(book).read_text().split("\n")[:-1]]


def append(path, lines):
    """Append in one system call: lines of threads do not mix, and a kill cannot take back a line."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, lines.encode())
    finally:
        os.close(descriptor)
