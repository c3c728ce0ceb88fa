"""``attention-check path/to/file.py:ClassName``, also ``python -m attncheck``.

PyTorch is imported when there is something to check: help, versions and explanations
come without it.
"""

import argparse
import contextlib
import json
import os
import sys
import textwrap
from collections import Counter
from importlib import metadata

from attncheck.mistakes import MISTAKES
from attncheck.report import WIDTH, Report, address, worst

EPILOG = "exit status: 0 passed, 1 failed, 2 not loaded, built or called, 3 not judged"
SPARE = 60.0  # seconds beside those of the class: for a slow start
INTERRUPTED = 130  # as shells have it
SIZES = ("d_in", "d_out", "context_length", "num_heads")
NORMS = ("on", "layer", "rms", "l2")
_REFERENCE = "a correct class with --reference right.py:Right"
# What replaces an option that was removed.
GONE = {
    "--format": "--json prints JSON, and pytest's own report serves CI",
    "--output": "write what is printed to a file with >",
    "--select": "filter what --json prints",
    "--ignore": "filter what --json prints",
    "--strict": "--json holds warnings, too",
    "--alibi": "give the bias with --bias 'lambda module, t: …'",
    "--rope-base": "write --rope halves,500000",
    "--rope-share": "the share that turns is found; else give " + _REFERENCE,
    "--dropout": "write --set dropout=0.1, by the constructor's own name",
    **dict.fromkeys(
        ("--softcap", "--postnorm", "--exclusive", "--first", "--norm-over",
         "--norm-late", "--sinks"), f"give {_REFERENCE}"),
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Check what the command line names, print the report.

    Each class is loaded and run in a process of its own.

    Returns:
        The exit status: 0 passed, 1 failed, 2 not usable, 3 not judged; of several
        classes the worst: 1 before 2, 2 before 3.
    """
    try:
        status = _main(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("Interrupted, so there's no report.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # as with `| head`: whoever reads has seen enough
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if arguments is None else 1


def _main(arguments: list[str]) -> int:
    parser = _parser()
    for word in arguments:
        if told := GONE.get(word.partition("=")[0]):
            parser.error(f"{word.partition('=')[0]} is no option any more: {told}")
    options = parser.parse_args(arguments)
    if options.explain:
        return _explain(options.explain)
    if not options.targets:
        parser.error("say what to check, such as my_attention.py:MyAttention")
    from attncheck import checking

    found = [one for t in options.targets for one in checking.classes_of(t)]
    reports = []
    for one in found:
        given = argparse.Namespace(**vars(options) | {"target": one})
        reports.append(checking.report_on(given, SPARE))
    _tell(reports, options)
    return worst(reports)


def _tell(reports: list[Report], options: argparse.Namespace) -> None:
    if options.json:
        each = [report.as_dictionary() for report in reports]
        print(json.dumps(each[0] if len(each) == 1 else each, indent=2))
        return
    text = "\n\n\n".join(report.text(options.verbose) for report in reports)
    if len(reports) > 1:
        counts = Counter(report.verdict for report in reports)
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        text += f"\n\n\n{len(reports)} classes: {told}"
    unusable = all(not report.usable for report in reports)
    print(text, file=sys.stderr if unusable else sys.stdout)


def _explain(code: str) -> int:
    """Print what a mistake is, with a wrong line and the right one."""
    wanted = code.strip()
    found = [
        mistake
        for mistake in MISTAKES.values()
        if wanted.upper() == mistake.code or wanted == mistake.name
    ]
    if not found:
        near = sorted(
            f"{mistake.code} {mistake.name}"
            for mistake in MISTAKES.values()
            if mistake.code.startswith(wanted.upper()[:4])
        )
        print(f"There's no mistake {code}. Similar: {', '.join(near) or 'none'}.",
              file=sys.stderr)  # fmt: skip
        return 2
    (mistake,) = found
    lines = [f"{mistake.code} {mistake.name} [{mistake.severity}]", "", mistake.title]
    lines += ["", *textwrap.wrap(mistake.means, WIDTH), ""]
    lines += textwrap.wrap(f"Likely line: {mistake.line}", WIDTH)
    if example := mistake.shown.strip("\n"):
        lines += ["", "Wrong (-) and right (+):", textwrap.indent(example, "    ")]
    lines += ["", f"Read: {mistake.page} {address(mistake.code)}".rstrip()]
    print("\n".join(lines))
    return 0


def _version() -> str:
    try:
        return metadata.version("coding-attention")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-check",
        description="Test what an attention class computes, and name its mistake.",
        usage="attention-check [options] file.py:Class | notebook.ipynb:Class | dir …",
        epilog=EPILOG,
        add_help=False,
        formatter_class=lambda prog: argparse.HelpFormatter(
            prog, max_help_position=30, width=WIDTH
        ),
    )
    add = parser.add_argument
    hidden = argparse.SUPPRESS
    add("targets", nargs="*", metavar="target", help=hidden)
    add("-h", "--help", action="help", help=hidden)
    add("-v", "--verbose", action="store_true", help="all tests, and what each did")
    add("--json", action="store_true", help="the report as JSON")
    add("--explain", metavar="CODE", help="what a code means")
    add("--version", action="version", version=_version(), help=hidden)
    for name in SIZES:
        add(f"--{name.replace('_', '-')}", type=int, metavar="N")
    add("--set", action="append", default=[], metavar="NAME=VALUE",
        help="any other constructor argument")  # fmt: skip
    add("--config", action="append", default=[], metavar="NAME=VALUE",
        help="a setting of the config that it takes")  # fmt: skip
    add("--call", metavar="CODE", help="'lambda module, x: …' or f.py:f")
    add("--weights", metavar="CODE", help="'lambda module: {…}' or f.py:f")
    add("--reference", metavar="CODE", help="a correct class, f.py:Class, or none")
    add("--layout", choices=("btd", "tbd"), default="btd", help=hidden)
    add("--time-limit", type=float, default=10.0, metavar="S", help=hidden)
    add("--causal", action=argparse.BooleanOptionalAction,
        help="it hides the future by itself, or not at all")  # fmt: skip
    add("--rope", nargs="?", const="on", metavar="HOW",
        help="halves or neighbors, and a base: halves,500000")  # fmt: skip
    add("--window", type=int, metavar="N", help="tokens that one sees, itself included")
    add("--memory", type=int, metavar="N", help="tokens of a memory: cross-attention")
    add("--qk-norm", nargs="?", const="on", choices=NORMS, metavar="KIND",
        help="layer, rms or l2; so is")  # fmt: skip
    add("--prenorm", nargs="?", const="on", choices=NORMS, metavar="KIND")
    add("--residual", action="store_true", help="it adds its input")
    add("--scale", metavar="HOW", help="1/d, none, or a number to multiply by")
    add("--bias", metavar="CODE", help="'lambda module, t: …', added to scores")
    add("--sink", action="store_true", help="one learned score more for each head")
    add("--documents", action="store_true", help="several in one row")
    return parser
