from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prme_ray.model.errors import (
    ConflictingOperation,
    DuplicateSubject,
    InvalidRequest,
    InvalidText,
    WriterFenced,
)
from storage.records import EntryKind, LateOperation, Operation, OwnerKey, Repeat
from tests.storage.log_cases import ANNA, BEN, DIMENSION, NOW, Writer, admission, event, node, vector


@pytest.fixture
def writer(place):
    made = Writer(place.open())
    yield made
    made.log.close()


def subjects(rows):
    return [(row.seq, row.subject) for row in rows]


class TestAppend:
    def test_rows_come_back_as_committed(self, writer):
        [first, second] = writer.append(
            admission(event("e1", '{"content":"grün 🦊"}'), node("n1", vector(1, 2))), admission(event("e1"), owner=BEN)
        )
        assert (first.owner_no, second.owner_no, first.error) == (1, 2, None)
        assert writer.log.read(generation=1) == [*first.rows, *second.rows]
        row = writer.log.read(generation=1)[1]
        assert (row.seq, row.owner_no, row.kind, row.subject) == (2, 1, EntryKind.NODE, "n1")
        assert (row.payload, row.recorded_at, row.vector) == ("{}", NOW, vector(1, 2))
        assert writer.log.last_seq() == 3

    def test_empty_batch_and_empty_admission(self, writer):
        assert writer.append() == []
        [result] = writer.append(admission())
        assert (result.owner_no, result.rows, result.error) == (1, (), None)
        assert writer.log.last_seq() == 0

    def test_duplicate_refuses_only_its_admission(self, writer):
        writer.append(admission(event("e1")))
        good, bad, other = writer.append(
            admission(event("e2")), admission(event("e3"), event("e1")), admission(event("e4"))
        )
        assert subjects(good.rows + other.rows) == [(2, "e2"), (3, "e4")]
        assert isinstance(bad.error, DuplicateSubject)
        assert (bad.error.kind, bad.error.subject, bad.rows) == ("event", "e1", ())
        assert subjects(writer.log.read()) == [(1, "e1"), (2, "e2"), (3, "e4")]

    def test_duplicate_inside_a_batch_and_inside_an_admission(self, writer):
        first, second, third = writer.append(
            admission(event("e1")), admission(event("e1", "[]")), admission(event("e2"), event("e2"))
        )
        assert first.error is None
        assert isinstance(second.error, DuplicateSubject)
        assert isinstance(third.error, DuplicateSubject)

    def test_a_subject_is_known_by_owner_and_kind(self, writer):
        results = writer.append(
            admission(event("x")), admission(node("x")), admission(event("x"), owner=BEN), admission(event("X"))
        )
        assert [result.error for result in results] == [None] * 4

    def test_if_absent_is_skipped_when_known_earlier_or_in_the_batch(self, writer):
        writer.append(admission(node("hub")))
        [first, second] = writer.append(
            admission(node("hub", if_absent=True), event("e1"), node("new", if_absent=True)),
            admission(event("e2"), node("new", if_absent=True)),
        )
        assert subjects(first.rows) == [(2, "e1"), (3, "new")]
        assert subjects(second.rows) == [(4, "e2")]

    def test_if_absent_brings_what_a_refused_admission_did_not(self, writer):
        writer.append(admission(event("e1")))
        refused, taken = writer.append(
            admission(node("hub", if_absent=True), event("e1")), admission(node("hub", if_absent=True))
        )
        assert refused.error is not None
        assert subjects(taken.rows) == [(2, "hub")]

    def test_a_refused_admission_makes_no_owner(self, writer):
        [refused] = writer.append(admission(event("e1"), event("e1"), owner=BEN))
        assert refused.owner_no == 0
        assert writer.log.owner_no(BEN) is None

    def test_what_cannot_be_stored_refuses_only_its_admission(self, writer):
        results = writer.append(
            admission(event("e1", "\ud800")),
            admission(event("\udfff")),
            admission(event("e2", "\0")),
            admission(event("e\0")),
            admission(node("n1", b"abc")),
            admission(node("n2", vector(1, 2)), generation=7),
            admission(event("ok")),
        )
        assert [type(result.error) for result in results] == [
            *[InvalidText] * 4,
            InvalidRequest,
            InvalidRequest,
            type(None),
        ]
        assert "8 bytes" in str(results[4].error)
        assert subjects(writer.log.read()) == [(1, "ok")]

    def test_more_subjects_than_a_statement_takes(self, writer):
        many = [event(f"e{n}") for n in range(10_050)]
        [result] = writer.append(admission(*many))
        assert len(result.rows) == 10_050
        again, taken, fresh = writer.append(
            admission(*many), admission(event(many[-1].subject, "[]")), admission(event("fresh"))
        )
        assert (again.rows, again.repeated) == (result.rows, True)
        assert isinstance(taken.error, DuplicateSubject)
        assert subjects(fresh.rows) == [(10_051, "fresh")]

    @pytest.mark.parametrize("name", ["a/b", "..", "x" * 300, "🦊", "ä", "'; DROP TABLE owners; --", "%"])
    def test_any_name_is_an_owner(self, writer, name):
        writer.append(
            admission(event("e1"), owner=OwnerKey(name, "o")), admission(event("e2"), owner=OwnerKey("t", name))
        )
        assert writer.log.owners() == [(1, OwnerKey(name, "o")), (2, OwnerKey("t", name))]
        assert writer.log.owner_no(OwnerKey("t", name)) == 2

    def test_an_admission_sent_again_is_answered_with_the_entries_it_brought(self, writer):
        writer.append(admission(node("hub")))
        write = admission(
            event("e1"), node("n1", vector(1, 2)), node("hub", if_absent=True), node("new", if_absent=True)
        )
        [first] = writer.append(write, operations=[Operation(ANNA, "RETRIEVAL_REQUEST", "r1", b"1")])
        writer.append(admission(event("e2")), admission(event("e1"), owner=BEN))
        rows = writer.log.read(generation=1)
        for _ in range(2):
            again, fresh = writer.append(write, admission(event("e2")))
            assert (again.rows, again.repeated, again.error, again.owner_no) == (first.rows, True, None, 1)
            assert (subjects(fresh.rows), fresh.repeated) == ([(5, "e2")], True)
        assert writer.log.read(generation=1) == rows

    def test_an_admission_that_comes_twice_in_a_batch_is_written_once(self, writer):
        write = admission(event("e1"), node("n1", vector(1, 2)), node("hub", if_absent=True))
        first, again, other = writer.append(write, write, admission(event("e2")))
        assert (first.repeated, again.repeated, other.repeated) == (False, True, False)
        assert first.rows == again.rows
        assert subjects(writer.log.read()) == [(1, "e1"), (2, "n1"), (3, "hub"), (4, "e2")]

    @pytest.mark.parametrize(
        "changed",
        [
            admission(event("e1", "[]"), node("n1")),
            admission(event("e1"), node("n1"), node("n2")),
            admission(event("e1"), node("n1"), node("hub", if_absent=True)),
        ],
        ids=["another payload", "more", "a name it did not bring"],
    )
    def test_the_same_ids_with_something_else_are_refused(self, writer, changed):
        writer.append(admission(event("e1"), node("n1")))
        [refused] = writer.append(changed)
        assert isinstance(refused.error, DuplicateSubject)
        assert subjects(writer.log.read()) == [(1, "e1"), (2, "n1")]

    def test_records_of_a_batch_sent_again_are_written_once(self, writer):
        first, second = (Operation(ANNA, "RETRIEVAL_REQUEST", "r1", payload) for payload in (b"1", b"2"))
        batch = {"recorded_at": NOW, "epoch": writer.epoch, "again": True}
        for operations in ([first], [first, second], [first, second]):
            writer.log.append([], operations=operations, **batch)
        assert [row.payload for row in writer.log.operations(1)] == [b"1", b"2"]

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.lists(
                st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["{}", "[]"]), st.booleans()), max_size=3),
                max_size=4,
            ),
            max_size=4,
        )
    )
    def test_agrees_with_a_dictionary(self, place, batches):
        writer = Writer(place.another())
        known: dict[str, str] = {}
        for batch in batches:
            results = writer.append(
                *(admission(*(event(name, body, if_absent=flag) for name, body, flag in one)) for one in batch)
            )
            for one, result in zip(batch, results, strict=True):
                tentative, fine = dict(known), True
                for name, body, flag in one:
                    fine = fine and (flag or name not in tentative)
                    tentative.setdefault(name, body)
                brought = [(name, body) for name, body, flag in one if not flag]
                repeated = (
                    bool(brought)
                    and len({name for name, _ in brought}) == len(brought)
                    and all(name in known for name, _, _ in one)
                    and all(known[name] == body for name, body in brought)
                )
                assert (result.error is None, result.repeated) == (fine or repeated, repeated)
                known = tentative if fine else known
        rows = writer.log.read()
        assert [(row.seq, row.subject, row.payload) for row in rows] == [
            (number, *item) for number, item in enumerate(known.items(), start=1)
        ]
        writer.log.close()


class TestFence:
    def test_an_older_writer_is_fenced(self, writer):
        newer = writer.log.begin_epoch()
        assert newer == writer.log.current_epoch() == writer.epoch + 1
        for write in (
            lambda: writer.append(admission(event("e1"))),
            lambda: writer.log.register_generation("id-2", "m", 2, created_at=NOW, epoch=writer.epoch),
        ):
            with pytest.raises(WriterFenced) as caught:
                write()
            assert (caught.value.epoch, caught.value.current) == (writer.epoch, newer)
        assert writer.log.last_seq() == 0

    def test_epochs_rise_over_reopening(self, writer, place):
        writer.log.close()
        again = place.open()
        assert again.begin_epoch() == writer.epoch + 1
        again.close()


class TestRead:
    @pytest.fixture
    def filled(self, writer):
        for number in range(1, 4):
            writer.append(
                admission(event(f"a{number}"), node(f"na{number}", vector(number, 0))),
                admission(node(f"b{number}"), owner=BEN),
            )
        return writer.log

    def test_bounds_owner_and_limit(self, filled):
        assert [row.seq for row in filled.read()] == list(range(1, 10))
        assert [row.seq for row in filled.read(after=2, upto=5)] == [3, 4, 5]
        assert [row.seq for row in filled.read(owner_no=2)] == [3, 6, 9]
        assert [row.seq for row in filled.read(owner_no=1, after=2, upto=8, limit=2)] == [4, 5]
        assert filled.read(after=9) == filled.read(owner_no=3) == filled.read(limit=0) == []

    def test_vectors_belong_to_a_generation(self, filled):
        assert [row.vector for row in filled.read(upto=3, generation=1)] == [None, vector(1, 0), None]
        assert all(row.vector is None for row in [*filled.read(), *filled.read(generation=2)])

    def test_an_owner_has_numbers_of_its_own(self, filled):
        assert [row.owner_seq for row in filled.read(owner_no=1)] == [1, 2, 3, 4, 5, 6]
        assert [row.owner_seq for row in filled.read(owner_no=2)] == [1, 2, 3]
        assert [filled.last_of(number) for number in (1, 2, 3)] == [(8, 6), (9, 3), (0, 0)]
        assert [filled.last_of(2, upto=upto) for upto in (2, 3, 8)] == [(0, 0), (3, 1), (6, 2)]

    def test_record(self, filled):
        row = filled.record(2, EntryKind.NODE, "b2")
        assert row is not None
        assert (row.seq, row.owner_no, row.subject) == (6, 2, "b2")
        assert filled.record(1, EntryKind.NODE, "b2") is None  # another owner's
        assert filled.record(2, EntryKind.EVENT, "b2") is None

    def test_counts(self, filled):
        assert filled.counts() == {"event": 3, "node": 6, "edge": 0}
        assert filled.counts(generation=1) == {"event": 3, "node": 6, "edge": 0, "vectors": 3}
        assert filled.counts(upto=5, owner_no=1, generation=1) == {"event": 2, "node": 2, "edge": 0, "vectors": 2}
        assert filled.counts(owner_no=2, generation=1) == {"event": 0, "node": 3, "edge": 0, "vectors": 0}
        assert filled.counts(generation=9)["vectors"] == 0

    def test_unknown_owner(self, filled):
        assert filled.owner_no(OwnerKey("acme", "carol")) is None
        assert filled.owner_no(ANNA) == 1


class TestGenerations:
    def test_an_identity_is_registered_once(self, writer):
        again = writer.log.register_generation("id-1", "mini", DIMENSION, created_at=NOW + 5, epoch=writer.epoch)
        other = writer.log.register_generation("id-2", "maxi", 3, created_at=NOW, epoch=writer.epoch)
        assert (writer.generation, again, other) == (1, 1, 2)
        found = [(row.generation, row.identity, row.model_name, row.dimension) for row in writer.log.generations()]
        assert found == [(1, "id-1", "mini", DIMENSION), (2, "id-2", "maxi", 3)]

    @pytest.mark.parametrize(("identity", "dimension"), [("id-1", 3), ("id-9", 0)])
    def test_dimension_is_checked(self, writer, identity, dimension):
        with pytest.raises(InvalidRequest, match=f"dimension={dimension} is not allowed"):
            writer.log.register_generation(identity, "m", dimension, created_at=NOW, epoch=writer.epoch)


class TestOperations:
    @pytest.fixture
    def filled(self, writer):
        writer.append(
            admission(event("e1")), operations=[Operation(ANNA, "RETRIEVAL_REQUEST", "r1", b"\x00\xff receipt")]
        )
        writer.append(
            operations=[
                Operation(BEN, "RETRIEVAL_REQUEST", "r2", b"2"),
                Operation(ANNA, "RELEVANCE_RECORDED", "r1", b"3"),
                Operation(ANNA, "RETRIEVAL_REQUEST", "r3", b"4"),
                Operation(ANNA, "RETRIEVAL_REQUEST", "r1", b"5"),
            ]
        )
        return writer.log

    def test_they_have_sequences_of_their_own(self, filled):
        assert [(row.op_seq, row.owner_op_seq) for row in filled.operations(2)] == [(2, 1)]
        assert filled.last_seq() == 1
        assert filled.owner_no(BEN) == 2  # a question may come before the first memory
        assert [row.payload for row in filled.operations(1)] == [b"\x00\xff receipt", b"3", b"4", b"5"]
        assert [(row.op_seq, row.owner_op_seq) for row in filled.operations(1)] == [(1, 1), (3, 2), (4, 3), (5, 4)]

    def test_pages_and_types(self, filled):
        assert [row.owner_op_seq for row in filled.operations(1, after=1)] == [2, 3, 4]
        assert [row.owner_op_seq for row in filled.operations(1, after=1, limit=2)] == [2, 3]
        assert [row.owner_op_seq for row in filled.operations(1, op_type="RETRIEVAL_REQUEST", limit=2)] == [1, 3]
        assert filled.operations(1, op_type="OTHER") == filled.operations(3) == []

    def test_by_target(self, filled):
        found = filled.operations_of(1, "r1", op_type="RETRIEVAL_REQUEST")
        assert [row.payload for row in found] == [b"\x00\xff receipt", b"5"]
        assert filled.operations_of(2, "r1", op_type="RETRIEVAL_REQUEST") == []
        given = {"op_type": "RETRIEVAL_REQUEST"}
        assert [row.owner_op_seq for row in filled.operations_by_target(1, **given)] == [1, 4, 3]
        assert [row.target for row in filled.operations_by_target(1, after_target="r1", **given)] == ["r3"]
        assert [row.target for row in filled.operations_by_target(1, limit=1, **given)] == ["r1"]

    def test_targets_are_in_the_order_of_their_bytes(self, writer):
        names = ["ä", "b", "B", "a", "_", "🦊", "Z", "é", "10", "9"]
        writer.append(operations=[Operation(ANNA, "FEEDBACK", name, b"") for name in names])
        found, after = [], None
        while page := writer.log.operations_by_target(1, op_type="FEEDBACK", after_target=after, limit=3):
            found += [row.target for row in page]
            after = found[-1]
        assert found == sorted(names, key=str.encode)

    @pytest.mark.parametrize(
        ("op_type", "target", "payload"), [("A\x00", "r", b""), ("A", "\ud800", b""), ("A", "r", "text")]
    )
    def test_what_cannot_be_stored_is_refused_when_made(self, op_type, target, payload):
        with pytest.raises(InvalidRequest):
            Operation(ANNA, op_type, target, payload)
        with pytest.raises(InvalidRequest):
            LateOperation(ANNA, op_type, target, lambda: payload).made()


class TestRepeatedOperations:
    def test_the_same_bytes_give_back_the_row_that_is_held(self, writer):
        writer.append(operations=[Operation(ANNA, "FEEDBACK", "f0", b"0")])
        given = Operation(ANNA, "FEEDBACK", "f1", b"1", Repeat.ONCE)
        first = writer.commit(operations=[given, given]).recorded
        again = writer.commit(operations=[given, replace(given, repeat=Repeat.SAME)]).recorded
        assert first + again == writer.log.operations(1, after=1) * 4

    def test_other_bytes_are_refused_alone(self, writer):
        given = Operation(ANNA, "FEEDBACK", "f1", b"1", Repeat.ONCE)
        other = replace(given, payload=b"2")
        added = Operation(ANNA, "FEEDBACK", "f1", b"3")
        batch = writer.commit(operations=[given, other, Operation(BEN, "FEEDBACK", "f1", b"2", Repeat.ONCE), added])
        assert isinstance(batch.recorded[1], ConflictingOperation)
        assert (batch.recorded[1].op_type, batch.recorded[1].target) == ("FEEDBACK", "f1")
        assert [row.payload for row in writer.log.operations(1)] == [b"1", b"3"]
        assert [row.payload for row in writer.log.operations(2)] == [b"2"]
        [refused] = writer.commit(operations=[other]).recorded
        assert isinstance(refused, ConflictingOperation)
        [held] = writer.commit(operations=[replace(added, repeat=Repeat.ONCE)]).recorded
        assert held.payload == b"3"

    def test_beside_other_bytes_a_record_that_was_sent_again_is_added(self, writer):
        for payload in (b"1", b"2", b"2", b"1"):
            writer.commit(operations=[Operation(ANNA, "RETRIEVAL_REQUEST", "r1", payload, Repeat.SAME)])
        assert [row.payload for row in writer.log.operations(1)] == [b"1", b"2"]
