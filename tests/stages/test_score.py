import pytest

from tests.stages.scoring_pool import PRODUCT, WEIGHTED, ask, candidate, row


@pytest.mark.parametrize(("scoring", "version"), [(PRODUCT, 2), (WEIGHTED, 1)])
def test_the_setting_picks_the_formula(scoring, version):
    assert row(ask([candidate(1, 0.5, 0.5)], scoring=scoring), 1)["formula_version"] == version
