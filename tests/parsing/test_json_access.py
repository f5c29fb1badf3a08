"""Parts of what other programs wrote, whatever stands in their place."""

import pytest

from neuraxis.parsing.json_access import as_list, as_map


@pytest.mark.parametrize("given", [None, 1, "ab", True, 1.5])
def test_what_is_neither_counts_as_empty(given):
    """A text is no list of letters."""
    assert as_map(given) == {}
    assert as_list(given) == []


def test_an_object_and_a_list_are_themselves():
    """Neither is taken for the other."""
    tree, listed = {"a": [1]}, [{"a": 1}]
    assert as_map(tree) is tree
    assert as_list(listed) is listed
    assert as_map(listed) == {}
    assert as_list(tree) == []
