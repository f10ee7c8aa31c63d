"""``python -m tests.crash.receipts_child FOLDER``: asks for ever under strict receipts, and says what was answered."""

import sys

from prme_ray.memory import Memory
from tests.crash.hash_encoder import HashEncoder


def main(folder):
    with Memory.open(folder, encoder=HashEncoder(None), settings={"strict_receipts": True}) as memory:
        memory.store_many([f"Oscar is cat number {number}." for number in range(20)], owner="anna")
        while True:
            answer = memory.retrieve("Which cat is Oscar?", owner="anna")
            print(answer.metadata.request_id, flush=True)
            memory.store("Oscar ate.", owner="anna")


if __name__ == "__main__":
    main(sys.argv[1])
