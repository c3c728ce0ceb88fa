"""Train the book's small models, one after the other: ``python -m experiments``.

With names, only those: ``python -m experiments induction text``. Each trains the models
of one module of ``coding_attention.models`` and stores what the pages show. The field
study and the trained model have commands of their own: ``experiments.field`` and
``experiments.real``.
"""

import dataclasses
import importlib
import sys

from experiments import runs

NAMES = ("agreement", "bottleneck", "halves", "induction", "root", "text")


def run(name):
    """Train all models of one experiment; store results, and the first seed's weights.

    Args:
        name: of a module that holds ``Config``, ``CODE`` (the modules whose code made
            the results), ``parts`` (the arguments of each model), ``fit`` (trains one)
            and ``file_name`` (where the weights of a result go; ``None``: nowhere).
    """
    module = importlib.import_module(f"coding_attention.models.{name}")
    config = module.Config()
    code = runs.fingerprint(config, *module.CODE)
    results, made_with = runs.run_parts(module.fit, config, module.parts(config), code)
    for result in results:
        weights = result.pop("weights")
        if result["seed"] == config.seeds[0] and module.file_name(result):
            runs.save_weights(module.file_name(result), weights)
    runs.save_results(
        name,
        {
            "code": code,
            "config": dataclasses.asdict(config),
            "made_with": made_with,
            "runs": results,
        },
    )
    runs.forget(code)


def main():
    """Run the experiments that the command line names."""
    names = sys.argv[1:] or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"There is no experiment {unknown[0]!r}. Choose from {list(NAMES)}.")
    for name in names:
        print(f"{name}:", flush=True)
        run(name)


if __name__ == "__main__":
    main()
