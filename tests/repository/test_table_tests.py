"""A table test fails when one row does, and names it."""

import pytest
from harness.tables import over


def test_table_test_error_names_each_failing_row_with_its_reason():
    @over(number=[1, 2, 3], word__length=[("a", 1), ("bb", 2)])
    def check(number, word, length, offset):
        assert number + offset != 2, "two is wrong"
        if word == "bb" and number == 3:
            with pytest.raises(ValueError, match="never"):
                len(word)
        assert len(word) == length

    with pytest.raises(AssertionError) as caught:
        check(offset=0)
    said = str(caught.value)
    assert said.startswith("3 of 6 rows fail:") and "number=2, word='a', length=1: AssertionError" in said
    assert (
        "number=3, word='bb'" in said and "number=1" not in said and isinstance(caught.value.__cause__, AssertionError)
    )


def test_table_test_decorator_refuses_an_empty_table_and_an_unknown_argument():
    with pytest.raises(AssertionError, match="could not fail"):
        over(number=[])
    with pytest.raises(AssertionError, match="does not take"):
        over(number=[1])(lambda other: None)


@over(number=[1, 2])
def test_table_test_receives_arguments_that_are_not_columns_as_fixtures(number, tmp_path):
    assert tmp_path.is_dir() and number in (1, 2)
