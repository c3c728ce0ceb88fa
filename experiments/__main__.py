"""Run all experiments, one after the other: ``python -m experiments``.

With names, only those: ``python -m experiments induction text``.
"""

import importlib
import sys

NAMES = ("bottleneck", "induction", "text")


def main():
    """Run the experiments that the command line names."""
    names = sys.argv[1:] or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"There is no experiment {unknown[0]!r}. Choose from {list(NAMES)}.")
    for name in names:
        print(f"{name}:", flush=True)
        importlib.import_module(f"experiments.{name}").main()


if __name__ == "__main__":
    main()
