"""The order of the steps that `theme.setup` connects."""

from unittest.mock import MagicMock

import pytest

import theme
from theme import find_the_bug, labs, opening, practice
from theme.lean_site import assets, frame, launch, markup


@pytest.fixture(scope="module")
def steps():
    """The steps as Sphinx would run them, by event."""
    app = MagicMock(parallel=1)
    theme.setup(app)
    found = {}
    for call in app.connect.call_args_list:
        event, step = call.args
        found.setdefault(event, []).append((call.kwargs.get("priority", 500), step))
    for event, pairs in found.items():
        pairs.sort(key=lambda pair: pair[0])
        found[event] = [step for _, step in pairs]
    return found


@pytest.mark.parametrize(
    ("event", "first", "then"),
    [
        # What takes the addresses of the buttons.
        ("html-page-context", launch.choose_buttons, practice.add_to_page),
        ("html-page-context", launch.choose_buttons, opening.add_run_link),
        # What changes the body, before what repairs it and what looks into it.
        ("html-page-context", practice.add_to_page, markup.repair_body),
        ("html-page-context", opening.add_run_link, markup.repair_body),
        ("html-page-context", markup.repair_body, assets.choose_files),
        # What asks for a file, before the files are chosen.
        ("html-page-context", labs.add_to_page, assets.choose_files),
        ("html-page-context", find_the_bug.add_assets, assets.choose_files),
        ("html-page-context", assets.choose_files, frame.fill_template),
    ],
)
def test_a_step_runs_after_what_it_reads(event, first, then, steps):
    order = steps[event]
    assert order.index(first) < order.index(then)


def test_no_step_runs_twice(steps):
    connected = [step for order in steps.values() for step in order]
    assert len(connected) == len(set(connected)) >= 20
