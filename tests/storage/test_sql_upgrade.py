"""A log of an older version becomes one of this version when it is opened for writing, in both databases."""

import pytest

from prme_ray.model.errors import InvalidRequest
from storage.records import Operation
from tests.storage.log_cases import ANNA, BEN, Writer
from tests.storage.old_logs import ENTRIES, OPERATIONS, VECTORS


def test_version_2_gets_its_operations_chained(place):
    place.make_old()
    with pytest.raises(InvalidRequest, match="a log of version 2, opening it for writing brings it to 3"):
        place.open(read_only=True)
    for _ in range(2):
        log = place.open()
        for number in (1, 2):
            rows = log.operations(number)
            given = [row for row in OPERATIONS if row[1] == number]
            assert [(row.op_seq, row.target, row.payload) for row in rows] == [
                (row[0], row[3], row[4]) for row in given
            ]
            assert [row.owner_op_seq for row in rows] == list(range(1, len(given) + 1))
            report = log.verify_chain(number)
            assert (report.breaks, report.checked, report.head) == ((), len(given), rows[-1].chain.hex())
        assert log.verify_chain(3).checked == 0
        assert [row.subject for row in log.read()] == [row[4] for row in ENTRIES]
        assert [row.vector for row in log.read(generation=1) if row.vector] == [row[2] for row in VECTORS]
        log.close()


def test_an_upgraded_log_goes_on_as_a_new_one_does(place):
    place.make_old()
    upgraded = Writer(place.open())
    fresh = Writer(place.another())
    kept = [row for row in OPERATIONS if row[1] == 2]
    for writer, earlier in ((upgraded, []), (fresh, kept)):
        writer.commit(operations=[Operation(BEN, row[2], row[3], row[4]) for row in earlier])
        writer.commit(operations=[Operation(ANNA, "FEEDBACK", "f", b"1"), Operation(BEN, "FEEDBACK", "f", b"1")])
    number = fresh.log.owner_no(BEN)
    one, other = upgraded.log.operations(2), fresh.log.operations(number)
    assert [(row.owner_op_seq, row.chain) for row in one] == [(row.owner_op_seq, row.chain) for row in other]
    assert upgraded.log.verify_chain(2).whole
    assert [row.target for row in upgraded.log.operations_by_target(2, op_type="FEEDBACK")] == ["f"]
    for writer in (upgraded, fresh):
        writer.log.close()
