"""A scope asked for alone is scored with its own settings, and the answer says with which."""

import pytest

from tests.memory.tools import OWNER

WEIGHTED = {"fusion": "weighted"}


@pytest.fixture
def memory(opened):
    memory = opened(settings={"scope_scoring": {"project": WEIGHTED}})
    for number, scope in enumerate(("personal", "project", "project", "agent")):
        memory.store(f"cat number {number}", owner=OWNER, scope=scope)
    return memory


def fused(answer):
    assert len(answer.results) > 0
    (found,) = {candidate.lineage.rank_fusion is not None for candidate in answer.results}
    return found


@pytest.mark.parametrize(
    ("scope", "by_rank"),
    [
        (None, True),
        ("personal", True),
        (["project", "personal"], True),
        ("project", False),
        (["project", "project"], False),
    ],
)
def test_only_a_scope_asked_for_alone_has_its_own_formula(memory, scope, by_rank):
    assert fused(memory.retrieve("cat", owner=OWNER, scope=scope)) is by_rank


def test_the_answer_names_the_scoring_that_was_used(memory):
    def version(**options):
        return memory.retrieve("cat", owner=OWNER, **options).metadata.scoring_config_version

    assert version(scope="project") == version(weights=WEIGHTED) != version()
    assert version(scope="personal") == version()


def test_the_weights_of_a_request_win(memory):
    assert fused(memory.retrieve("cat", owner=OWNER, scope="project", weights={"rrf_k": 10}))


def test_multipliers_follow_the_formula_of_the_scope(memory):
    answer = memory.retrieve("cat", owner=OWNER, scope="project", ranking_multipliers={"semantic": 2.0})
    assert not fused(answer)


def test_the_fingerprint_shows_the_scopes(memory, opened, tmp_path):
    plain = opened(tmp_path / "other")
    fingerprints = {made.retrieve("cat", owner=OWNER).metadata.settings_fingerprint for made in (memory, plain)}
    assert len(fingerprints) == 2
