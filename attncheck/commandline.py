"""``attention-check path/to/file.py:ClassName``, also ``python -m attncheck``.

PyTorch is imported when there is something to check: help, versions and explanations
come without it.
"""

import argparse
import contextlib
import os
import re
import shlex
import sys
import textwrap
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from attncheck.formats import FORMATS, Reports, address, rendered
from attncheck.mistakes import MISTAKES
from attncheck.report import WIDTH, Report, worst

__all__ = ["main"]

EPILOG = """exit status: 0 passed, 1 failed, 2 the class couldn't be loaded,
built or called, 3 not judged: its output couldn't be compared with correct attention.
Options can also go in [tool.attncheck] of pyproject.toml. Example: attention-check
my_attention.py:CausalAttention --d-in 16"""
SPARE = 60.0  # seconds beside those of the class: for a slow start
INTERRUPTED = 130  # as shells have it
SIZES = ("d_in", "d_out", "context_length", "num_heads", "dropout")
COLORS = {"passed": "32", "failed": "31", "not usable": "31", "not judged": "33"}


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
    options = parser.parse_args(arguments)
    if options.explain:
        return _explain(options.explain)
    try:
        options, classes = _with_settings(parser, options, arguments)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    targets = options.targets or list(classes)
    if not targets:
        parser.error("say what to check, such as my_attention.py:MyAttention")
    from attncheck import checking
    from attncheck.probes import storage

    found = [(t, one) for t in targets for one in checking.classes_of(t)]
    if len(found) > 1:
        storage.load()
    reports = []
    for target, one in found:
        given = argparse.Namespace(**vars(options))
        if target in classes:
            given = parser.parse_args(arguments, classes[target])
        given.target = one
        report = checking.report_on(given, SPARE)
        report.command = _command(arguments, targets, one, report)
        reports.append((report, one))
    return _tell(reports, options)


def _tell(reports: Reports, options: argparse.Namespace) -> int:
    """Print the reports, or write them to a file and print a line for each."""
    text = rendered(reports, options.format)
    status = worst([report for report, _ in reports])
    plain = options.format == "text" or options.output
    if options.output:
        Path(options.output).write_text(text + "\n", encoding="utf-8")
        text = "\n".join(report.headline() for report, _ in reports)
    unusable = all(not report.usable for report, _ in reports)
    stream = sys.stderr if plain and unusable else sys.stdout
    if options.format == "text" and _colored(stream):
        text = _painted(text, reports)
    print(text, file=stream)
    return status


def _command(
    arguments: list[str], targets: list[str], target: str, report: Report
) -> str:
    """Return the command line that would have the class judged, complete."""
    if not report.not_compared or not report.proposal:
        return ""
    left = [word for word in arguments if word not in targets]
    words = ["attention-check", target, *left]
    for name, value in report.proposal.items():
        words += _flags(name, value)
    return shlex.join(words)


def _flags(name: str, value: Any) -> list[str]:
    """Return an option of the check as words of the command line."""
    option = f"--{name.replace('_', '-')}"
    if name == "rope":
        value = {"pairing": value} if not isinstance(value, dict) else dict(value)
        pairing, way = value.pop("pairing"), value.pop("way", None)
        flags = ["--rope", ",".join(["on" if pairing is True else pairing] + (
            ["other-way"] if way else []))]  # fmt: skip
        for more, number in value.items():
            flags += [f"--rope-{more}", f"{number:g}"]
        return flags
    if name == "scale":
        return [option, {"1": "none", "1/d_head": "1/d"}.get(value, str(value))]
    return [option] if value is True else [option, str(value)]


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
    if example := mistake.example():
        lines += ["", "Wrong (-) and right (+):", textwrap.indent(example, "    ")]
    lines += ["", f"Read: {mistake.page} {address(mistake.code)}".rstrip()]
    print("\n".join(lines))
    return 0


def _version() -> str:
    try:
        return metadata.version("coding-attention")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _colored(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ


def _painted(text: str, reports: Reports) -> str:
    """Color headlines by verdict, and the titles of findings."""
    lines = text.split("\n")
    starts = {" ".join(r.headline().split())[:40]: COLORS[r.verdict]
              for r, _ in reports}  # fmt: skip
    for place, line in enumerate(lines):
        color = starts.get(line[:40]) or next(
            (c for start, c in starts.items() if line and start.startswith(line)), None
        )
        if re.match(r"\d+\. .*", line):
            color = "1"
        if color:
            lines[place] = f"\x1b[{color}m{line}\x1b[0m"
    return "\n".join(lines)


def _with_settings(
    parser: argparse.ArgumentParser, options: argparse.Namespace, arguments: list[str]
) -> tuple[argparse.Namespace, dict[str, argparse.Namespace]]:
    """Return the options with those of pyproject.toml, and {class: its options}.

    Raises:
        ValueError: there is a setting that is no option.
    """
    file = next(
        (folder / "pyproject.toml" for folder in (Path.cwd(), *Path.cwd().parents)
         if (folder / "pyproject.toml").is_file()), None
    )  # fmt: skip
    if file is None:
        return options, {}
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    table = dict(tables.get("tool", {}).get("attncheck", {}))
    classes = table.pop("classes", {})
    if not table and not classes:
        return options, {}
    general = _namespace(parser, table, file)
    each = {
        target: _namespace(parser, table | more, file)
        for target, more in classes.items()
    }
    return parser.parse_args(arguments, general), each


def _namespace(
    parser: argparse.ArgumentParser, table: dict[str, Any], file: Path
) -> argparse.Namespace:
    """Return a table of settings as options that the command line can change."""
    made = argparse.Namespace()
    known = vars(parser.parse_args([]))
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known or name in ("targets", "explain"):
            raise ValueError(f"{file} has {key!r} in [tool.attncheck], and the options "
                             f"are {', '.join(sorted(known))}.")  # fmt: skip
        if name in ("set", "config") and isinstance(value, dict):
            value = [f"{one}={each!r}" for one, each in value.items()]
        if name in ("rope", "qk_norm", "prenorm", "postnorm") and value is True:
            value = "on"
        if name in ("select", "ignore") and isinstance(value, list):
            value = ",".join(value)
        setattr(made, name, value)
    return made


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attention-check",
        description="Test what an attention class computes, and name its mistake.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="target",
        help="path/to/file.py:ClassName, file.py:factory(), notebook.ipynb:ClassName, "
        "module:ClassName, or a file or folder, to check all its attention classes",
    )
    parser.add_argument("--explain", metavar="CODE", help="explain a code")
    parser.add_argument("--version", action="version", version=_version())
    _add_building(parser.add_argument_group("how to build and call it"))
    _add_layer(parser.add_argument_group("what it does besides attention"))
    _add_report(parser.add_argument_group("what to report"))
    return parser


def _add_building(group: argparse._ArgumentGroup) -> None:
    for name in SIZES[:-1]:
        group.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N")
    group.add_argument("--dropout", type=float, metavar="P")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other constructor argument; can be repeated",
    )
    group.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting, for a constructor that takes a config object",
    )
    group.add_argument("--call", metavar="CODE", help="'lambda module, x: …' or f.py:f")
    group.add_argument(
        "--weights", metavar="CODE", help="its weights: 'lambda module: {…}' or f.py:f"
    )
    group.add_argument(
        "--reference", metavar="CODE", help="a correct class, f.py:Class, or none"
    )
    group.add_argument("--layout", choices=("btd", "tbd"), default="btd")
    group.add_argument(
        "--time-limit", type=float, default=10.0, metavar="S", help="seconds per call"
    )


def _add_layer(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--no-causal",
        dest="causal",
        action="store_false",
        help="every token sees all tokens",
    )
    group.add_argument(
        "--rope",
        nargs="?",
        const="on",
        type=_rope_words,
        metavar="HOW",
        help="rotary positions: on, halves or neighbors; add ,other-way if they "
        "turn the other way",
    )
    group.add_argument("--rope-base", type=float, metavar="BASE")
    group.add_argument(
        "--rope-share", type=float, metavar="SHARE", help="share of each head to rotate"
    )
    group.add_argument("--window", type=int, metavar="N")
    group.add_argument(
        "--first", type=int, metavar="N", help="first tokens, always visible"
    )
    group.add_argument("--exclusive", action="store_true", help="no token sees itself")
    group.add_argument("--memory", type=int, metavar="N", help="cross-attention")
    group.add_argument("--alibi", action="store_true")
    norms = ("on", "layer", "rms", "l2")
    group.add_argument("--qk-norm", nargs="?", const="on", choices=norms)
    group.add_argument(
        "--norm-over", choices=("heads", "all"), help="per head, or all at once"
    )
    group.add_argument(
        "--norm-late", action="store_true", help="queries and keys: behind the rotation"
    )
    group.add_argument("--prenorm", nargs="?", const="on", choices=norms)
    group.add_argument(
        "--residual", nargs="?", const=True, choices=("late",),
        help="adds its input; late: behind the norm of the output",
    )  # fmt: skip
    group.add_argument("--postnorm", nargs="?", const="on", choices=norms)
    group.add_argument("--softcap", type=float, metavar="CAP")
    group.add_argument(
        "--scale", metavar="HOW", help="1/d, none, or a number to multiply by"
    )
    group.add_argument(
        "--bias", metavar="CODE", help="'lambda module, t: …', added to scores"
    )
    group.add_argument(
        "--sink", "--sinks", nargs="?", const="learned", choices=("learned", "zero"),
        help="an extra score for each head",
    )  # fmt: skip
    group.add_argument("--documents", action="store_true", help="packed into one row")


def _rope_words(text: str) -> str:
    words = text.split(",")
    if not set(words) <= {"on", "halves", "neighbors", "other-way"}:
        raise argparse.ArgumentTypeError(
            f"{text!r} isn't on, halves or neighbors, with or without ,other-way"
        )
    return text


def _add_report(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--select", default="", metavar="CODES", help="only these")
    group.add_argument("--ignore", default="", metavar="CODES", help="all but these")
    group.add_argument("--strict", action="store_true", help="warnings fail too")
    group.add_argument("--format", choices=list(FORMATS), default="text")
    group.add_argument("--output", metavar="FILE", help="write the report to a file")
