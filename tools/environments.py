"""Run the pages where readers do: in new environments, each page in an empty folder.

    python -m tools.environments                 all of them, every page
    python -m tools.environments colab --pages 02 05
    python -m tools.environments bare --python python3.12

    binder   built by the recipe in binder/, as repo2docker follows it, without Docker
    colab    PyTorch, NumPy, matplotlib and ipywidgets; the page installs the book
    bare     PyTorch and JupyterLab; the page installs the book
    other    the same with another project's package `attention`

The book is installed from this repository as it is committed. Prints megabytes, seconds
and the pages that ran; exits with 1 if one did not.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from coding_attention import address
from tools.notebooks import paired_pages

ROOT = Path(__file__).resolve().parent.parent
# What is there before a page is opened: arguments of pip.
BEFORE = {
    "binder": [],
    "colab": [["torch", "numpy", "matplotlib", "ipywidgets", "ipykernel"]],
    "bare": [["torch", "jupyterlab"]],
    # Its own requirements are TensorFlow: what matters here is the name.
    "other": [["torch", "jupyterlab"], ["--no-deps", "attention"]],
}

COLOR = re.compile(r"\x1b\[[\d;]*m")  # what a kernel puts around an error's name


class Environment:
    """A new environment in a folder of its own, and a kernel for it."""

    def __init__(self, kind, folder, python):
        self.kind, self.folder, self.seconds = kind, folder, {}
        run(python, "-m", "venv", folder / "env")
        self.python = folder / "env" / "bin" / "python"
        # Of this machine, only pip's settings: no home, and no path to this checkout.
        self.variables = os.environ | {
            "HOME": str(folder / "home"),
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": "",
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        }
        self.copy = folder / "copy"
        run("git", "clone", "--quiet", ROOT, self.copy)
        before = time.monotonic()
        if kind == "binder":
            self._follow_the_recipe()
        for arguments in BEFORE[kind]:
            self.pip(*arguments)
        self.seconds["built"] = time.monotonic() - before
        spec = folder / "jupyter" / "kernels" / "reader"
        spec.mkdir(parents=True)
        argv = [str(self.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        told = {"argv": argv, "display_name": "reader", "language": "python"}
        (spec / "kernel.json").write_text(json.dumps(told), encoding="utf-8")

    def _follow_the_recipe(self):
        # Constraints are those that the recipe names.
        del self.variables["PIP_CONSTRAINT"]
        wanted = (self.copy / "binder" / "runtime.txt").read_text().strip()
        version = subprocess.check_output([self.python, "--version"], text=True)
        if not version.startswith(wanted.replace("python-", "Python ")):
            sys.exit(f"binder/runtime.txt asks for {wanted}: --python {wanted[:6]}…")
        self.pip("--no-cache-dir", "-r", "binder/requirements.txt")
        self.variables["NB_PYTHON_PREFIX"] = str(self.folder / "env")
        run("bash", "binder/postBuild", cwd=self.copy, env=self.variables)

    def pip(self, *arguments):
        """Install something there."""
        command = [self.python, "-m", "pip", "install", "--quiet", *arguments]
        run(*command, cwd=self.copy, env=self.variables)

    def megabytes(self):
        """Give the size of what is installed."""
        told = run("du", "-sm", self.folder / "env", stdout=subprocess.PIPE, text=True)
        return int(told.stdout.split()[0])

    def open(self, page):
        """Run a page as it is stored, in an empty folder; give why it stopped."""
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError

        notebook = nbformat.read(page, as_version=4)
        commit = subprocess.check_output(
            ["git", "rev-parse", "HEAD"], cwd=self.copy, text=True
        ).strip()
        # Older pips want a host in an address.
        address.with_cell(notebook, f"file://localhost{self.copy}", commit)
        os.environ["JUPYTER_PATH"] = str(self.folder / "jupyter")
        before, codes = time.monotonic(), 0
        with tempfile.TemporaryDirectory() as empty:
            client = NotebookClient(
                notebook,
                timeout=900,
                kernel_name="reader",
                resources={"metadata": {"path": empty}},
            )
            try:
                with client.setup_kernel(env=self.variables, cwd=empty):
                    for index, cell in enumerate(notebook.cells):
                        client.execute_cell(cell, index)
                        codes += cell.cell_type == "code"
                        if codes in (1, 2) and cell.cell_type == "code":
                            step = ("install cell", "first cell")[codes - 1]
                            passed = time.monotonic() - before
                            self.seconds.setdefault(step, passed)
            except (CellExecutionError, DeadKernelError) as error:
                return COLOR.sub("", str(error).strip().splitlines()[-1])
        return ""


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=[*BEFORE, []], help="default: all")
    parser.add_argument("--pages", nargs="*", default=[""], help="parts of names")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    pages = [
        page.with_suffix(".ipynb")
        for page in paired_pages()
        if any(name in page.stem for name in options.pages)
    ]
    failed = 0
    for kind in options.kinds or BEFORE:
        with tempfile.TemporaryDirectory() as folder:
            there = Environment(kind, Path(folder), options.python)
            size = there.megabytes()
            stopped = {page.stem: why for page in pages if (why := there.open(page))}
            told = ", ".join(f"{k} {s:.0f} s" for k, s in there.seconds.items())
            print(f"{kind}: {size} MB, {told}, {len(pages) - len(stopped)} of "
                  f"{len(pages)} pages ran", flush=True)  # fmt: skip
            for page, why in stopped.items():
                print(f"  {page}: {why}")
            failed += len(stopped)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
