"""Every example in a docstring of the product runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import prme_ray

MODULES = ["prme_ray", *(module.name for module in pkgutil.walk_packages(prme_ray.__path__, "prme_ray."))]


def examples(name):
    return [
        test for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)) if test.examples
    ]


@pytest.mark.parametrize("name", [name for name in MODULES if examples(name)])
def test_examples_run(name):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples(name):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_the_faces_of_the_product_have_an_example():
    for name in ("prme_ray.memory", "prme_ray.async_memory", "prme_ray.model.settings"):
        assert examples(name)


def test_the_real_encoder_finds_meaning_without_shared_words(tmp_path):
    texts = ["My cat was operated on at the animal hospital.", "Bread wants three eggs.", "We flew to Lisbon."]
    with prme_ray.Memory.open(tmp_path / "store") as memory:
        memory.store_many(texts, owner="dana")
        answer = memory.retrieve("Which pet needed surgery by a veterinarian?", owner="dana")
        assert answer.results[0].content == texts[0]
        assert answer.results[0].semantic_relevance > answer.results[1].semantic_relevance + 0.2
