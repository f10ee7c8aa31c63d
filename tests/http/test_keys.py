"""The file of keys and its command: what is kept, what is shown, what a change does."""

import json
import stat
from datetime import UTC, datetime, timedelta

import pytest

from prme_ray.cli import main
from prme_ray.keys import create_key, read_keys, revoke_key, rotate_key, secret_matches, split_key
from prme_ray.model.errors import InvalidRequest, NotFound
from prme_ray.model.service_errors import KeyFileUnreadable

NOW = datetime(2026, 5, 4, 10, tzinfo=UTC)
READ = ["memory:read"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "etc" / "keys.json"


def make(file, **options):
    return create_key(file, **{"tenant": "acme", "permissions": READ, "now": NOW, **options})


def test_a_key_matches_its_record_and_no_other(file):
    one, other = make(file), make(file, owner="dana")
    assert one.key.startswith(f"prk_{one.record.id}_")
    for made, wrong in ((one, other), (other, one)):
        key_id, secret = split_key(made.key)
        assert secret_matches(made.record, key_id, secret)
        assert not secret_matches(wrong.record, key_id, secret)
        assert not secret_matches(made.record, key_id, split_key(wrong.key)[1])
        assert not secret_matches(None, key_id, secret)
    assert not secret_matches(None, "", "")


@pytest.mark.parametrize("text", ["", "prk_", "prk_1_2", "x" * 85, "prk_" + "0" * 16 + "_" + "g" * 64])
def test_text_of_another_form_is_no_key(text):
    assert split_key(text) is None


def test_the_file_has_hashes_and_is_the_owner_s_alone(file):
    made = make(file)
    text = file.read_text("utf-8")
    assert split_key(made.key)[1] not in text
    assert made.record.digest in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_keys(file) == (made.record,)


def test_equal_secrets_have_different_hashes(file):
    random = iter([digit * 64 for digit in ("1", "0", "2", "0")])
    one, other = (make(file, random_hex=lambda: next(random)).record for _ in range(2))
    assert (one.id, other.id) == ("1" * 16, "2" * 16)
    assert one.digest != other.digest


def test_rotation_keeps_what_is_allowed_and_ends_the_old_key(file):
    old = make(file, owner="dana", per_second=2.0, burst=5, label="agent 7")
    new = rotate_key(file, old.record.id, now=NOW, grace=timedelta(hours=1))
    changed = {"id", "digest", "created_at", "expires_at"}
    assert new.record.model_dump(exclude=changed) == old.record.model_dump(exclude=changed)
    kept, added = read_keys(file)
    assert kept.valid_at(NOW + timedelta(minutes=59)) and not kept.valid_at(NOW + timedelta(hours=1))
    assert added.valid_at(NOW + timedelta(days=999))
    rotate_key(file, old.record.id, now=NOW, grace=timedelta(days=9))
    assert read_keys(file)[0].expires_at == NOW + timedelta(hours=1)


def test_revoked_is_gone(file):
    made = make(file)
    revoke_key(file, made.record.id)
    assert read_keys(file) == ()
    for change in (lambda: revoke_key(file, "0" * 16), lambda: rotate_key(file, "0" * 16, now=NOW, grace=timedelta(1))):
        with pytest.raises(NotFound, match="no key"):
            change()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tenant": ""}, "tenant"),
        ({"permissions": []}, "permissions"),
        ({"permissions": ["memory:fly"]}, "permissions"),
        ({"owner": "dana", "agent": "7"}, "owner or to an agent"),
        ({"per_second": 0.0}, "per_second"),
        ({"burst": 0}, "burst"),
    ],
)
def test_what_is_not_allowed_is_not_written(file, options, message):
    with pytest.raises(InvalidRequest, match=message):
        make(file, **options)
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version":2,"keys":[]}', '{"version":1,"keys":[{"id":"x"}]}'])
def test_a_broken_file_is_not_an_empty_one(file, text):
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(KeyFileUnreadable):
        read_keys(file)
    with pytest.raises(KeyFileUnreadable):
        make(file)
    assert file.read_text() == text


def test_the_command(file, capsys):
    where = ["--file", str(file)]
    assert main(["keys", "create", *where, "--tenant", "acme", "--allow", *READ, "--expires-in", "90d"]) == 0
    key = capsys.readouterr().out.strip()
    key_id, secret = split_key(key)
    assert main(["keys", "list", *where]) == 0
    listed = capsys.readouterr().out
    (shown,) = [json.loads(line) for line in listed.splitlines()]
    assert (shown["id"], shown["tenant"], shown["valid"]) == (key_id, "acme", True)
    assert secret not in listed and "digest" not in shown
    assert main(["keys", "rotate", *where, key_id, "--grace", "1h"]) == 0
    new_id, _ = split_key(capsys.readouterr().out.strip())
    assert main(["keys", "revoke", *where, key_id]) == 0
    assert [record.id for record in read_keys(file)] == [new_id]
    assert main(["keys", "revoke", *where, key_id]) == 1
    assert "no key" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["keys", "create", *where, "--tenant", "a", "--allow", *READ, "--expires-in", "soon"])
