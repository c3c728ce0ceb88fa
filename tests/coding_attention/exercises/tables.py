"""The answers that the tests of one page try: right ones, and typical wrong ones."""

import pytest

from coding_attention.exercises import check_exercise


def verdict(name, answer):
    """Check an answer; the words must be fit to be read."""
    result = check_exercise(name, answer)
    text = repr(result)
    assert "Traceback" not in text
    assert " at 0x" not in text
    assert max(len(line) for line in text.splitlines()) <= 90
    return result


def rights(table):
    """Turn {exercise: {how: answer}} into parameters."""
    return [
        pytest.param(name, answer, id=f"{name}-{how}")
        for name, ways in table.items()
        for how, answer in ways.items()
    ]


def wrongs(table):
    """Turn {exercise: {how: (answer, hint)}} into parameters."""
    return [
        pytest.param(name, answer, hint, id=f"{name}-{how}")
        for name, ways in table.items()
        for how, (answer, hint) in ways.items()
    ]


def assert_right(name, answer):
    """The verdict is right, and says what to learn."""
    result = verdict(name, answer)
    assert result.right, str(result)
    assert result.text.startswith(f"Exercise {name}: right. ")
    assert len(result.text) > len(f"Exercise {name}: right. ") + 20


def assert_named(name, answer, hint):
    """The verdict is not right, and names this very mistake."""
    result = verdict(name, answer)
    assert result.outcome == "not right", str(result)
    assert hint in result.text
    assert "To read: " in result.text
