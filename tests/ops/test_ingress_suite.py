"""The benchmark of the ways in; Ray Serve's own take half a minute each, so the default run asks uvicorn."""

import pytest

from jobs.benchmark.ingress import WAYS, run_ingress


def test_an_unknown_way_names_those_there_are():
    with pytest.raises(ValueError, match=r"ways=\['teleport'\] are not known: choose from uvicorn alone, proxy"):
        run_ingress(requests=1, ways=["teleport"])


def measured(way):
    found = run_ingress(requests=16, ways=[way])["ways"][way]
    for size in ("small", "large"):
        assert 0 < found[size]["p50_ms"] <= found[size]["p95_ms"]
        assert found[size]["per_second"] > 0


def test_small_and_large_answers_are_measured():
    measured("uvicorn alone")


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS)[1:])
def test_every_way_through_ray_serve_is_measured(way):
    measured(way)
