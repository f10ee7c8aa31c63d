"""The chain over an owner's operations: whatever is done to the tables behind the log's back is found."""

import itertools
import random

import pytest

from storage.chain import CHAIN_START, MOST_BREAKS, BreakKind
from storage.records import Operation, OwnerKey
from tests.storage.log_cases import Writer

RECORDS = 6
"""Of the owner who is tampered with."""


@pytest.fixture(params=[1, 4], ids=lambda count: f"{count} owners")
def tampered(request, place):
    """Return what commits a log of several owners, changes its tables, and checks the first owner."""
    owners = [OwnerKey("acme", f"owner {number}") for number in range(request.param)]
    # The first owner's last record is followed by others.
    turns = [owner for owner in owners for _ in range(RECORDS)]
    random.Random(request.param).shuffle(turns)

    def tamper(*statements, last=RECORDS):
        writer = Writer(place.another())
        for number, owner in enumerate(turns):
            writer.commit(operations=[Operation(owner, "RETRIEVAL_REQUEST", f"r{number}", bytes([number]) * 90)])
        first = writer.log.owner_no(owners[0])
        assert writer.log.verify_chain(first).whole
        rows = {row.owner_op_seq: row.op_seq for row in writer.log.operations(first)}
        place.behind(*(one.format(first=first, at=rows) for one in statements))
        report = writer.log.verify_chain(first)
        others = [writer.log.verify_chain(number) for number, _ in writer.log.owners() if number != first]
        writer.log.close()
        return report, others

    return tamper


def found(report):
    return [(one.owner_op_seq, one.kind) for one in report.breaks]


ROW = "WHERE owner_no = {first} AND owner_op_seq ="


@pytest.mark.parametrize("number", [1, 4])
def test_a_removed_record_is_missing(tampered, number):
    report, others = tampered(f"DELETE FROM operations {ROW} {number}")
    assert found(report) == [(number, BreakKind.MISSING)]
    assert report.checked == RECORDS - 1
    assert all(other.whole for other in others)


def test_a_removed_tail_is_found_by_the_count(tampered):
    report, others = tampered("DELETE FROM operations WHERE owner_no = {first} AND owner_op_seq > 4")
    assert found(report) == [(5, BreakKind.TAIL_REMOVED)]
    assert all(other.whole for other in others)
    report, _ = tampered("DELETE FROM operations WHERE owner_no = {first}")
    assert found(report) == [(1, BreakKind.TAIL_REMOVED)]


@pytest.mark.parametrize("number", [1, RECORDS])
@pytest.mark.parametrize(
    "change",
    [
        "op_type = 'RELEVANCE_RECORDED'",
        "target = target || 'x'",
        "recorded_at = recorded_at + 1",
        "payload = {binary}",
        "previous = {binary}",
        "chain = {binary}",
    ],
)
def test_an_altered_record_is_found_whatever_was_changed(tampered, place, change, number):
    binary = "decode(repeat('ab', 32), 'hex')" if hasattr(place, "server") else f"X'{'ab' * 32}'"
    report, others = tampered(f"UPDATE operations SET {change.replace('{binary}', binary)} {ROW} {number}")
    assert found(report) == [(number, BreakKind.ALTERED)]
    assert all(other.whole for other in others)


def test_a_record_that_was_given_another_place_is_found(tampered):
    # Numbers of the shard: 2,000 is behind everything.
    report, _ = tampered(f"UPDATE operations SET op_seq = 2000 {ROW} 3")
    assert found(report) == [(4, BreakKind.OUT_OF_ORDER)]
    report, _ = tampered(f"UPDATE operations SET owner_op_seq = 77 {ROW} 3")
    assert found(report) == [(3, BreakKind.MISSING), (77, BreakKind.OUT_OF_ORDER)]
    report, _ = tampered(f"UPDATE operations SET owner_op_seq = -3 {ROW} {RECORDS}")
    assert found(report) == [(RECORDS, BreakKind.TAIL_REMOVED)]


@pytest.mark.parametrize(("one", "other"), [(2, 3), (2, 5), (1, RECORDS)])
def test_records_whose_numbers_were_swapped_are_out_of_order(tampered, one, other):
    move = f"UPDATE operations SET owner_op_seq = {{to}} {ROW} {{number}}"
    steps = [(one, -1), (other, one), (-1, other)]
    report, _ = tampered(*(move.replace("{to}", str(to)).replace("{number}", str(number)) for number, to in steps))
    assert found(report) == [(one, BreakKind.OUT_OF_ORDER), (other, BreakKind.OUT_OF_ORDER)]


def test_contents_that_were_swapped_are_altered(tampered):
    def take(number, other):
        return (
            f"UPDATE operations SET payload = (SELECT payload FROM spare WHERE op_seq = {{at[{other}]}}) {ROW} {number}"
        )

    report, _ = tampered(
        "CREATE TABLE spare AS SELECT op_seq, payload FROM operations", take(2, 5), take(5, 2), "DROP TABLE spare"
    )
    assert found(report) == [(2, BreakKind.ALTERED), (5, BreakKind.ALTERED)]


def test_a_record_moved_to_another_owner_is_missed_here_and_found_there(place):
    writer = Writer(place.open())
    one, other = OwnerKey("acme", "one"), OwnerKey("acme", "other")
    for owner, number in itertools.product((one, other), range(3)):
        writer.commit(operations=[Operation(owner, "RETRIEVAL_REQUEST", f"r{number}", b"")])
    place.behind("UPDATE operations SET owner_no = 2, owner_op_seq = 4 WHERE op_seq = 2")
    assert found(writer.log.verify_chain(1)) == [(2, BreakKind.MISSING)]
    assert found(writer.log.verify_chain(2)) == [(4, BreakKind.ALTERED)]


def test_a_forged_record_disagrees_with_the_one_behind_it(place):
    """Whoever can compute chain values has to write every later record again."""
    writer, forger = Writer(place.open()), Writer(place.another())
    owner = OwnerKey("acme", "anna")
    for log, payload in ((writer, b"true"), (forger, b"forged")):
        for number, said in enumerate([b"1", payload, b"3"]):
            log.commit(operations=[Operation(owner, "RETRIEVAL_REQUEST", f"r{number}", said)])
    forged = forger.log.operations(1)[1]
    hexed = {name: getattr(forged, name).hex() for name in ("payload", "chain")}
    decoded = "decode('%s', 'hex')" if hasattr(place, "server") else "X'%s'"
    place._number -= 1
    place.behind(
        f"UPDATE operations SET payload = {decoded % hexed['payload']}, chain = {decoded % hexed['chain']} "
        "WHERE op_seq = 2"
    )
    assert found(writer.log.verify_chain(1)) == [(2, BreakKind.ALTERED)]
    place.behind("DELETE FROM operations WHERE op_seq = 3", "UPDATE owners SET op_count = 2 WHERE owner_no = 1")
    assert found(writer.log.verify_chain(1)) == [(2, BreakKind.ALTERED)]  # the newest chain value gives it away
    forger.log.close()


def test_a_record_that_was_added_behind_the_count_and_a_changed_name_are_found(place):
    writer = Writer(place.open())
    owner = OwnerKey("acme", "anna")
    for number in range(4):
        writer.commit(operations=[Operation(owner, "RETRIEVAL_REQUEST", f"r{number}", b"")])
    head = writer.log.verify_chain(1).head
    assert head == writer.log.operations(1)[-1].chain.hex()
    place.behind("UPDATE owners SET op_count = 3 WHERE owner_no = 1")
    assert found(writer.log.verify_chain(1)) == [(4, BreakKind.ADDED)]
    place.behind("UPDATE owners SET op_count = 4, owner = 'somebody else' WHERE owner_no = 1")
    assert found(writer.log.verify_chain(1)) == [(number, BreakKind.ALTERED) for number in (1, 2, 3, 4)]


def test_an_empty_chain_and_one_of_many_pages(place):
    writer = Writer(place.open())
    owner = OwnerKey("acme", "anna")
    writer.commit(operations=[Operation(owner, "A", f"r{number}", b"") for number in range(MOST_BREAKS + 50)])
    report = writer.log.verify_chain(1)
    assert (report.checked, report.breaks) == (MOST_BREAKS + 50, ())
    assert report.head == writer.log.operations(1, after=MOST_BREAKS + 49)[0].chain.hex() != CHAIN_START.hex()
    place.behind("UPDATE operations SET target = 'x'")
    broken = writer.log.verify_chain(1)
    assert len(broken.breaks) == MOST_BREAKS
    assert broken.checked < MOST_BREAKS + 50
