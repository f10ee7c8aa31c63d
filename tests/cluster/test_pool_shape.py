"""What the embedding pool asks Ray for."""

from __future__ import annotations

import pytest

from prme_ray.deploying import pool_shape
from prme_ray.encoders import SentenceTransformerEncoder, built_in_encoder
from prme_ray.model.settings import ClusterSettings, EncoderSettings


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 1.0), ("cuda:1", 1.0), ("cpu", 0.0), (None, 0.0)])
def test_an_encoder_on_a_gpu_asks_for_one(device: str | None, gpus: float) -> None:
    encoder = SentenceTransformerEncoder("a-model", device=device)
    assert pool_shape(ClusterSettings(), encoder, compiled=False).embedder_gpus == gpus


def test_settings_win_over_the_encoder() -> None:
    encoder = SentenceTransformerEncoder("a-model", device="cuda")
    assert pool_shape(ClusterSettings(embedder_gpus=0.25), encoder, compiled=False).embedder_gpus == 0.25


def test_every_group_of_compiled_graphs_has_an_embedder() -> None:
    encoder = built_in_encoder(EncoderSettings())
    plain = ClusterSettings(groups=4)
    shape = pool_shape(plain, encoder, compiled=True)
    assert (shape.embedders_min, shape.embedders_max) == (4, 4)
    assert pool_shape(plain, encoder, compiled=False) == plain
