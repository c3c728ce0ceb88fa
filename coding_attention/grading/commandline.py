"""``python -m coding_attention.grading NOTEBOOK…``."""

import argparse
import os
import sys
from pathlib import Path

from coding_attention.grading import ASSIGNMENTS, grade
from coding_attention.grading.hand_out import HandOutError, hand_out, nbgrader

EPILOG = """exit status: 0 every notebook ran to its end, 1 one did not, 2 nothing to
grade. Example: python -m coding_attention.grading handed_in/ --assignment causal
--variant autumn-26 --csv > points.csv"""


def main(arguments=None):
    """Grade, or write the notebooks to hand out.

    Returns:
        The exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.hand_out or options.nbgrader:
            return _write(options, parser)
    except HandOutError as error:
        parser.error(str(error))
    if not options.notebooks:
        parser.error("which notebooks? Name files, or a folder of them.")
    if not hasattr(os, "fork"):  # by which a kernel is kept apart
        parser.error("grading needs Linux or macOS. On Windows, use WSL.")
    return _graded(options)


def _graded(options):
    report = grade(
        options.notebooks,
        ASSIGNMENTS[options.assignment],
        options.variant,
        tell=_tell,
        jobs=options.jobs,
    )
    if not report.rows:
        print("Found no notebooks there.", file=sys.stderr)
        return report.exit_status
    if options.feedback:
        _write_feedback(report, Path(options.feedback))
    print(report.csv() if options.csv else report.text())
    return report.exit_status


def _write_feedback(report, folder):
    """Write one file for each notebook."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in report.rows:
        name = report.label(row).removesuffix(".ipynb").replace("/", "-")
        (folder / f"{name}.md").write_text(report.feedback(row), encoding="utf-8")


def _tell(row):
    # Beside the report, so that one sees that a class of thirty gets on.
    print(f"{row.file.name}: {row.status}, {row.seconds:.1f} s", file=sys.stderr)


def _write(options, parser):
    if options.nbgrader:
        files = [nbgrader(options.assignment, Path(options.nbgrader))]
    else:
        if not (options.variant and options.students):
            parser.error("a hand-out needs --variant NAME and --students NAME…")
        files = hand_out(
            options.assignment,
            Path(options.hand_out),
            options.variant,
            options.students,
        )
    print("\n".join(map(str, files)))
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m coding_attention.grading",
        description="Run submitted notebooks, score their exercises, and count the "
        "class's mistakes.",
        epilog=EPILOG,
    )
    parser.add_argument("notebooks", nargs="*", metavar="NOTEBOOK",
                        help="a file or a folder of files")  # fmt: skip
    parser.add_argument("--csv", action="store_true", help="one line per notebook")
    parser.add_argument("--assignment", choices=ASSIGNMENTS, required=True,
                        help="which exercises count, and how much")  # fmt: skip
    parser.add_argument("--feedback", metavar="FOLDER",
                        help="write a file for each notebook to hand back")  # fmt: skip
    parser.add_argument("--jobs", type=_count, default=(os.cpu_count() or 2) // 2 or 1,
                        help="notebooks that run at a time (%(default)d)")  # fmt: skip
    parser.add_argument("--variant", default="", metavar="NAME",
                        help="the name that, with each student's, determines "
                        "the sizes")  # fmt: skip
    group = parser.add_argument_group("writing notebooks instead")
    group.add_argument(
        "--hand-out",
        metavar="FOLDER",
        help="write a notebook for each of --students, with different sizes",
    )
    group.add_argument("--students", nargs="+", default=[], metavar="NAME")
    group.add_argument(
        "--nbgrader",
        metavar="FOLDER",
        help="write the assignment as a source notebook for nbgrader",
    )
    return parser


def _count(text):
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value
