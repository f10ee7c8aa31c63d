"""Encoders to give to ``Memory.open``: the built-in one, and any sentence-transformers model.

Nothing is loaded before an encoder is used; the second needs the extra ``torch``.
"""

from __future__ import annotations

from prme_ray.model.protocols import EmbeddingProvider
from prme_ray.model.settings import EncoderSettings
from storage.encoder.onnx_minilm import OnnxMiniLM
from storage.encoder.sentence import SentenceTransformerEncoder

__all__ = ["SentenceTransformerEncoder", "built_in_encoder"]


def built_in_encoder(settings: EncoderSettings | None = None) -> EmbeddingProvider:
    """Return the built-in ONNX encoder, which a store uses when it is given none; loads nothing yet.

    Raises:
        InvalidSettings: the model file cannot be read.
    """
    return OnnxMiniLM(settings or EncoderSettings())
