"""``python -m experiments.field``: run the checker on other people's classes.

- ``blind SET VERSION [FOLDER]``: a set by people who had not seen the checker
- ``study CLONES``: classes that we knew while we worked
- ``page``: write the stored results into book/checker.md
"""

import argparse
from pathlib import Path

from experiments.field import blind, study, table


def main():
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("blind")
    one.add_argument("set")
    one.add_argument("version", help="the commit of the checker")
    one.add_argument("folder", type=Path, nargs="?")
    one.add_argument("--only", default="", help="a pattern in an id")
    one = what.add_parser("study")
    one.add_argument("clones", type=Path)
    one.add_argument("--only", default="", help="part of a repository's name")
    what.add_parser("page")
    options = parser.parse_args()
    if options.what == "blind":
        blind.run(options.set, options.version, options.folder, options.only)
    elif options.what == "study":
        study.run(options.clones, options.only)
    else:
        table.write()


if __name__ == "__main__":
    main()
