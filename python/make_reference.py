"""Writes docs/python-api.md from the docstrings of the package.

    python python/make_reference.py [FILE]

Modules are read as text, not imported, so that it needs none of the packages that some of them use.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from pathlib import Path

# Modules with what they need, in the order of the page. Names of `boscage` itself are in the order of its `__all__`.
MODULES = ["boscage", "boscage.plots", "boscage.sklearn", "boscage.optuna", "boscage.ray"]
HEAD = """\
# The Python package: reference

Made from the docstrings by `python/make_reference.py`. [The tutorial](python.md) shows how things go together.
"""

Definition = ast.FunctionDef | ast.ClassDef


def folder() -> Path:
    """Where the package is that Python would import."""
    found = importlib.util.find_spec("boscage")
    if found is None or found.origin is None:
        raise SystemExit("boscage is not installed, and its folder is not in PYTHONPATH")
    return Path(found.origin).parent


def definitions(path: Path) -> dict[str, Definition]:
    """The functions and classes of a file, by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public(path: Path) -> list[str]:
    """The names in a file's `__all__`, or without one all that do not begin with an underscore."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return [name for name in definitions(path) if not name.startswith("_")]


def prose(text: str) -> str:
    """A docstring as Markdown: examples become blocks, Sphinx's roles and double backquotes become code."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.cleandoc(text)).replace("``", "`")
    lines: list[str] = []
    within = False
    for line in text.split("\n"):
        if line.startswith(">>> ") and not within:
            lines.append("```pycon")
            within = True
        elif within and not line:
            lines.append("```")
            within = False
        lines.append(line)
    if within:
        lines.append("```")
    return "\n".join(lines)


def signature(node: ast.FunctionDef, name: str, *, method: bool) -> str:
    """How it is called."""
    arguments = ast.parse(ast.unparse(node.args).join(("def f(", "): ..."))).body[0]
    assert isinstance(arguments, ast.FunctionDef)
    first = arguments.args.posonlyargs or arguments.args.args
    if method and first and first[0].arg in ("self", "cls"):
        del first[0]
    result = "" if node.returns is None or name == node.name == "__init__" else f" -> {ast.unparse(node.returns)}"
    parts = ast.unparse(arguments.args)
    line = f"{name}({parts}){result}"
    if len(line) <= 100:
        return line
    # One argument a line; commas within brackets do not part arguments.
    split, depth, begin = [], 0, 0
    for place, character in enumerate(parts):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            split.append(parts[begin:place].strip())
            begin = place + 1
    split.append(parts[begin:].strip())
    return f"{name}(\n" + "".join(f"    {part},\n" for part in split) + f"){result}"


def decorators(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    return {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}


def of_function(node: ast.FunctionDef, name: str, *, method: bool = False) -> str:
    return f"```python\n{signature(node, name, method=method)}\n```\n\n{prose(ast.get_docstring(node) or '')}\n"


def of_class(node: ast.ClassDef, title: str) -> str:
    """A class with its fields, properties and methods."""
    text = ""
    made = next((f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    if "dataclass" in decorators(node):
        fields = [ast.unparse(f) for f in node.body if isinstance(f, ast.AnnAssign) and "init=False" not in ast.unparse(f)]
        text += "```python\n" + f"{title}(\n" + "".join(f"    {one},\n" for one in fields) + ")\n```\n\n"
    elif made is not None and not title.endswith("Model"):
        text += f"```python\n{signature(made, title, method=True)}\n```\n\n"
    text += prose(ast.get_docstring(node) or "") + "\n"
    listed = []
    for member in node.body:
        if not isinstance(member, ast.FunctionDef) or member.name.startswith("_") or "overload" in decorators(member):
            continue
        words = prose(ast.get_docstring(member) or "").replace("\n\n", "\n").replace("\n", "\n  ")
        if "property" in decorators(member):
            kind = "" if member.returns is None else f": {ast.unparse(member.returns)}"
            listed.append(f"- `{member.name}{kind}`  \n  {words}\n")
        else:
            call = " ".join(signature(member, member.name, method=True).split()).replace("( ", "(").replace(", )", ")")
            listed.append(f"- `{call}`  \n  {words}\n")
    return text + ("\n" + "".join(listed) if listed else "")


def page() -> str:
    """The whole page."""
    package = folder()
    within: dict[str, Definition] = {}
    for path in sorted(package.glob("_*.py")):
        if path.name != "__init__.py":
            within.update(definitions(path))
    # The exceptions are compiled; their stubs say what they are.
    within.update({name: node for name, node in definitions(package / "_native.pyi").items() if isinstance(node, ast.ClassDef)
                   and name not in within})  # fmt: skip
    text = HEAD
    for module in MODULES:
        path = package / ("__init__.py" if module == "boscage" else f"{module.split('.')[1]}.py")
        if not path.exists():
            continue
        known = within if module == "boscage" else definitions(path)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        text += f"\n## `{module}`\n\n{prose(ast.get_docstring(tree) or '')}\n"
        for name in public(path):
            node = known.get(name)
            if node is None:
                continue
            text += f"\n### `{name}`\n\n"
            text += of_class(node, name) if isinstance(node, ast.ClassDef) else of_function(node, name)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "docs" / "python-api.md"
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target.write_text(page(), encoding="utf-8")
