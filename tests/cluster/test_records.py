"""Past retrievals and feedback from a process that only reaches the cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prme_ray import Memory
from prme_ray.model.errors import ConflictingOperation, FeedbackRejected, NotFound
from prme_ray.model.feedback import Citations
from tests.cluster.corpus import OWNERS, make

ASKED = "6f1d8e7b-d38e-420a-bde5-0343aa5915c4"
MINE = "aea5b4c9-0f3d-4d0e-9d2a-3f6a51c0d8e2"
OWNER = OWNERS[1]


def test_a_connected_process_has_the_verbs_about_the_past(ray_here: None, tmp_path: Path) -> None:
    store = make(tmp_path / "store")
    with Memory.open(store, executor="ray", settings={"cluster": {"groups": 1}}) as memory:
        far = Memory.connect(store=memory._store.handles.deployment.name)
        first = far.retrieve("What was planted?", owner=OWNER, request_id=ASKED).results.ids[0]
        whose = {"owner": OWNER}
        judged = far.record_relevance(ASKED, {first: True}, **whose, method="explicit_user", feedback_id=MINE)
        assert memory.get_relevance(MINE, **whose) == judged == far.get_relevance(MINE, **whose)
        for verb in ("get_retrieval", "replay", "reproduce"):
            assert getattr(far, verb)(ASKED, **whose) == getattr(memory, verb)(ASKED, **whose)
        for verb in ("list_retrievals", "list_relevance", "list_citations", "verify_chain"):
            assert getattr(far, verb)(**whose) == getattr(memory, verb)(**whose)
        assert far.reproduce(ASKED, **whose).reproduced
        assert far.verify_chain(**whose).whole
        with pytest.raises(FeedbackRejected):
            far.record_relevance(ASKED, {MINE: True}, **whose, method="explicit_user")
        with pytest.raises(NotFound):
            far.get_citations(MINE, **whose)

        def cite(number: int) -> Citations | None:
            # The writer decides, whoever asks it: of different records under one id one is kept.
            asked = (memory, far)[number % 2]
            given = {"answer_id": f"answer {number % 3}", "method": "model_reported", "citation_id": MINE}
            try:
                return asked.record_citations(ASKED, [], **whose, **given)
            except ConflictingOperation:
                return None

        with ThreadPoolExecutor(6) as pool:
            kept = [cited for cited in pool.map(cite, range(12)) if cited is not None]
        assert kept == [far.get_citations(MINE, **whose)] * 4
    with Memory.open(store) as memory:
        assert memory.get_relevance(MINE, **whose) == judged
        assert memory.reproduce(ASKED, **whose).reproduced
