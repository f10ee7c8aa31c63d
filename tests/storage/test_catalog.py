import json
import multiprocessing
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prme_ray.model.errors import InvalidRequest, StoreCorrupt, StoreFormatTooNew
from prme_ray.model.text import name_of
from storage.catalog import Catalog
from storage.migrations import FORMAT_VERSION, STEPS
from storage.records import OwnerKey

NOW = datetime(2026, 5, 4, 10, 0, 0, 250_000, tzinfo=UTC)
IDS = [f"00000000-0000-4000-8000-{n:012d}" for n in range(9)]


def make(path, number=0, virtual_shards=8):
    return Catalog.open_or_create(path, virtual_shards=virtual_shards, store_id=IDS[number], created_at=NOW)


def test_a_store_is_what_was_created(tmp_path):
    made = make(tmp_path / "deep" / "store")
    assert (made.store_id, made.virtual_shards, made.created_at) == (IDS[0], 8, NOW)
    assert Catalog.open(str(made.path), read_only=True) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert json.loads((made.path / "store.json").read_text()) == {
        "format": FORMAT_VERSION,
        "store_id": IDS[0],
        "virtual_shards": 8,
        "created_at": "2026-05-04T10:00:00.250000Z",
    }


def test_an_existing_store_keeps_its_number_of_shards(tmp_path):
    assert make(tmp_path, 1, virtual_shards=32) == make(tmp_path, 1) == Catalog.open(tmp_path)
    assert make(tmp_path, 2).virtual_shards == 32


@pytest.mark.parametrize("shards", [0, 4097, -1])
def test_number_of_shards_is_checked(tmp_path, shards):
    with pytest.raises(InvalidRequest, match="1 to 4096"):
        make(tmp_path, virtual_shards=shards)
    assert list(tmp_path.iterdir()) == []


def test_store_id_is_a_uuid(tmp_path):
    with pytest.raises(InvalidRequest, match="a UUID"):
        Catalog.open_or_create(tmp_path, virtual_shards=1, store_id="../x", created_at=NOW)


@pytest.mark.parametrize("exists", [True, False])
def test_opening_no_store_says_how_to_create_one(tmp_path, exists):
    path = tmp_path if exists else tmp_path / "absent"
    with pytest.raises(InvalidRequest, match="open without read_only to create one"):
        Catalog.open(path, read_only=True)


def test_a_file_is_no_store(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    for call in (make, Catalog.open):
        with pytest.raises(InvalidRequest, match="a folder, not a file"):
            call(file)


def test_a_folder_with_other_content_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for call in (make, Catalog.open):
        with pytest.raises(StoreCorrupt, match=r"holds 'thesis.tex' but no store.json"):
            call(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_lost_store_json_is_not_made_anew(tmp_path):
    made = make(tmp_path)
    made.shard_path(3).mkdir(parents=True)
    (tmp_path / "store.json").unlink()
    with pytest.raises(StoreCorrupt, match="restore it from a backup"):
        make(tmp_path)


def test_creation_goes_on_after_a_kill_in_the_middle(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "catalog.lock").touch()
    (tmp_path / ".store.json.k3x9.tmp").write_text('{"format"')
    assert make(tmp_path).store_id == IDS[0]


GOOD = {"format": 1, "store_id": IDS[0], "virtual_shards": 8, "created_at": "2026-05-04T10:00:00Z"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "\x00" * 64,
        *(json.dumps({key: value for key, value in GOOD.items() if key != missing}) for missing in GOOD),
        *(json.dumps(GOOD | wrong) for wrong in ({"format": "1"}, {"format": 0}, {"format": True})),
        *(json.dumps(GOOD | wrong) for wrong in ({"virtual_shards": 0}, {"virtual_shards": 1.5}, {"store_id": 7})),
        *(json.dumps(GOOD | {"created_at": wrong}) for wrong in (None, "yesterday", "2026-05-04T10:00:00")),
    ],
)
def test_broken_store_json_is_reported_and_kept(tmp_path, content):
    (tmp_path / "store.json").write_text(content)
    for call in (make, Catalog.open):
        with pytest.raises(StoreCorrupt, match=r"store\.json"):
            call(tmp_path)
    assert (tmp_path / "store.json").read_text() == content


def test_newer_format_is_refused_whatever_else_it_says(tmp_path):
    (tmp_path / "store.json").write_text(json.dumps({"format": FORMAT_VERSION + 1, "spelt": "differently"}))
    for call in (make, Catalog.open):
        with pytest.raises(StoreFormatTooNew) as caught:
            call(tmp_path)
    assert (caught.value.found, caught.value.supported) == (FORMAT_VERSION + 1, FORMAT_VERSION)


def test_older_format_is_brought_forward_step_by_step(tmp_path):
    make(tmp_path)
    ran: list[str] = []
    steps = {1: lambda path: ran.append("1 to 2"), 2: lambda path: ran.append("2 to 3")}
    with pytest.raises(InvalidRequest, match="False once, to bring store format 1 to 3"):
        Catalog.open(tmp_path, read_only=True, steps=steps, target=3)
    assert ran == []
    assert Catalog.open(tmp_path, steps=steps, target=3).store_id == IDS[0]
    assert Catalog.open(tmp_path, steps=steps, target=3).store_id == IDS[0]
    assert ran == ["1 to 2", "2 to 3"]
    assert json.loads((tmp_path / "store.json").read_text())["format"] == 3


def test_a_failed_step_leaves_the_format_it_reached(tmp_path):
    make(tmp_path)

    def fail(path: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Catalog.open(tmp_path, steps={1: lambda path: None, 2: fail}, target=3)
    assert json.loads((tmp_path / "store.json").read_text())["format"] == 2


def test_a_missing_step_is_named(tmp_path):
    make(tmp_path)
    with pytest.raises(StoreCorrupt, match="no step from format 1"):
        Catalog.open(tmp_path, steps={}, target=2)


def test_every_older_format_has_a_step():
    assert sorted(STEPS) == list(range(1, FORMAT_VERSION))


def _create(path, number, results):
    results.put(make(path, number, virtual_shards=number + 1))


def test_of_processes_that_create_at_once_one_wins(tmp_path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_create, args=(tmp_path / "store", n, results)) for n in range(4)]
    for process in processes:
        process.start()
    found = [results.get(timeout=30) for _ in processes]
    for process in processes:
        process.join(timeout=30)
    winner = Catalog.open(tmp_path / "store")
    assert found == [winner] * 4
    assert winner.virtual_shards == IDS.index(winner.store_id) + 1
    assert {entry.name for entry in winner.path.iterdir()} == {"store.json", "locks"}


def test_shard_is_the_stated_hash():
    # sha256(b"\0\0\0\0\0\0\0\4acmeanna") begins with 0x92eb173e974672a1.
    catalog = Catalog(Path("/s"), IDS[0], 16, NOW)
    assert catalog.shard_of(OwnerKey("acme", "anna")) == 0x92EB173E974672A1 % 16
    assert Catalog(Path("/s"), IDS[0], 4096, NOW).shard_of(OwnerKey("acme", "anna")) == 0x92EB173E974672A1 % 4096


def test_owners_with_equal_concatenation_are_framed_apart():
    catalog = Catalog(Path("/s"), IDS[0], 4096, NOW)
    assert catalog.shard_of(OwnerKey("ab", "c")) != catalog.shard_of(OwnerKey("a", "bc"))


def test_composed_and_decomposed_names_share_a_shard():
    catalog = Catalog(Path("/s"), IDS[0], 4096, NOW)
    composed, decomposed = "J\u00e4ger", "Ja\u0308ger"
    assert composed != decomposed
    keys = {OwnerKey("t", name_of(name, "owner")) for name in (composed, decomposed)}
    assert len(keys) == 1
    assert len({catalog.shard_of(key) for key in keys}) == 1


NAMES = st.one_of(
    st.sampled_from(["a/b", "..", "/", "../../etc", "x" * 300, "🦊", "con", "a\nb", " "]),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=40),
)


@settings(max_examples=40, deadline=None)
@given(tenant=NAMES, owner=NAMES, shards=st.integers(1, 4096))
def test_no_name_reaches_a_path(tenant, owner, shards):
    catalog = Catalog(Path("/s"), IDS[0], shards, NOW)
    shard = catalog.shard_of(OwnerKey(tenant, owner))
    assert 0 <= shard < shards
    assert catalog.shard_path(shard) == Path(f"/s/shards/{shard:03d}")


@pytest.mark.parametrize("shard", [-1, 8])
def test_an_unknown_shard_is_refused(tmp_path, shard):
    with pytest.raises(InvalidRequest, match="0 to 7"):
        make(tmp_path).shard_path(shard)
