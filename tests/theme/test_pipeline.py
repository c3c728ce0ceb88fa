"""The list of steps keeps what it says of its own order."""

from theme import pipeline

NAMES = [step.name for step in pipeline.STEPS]


def test_moments_stand_in_the_order_in_which_they_come():
    moments = [list(pipeline.MOMENTS).index(s.moment) for s in pipeline.STEPS]
    assert moments == sorted(moments)


def test_each_step_runs_after_what_it_needs():
    done = set()
    for step in pipeline.STEPS:
        assert set(step.needs) <= done, f"{step.name} runs before what it needs"
        done.add(step.name)


def test_no_step_runs_twice():
    assert len(NAMES) == len(set(NAMES))


def test_a_step_without_the_lean_site_needs_none_of_it_but_buttons():
    """The measuring builds the book without it, and pages must come out of that."""
    lean = {s.name for s in pipeline.STEPS if s.extension == pipeline.LEAN}
    needs = {n for s in pipeline.STEPS if s.extension == "theme" for n in s.needs}
    assert needs & lean == {"launch.choose_buttons"}
