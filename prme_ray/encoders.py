"""The encoder that a store uses when it is given none."""

from __future__ import annotations

from prme_ray.model.protocols import EmbeddingProvider
from prme_ray.model.settings import EncoderSettings
from storage.encoder.onnx_minilm import OnnxMiniLM

__all__ = ["built_in_encoder"]


def built_in_encoder(settings: EncoderSettings | None = None) -> EmbeddingProvider:
    """Return the built-in ONNX encoder; nothing is loaded before the first text.

    Raises:
        InvalidSettings: the model file cannot be read.
    """
    return OnnxMiniLM(settings or EncoderSettings())
