"""A store keeps the vectors of one encoder: another one can read it without vectors and adds nothing."""

import pytest

from prme_ray.model.errors import EncoderMismatch
from tests.memory.tools import OWNER, WordEncoder

OTHERS = {"same length": WordEncoder("2"), "other length": WordEncoder("2", dimension=48)}


@pytest.fixture(params=OTHERS)
def other(request, memory, opened):
    """Open the store of one encoder with another one."""

    def open_other(**options):
        return opened(encoder=OTHERS[request.param], **options)

    memory.store("Oscar is a cat.", owner=OWNER)
    memory.close()
    return open_other


@pytest.mark.parametrize("read_only", [False, True])
def test_questions_are_answered_without_vectors_and_say_so(other, read_only):
    memory = other(read_only=read_only)
    answer = memory.retrieve("cat", owner=OWNER, min_score=0.5, scope="personal")
    assert answer.metadata.backend_failures == {"VECTOR": "embedding_mismatch"}
    assert answer.metadata.embedding_mismatch
    assert answer.metadata.min_score_skipped
    assert [(c.content, c.paths) for c in answer.results] == [("Oscar is a cat.", ["LEXICAL"])]
    health = memory.health()
    assert health.mismatched_encoder is not None
    assert health.healthy


def test_the_policy_may_refuse_such_questions(other):
    memory = other(settings={"embedding_mismatch_policy": "reject"})
    with pytest.raises(EncoderMismatch, match="reembed"):
        memory.retrieve("cat", owner=OWNER, limit=3)
    memory.close()
    memory = other()
    (listed,) = memory.list_retrievals(owner=OWNER).retrievals
    record = memory.get_retrieval(listed.request_id, owner=OWNER).record
    assert (record["error"], record["embedding_mismatch"]) == ("EMBEDDING_VERSION_MISMATCH", True)
    assert (record["query"], record["result_limit"], record["scores"], record["excluded"]) == ("cat", 3, {}, {})


def test_no_verb_adds_to_such_a_store_whichever_shard_an_owner_is_in(other, opened):
    memory = other()
    for owner in (OWNER, *(f"new owner {number}" for number in range(8))):
        for call in (
            lambda owner=owner: memory.store("text", owner=owner),
            lambda owner=owner: memory.store_many(["text"], owner=owner),
            lambda owner=owner: memory.store_node("text", owner=owner, node_type="fact"),
        ):
            with pytest.raises(EncoderMismatch):
                call()
    memory.close()
    memory = opened()
    assert memory.retrieve("cat", owner=OWNER).metadata.backend_failures == {}
    assert memory.store("Oscar is black.", owner=OWNER)
    assert memory.health().mismatched_encoder is None


def test_a_reader_notices_the_writers_first_vectors(opened):
    memory = opened()
    reader = opened(encoder=OTHERS["other length"], read_only=True)
    assert reader.retrieve("cat", owner=OWNER).metadata.outcome == "unknown_owner"
    memory.store("Oscar is a cat.", owner=OWNER)
    answer = reader.retrieve("cat", owner=OWNER)
    assert answer.metadata.backend_failures == {"VECTOR": "embedding_mismatch"}
    assert len(answer.results) == 1


def test_the_encoder_it_was_made_with_still_fits(memory, opened):
    memory.store("Oscar is a cat.", owner=OWNER)
    memory.close()
    answer = opened().retrieve("cat", owner=OWNER)
    assert answer.results[0].paths == ["VECTOR", "LEXICAL"]
    assert not answer.metadata.embedding_mismatch
