"""Whatever is handed in is read, or is named for what it is."""

import os

import pytest

from coding_attention.grading import ASSIGNMENTS, grade
from coding_attention.grading.submissions import MEGABYTES, find_files, read

NONSENSE = {
    "a list": ("[]", "it has no list of cells"),
    "a number": ("3", "it has no list of cells"),
    "cells that are none": ('{"cells": 3}', "it has no list of cells"),
    "no cells": ('{"cells": []}', "without any code"),
    "cells of nothing": ('{"cells": [3, null]}', "without any code"),
    "text alone": (
        '{"cells": [{"cell_type": "markdown", "source": "x"}]}', "without any code"
    ),
    "a number for a source": (
        '{"cells": [{"cell_type": "code", "source": 3}]}', "has no readable text"
    ),
    "deep": ("[" * 100_000, "it isn't JSON"),
    "blanks": (" \n ", "an empty file"),
    "half": ('{"cells": [', "it isn't JSON"),
}  # fmt: skip


@pytest.mark.parametrize("how", NONSENSE)
def test_nonsense_is_named(tmp_path, how):
    text, reason = NONSENSE[how]
    (tmp_path / "it.ipynb").write_text(text)
    (row,) = grade([tmp_path], ASSIGNMENTS["weights"]).rows
    assert row.status == "not run"
    assert reason in row.reason


def test_what_is_no_file_of_text(tmp_path):
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe\x00\x01")
    assert "isn't UTF-8 text" in read(tmp_path / "bytes.ipynb").problem
    assert read(tmp_path / "missing.ipynb").problem == "no such file"
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert read(tmp_path / "pipe.ipynb").problem == "no such file"


def test_a_huge_file_is_not_read(tmp_path):
    with (tmp_path / "huge.ipynb").open("wb") as file:
        file.truncate(2 * MEGABYTES * 10**6)
    assert "40 MB, over the limit of 20" in read(tmp_path / "huge.ipynb").problem


def test_a_folder_gives_its_notebooks_and_no_copies(tmp_path):
    for name in ("b/two.ipynb", "a/one.ipynb", ".ipynb_checkpoints/one.ipynb", "x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [file.name for file in find_files([tmp_path])] == ["one.ipynb", "two.ipynb"]
