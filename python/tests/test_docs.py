"""Every Python block of the documentation runs, in order and in an empty folder; the reference is up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ray

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"


@pytest.mark.parametrize("page", [ROOT / "docs" / "python.md", PYTHON / "README.md", ROOT / "README.md"])
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        code = block.group(1)
        # Line numbers of the page, for messages.
        before = text.count("\n", 0, block.start(1))
        exec(compile("\n" * before + code, str(page), "exec"), names)
    ray.shutdown()


@pytest.mark.parametrize("example", sorted((PYTHON / "examples").glob("*.py")), ids=lambda path: str(path.name))
def test_examples_run(example: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_reference_is_up_to_date(tmp_path: Path) -> None:
    made = tmp_path / "python-api.md"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(PYTHON / "make_reference.py"), str(made)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    expected = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    assert made.read_text(encoding="utf-8") == expected, "run python/make_reference.py"
