from stages.word_sets import words


def test_words_are_separated_by_any_white_space():
    assert words(" a  b\n a\tzoë ") == {"a", "b", "zoë"}
