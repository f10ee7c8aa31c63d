import pytest

from stages.line_cache import LineCache
from stages.lines import Line


def a_line(size: int = 1) -> Line:
    return Line("x" * size, 1, 1, speaker=False, blank=False)


def test_the_entries_in_use_survive() -> None:
    cache = LineCache(8)
    cache["kept"] = a_line()
    for number in range(100):
        cache[number] = a_line()
        assert cache["kept"] == a_line()
        assert len(cache) <= 4
    assert cache[99] == a_line()
    with pytest.raises(KeyError):
        cache[0]


def test_the_text_kept_is_bounded() -> None:
    cache = LineCache(characters=100)
    for number in range(50):
        cache[number] = a_line(20)
    cache["huge"] = a_line(51)
    kept = 0
    for key in [*range(50), "huge"]:
        try:
            kept += len(cache[key].text)
        except KeyError:
            continue
    assert "huge" not in cache
    assert 0 < kept <= 100


def test_writing_a_key_again_does_not_count_twice() -> None:
    cache = LineCache(characters=100)
    for _ in range(50):
        cache["same"] = a_line(20)
    cache["other"] = a_line(20)
    assert set(cache) == {"same", "other"}
