"""``kill -9`` between answers: with ``strict_receipts`` every answer that was given is on record."""

import random
import subprocess
import sys
import time
from pathlib import Path

from prme_ray.memory import Memory
from tests.crash.hash_encoder import HashEncoder

CHECKOUT = Path(__file__).resolve().parents[2]
ROUNDS = 2


def test_what_was_answered_is_on_record_and_comes_out_the_same(tmp_path):
    folder, told = tmp_path / "store", []
    for number in range(ROUNDS):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.receipts_child", str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )
        told += [process.stdout.readline().strip() for _ in range(10)]
        time.sleep(random.Random(number).random() * 0.1)
        process.kill()
        told += process.stdout.read().split("\n")[:-1]
        process.wait()
        process.stdout.close()
    assert len(told) >= 10 * ROUNDS
    with Memory.open(folder, encoder=HashEncoder(None)) as memory:
        assert memory.verify_chain(owner="anna").whole
        for request_id in told:
            assert memory.replay(request_id, owner="anna").ranking
            assert memory.reproduce(request_id, owner="anna").reproduced
