"""The checker of requirements.lock, on small made-up environments, and the lock itself."""

import pytest
from packaging.requirements import Requirement

from tests.lock import LOCK, declared, pins, problems, written

ENVIRONMENT = {
    "alpha": ("1.2", ["beta>=1", "gamma; extra == 'fast'", "delta; python_version < '3'"]),
    "beta": ("1.0", []),
    "gamma": ("3.0", []),
}


def check(wanted, pinned, environment=ENVIRONMENT):
    return problems([Requirement(text) for text in wanted], pinned, environment.get)


def test_a_complete_lock_is_accepted():
    assert check(["alpha>=1"], {"alpha": "1.2", "beta": "1.0"}) == []


def test_a_requirement_of_a_requirement_must_be_pinned():
    assert check(["alpha"], {"alpha": "1.2"}) == ["beta is not pinned: run `make lock`"]


def test_an_extra_brings_its_requirements():
    assert check(["alpha[fast]"], {"alpha": "1.2", "beta": "1.0"}) == ["gamma is not pinned: run `make lock`"]


def test_other_versions_and_missing_packages_are_found():
    (other,) = check(["beta"], {"beta": "1.1"})
    assert "beta 1.0 is installed, 1.1 is pinned" in other
    assert check(["beta>=2"], {"beta": "1.0"}) == ["beta==1.0 does not satisfy beta>=2"]
    assert check(["epsilon"], {"epsilon": "1.0"}) == ["epsilon==1.0 is not installed: run `make test`"]


@pytest.mark.parametrize("line", ["alpha", "alpha>=1", "alpha==1 ; python_version > '3'", "a @ file:x", "==1"])
def test_a_line_that_pins_nothing_is_refused(line):
    with pytest.raises(ValueError, match="line 1"):
        pins(line)


def test_a_package_is_pinned_once():
    with pytest.raises(ValueError, match="twice"):
        pins("Alpha_x==1\nalpha-x==1")


def test_what_is_written_is_sorted_and_can_be_read():
    text = written([("Zeta", "2"), ("alpha_x", "1"), ("pip", "25"), ("prme-ray", "0.1.0")])
    assert text.splitlines()[-2:] == ["alpha-x==1", "zeta==2"]
    assert pins(text) == {"alpha-x": "1", "zeta": "2"}


def test_every_declared_requirement_is_pinned_within_its_range():
    pinned = pins(LOCK.read_text("utf-8"))
    for requirement in declared():
        assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


def test_the_lock_names_no_registry_and_no_hash():
    text = LOCK.read_text("utf-8")
    assert not any(word in text for word in ("://", "--hash", "--index-url", "--find-links"))
