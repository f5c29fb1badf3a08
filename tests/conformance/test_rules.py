"""Every rule has a test, and the page that says so is true."""

from __future__ import annotations

from conformance.rules import PAGE, page, rules, shown_by

COUNTS = {"A": 30, "B": 62, "C": 26, "D": 15, "K": 14}


def test_no_rule_is_missing_and_each_has_a_test() -> None:
    """A rule without a test is a rule that nobody keeps."""
    known = [rule for texts in rules().values() for rule in texts]
    all_rules = [
        f"{part}{n}" for part, most in COUNTS.items() for n in range(1, most + 1)
    ]
    all_rules += [f"defect_{number:02}" for number in range(1, 17)]
    assert sorted(all_rules) == sorted(known)
    tests = shown_by()
    assert [rule for rule in known if rule not in tests] == []


def test_no_test_names_a_rule_that_is_not_there() -> None:
    """A wrong id in a name would show nothing."""
    known = {rule for texts in rules().values() for rule in texts}
    assert sorted(set(shown_by()) - known) == []


def test_the_page_is_up_to_date() -> None:
    """`PYTHONPATH=tests python -m conformance.rules` writes it."""
    assert page() == PAGE.read_text(encoding="utf-8")
