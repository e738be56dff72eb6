# SPDX-License-Identifier: MIT
"""A plugin of pytest for a preset that need not see every test of a file: BECALM_CHOSEN is a regular expression, and a test is left
out unless it says a word of that, or uses something of its file that does: a constant, a function, a fixture. BECALM_CHOSEN_BESIDE_ASAN
is one that counts where BECALM_BESIDE_ASAN is set, too: asan runs the others. Without them all tests run; tests/CMakeLists.txt has
the words and the reasons."""

import ast
import os
import pathlib
import re


def names_of(node):
    """The names that a function uses: variables, and the fixtures in its parameters."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value  # usefixtures("name")


def defined_by(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return []


def speaking(text, words):
    """The names of a file whose definition says one of the words, or uses one that does."""
    lines = text.splitlines()
    uses, found = {}, set()
    for node in ast.parse(text).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        said = re.search(words, "\n".join(lines[first - 1 : node.end_lineno]))
        for name in defined_by(node):
            uses.setdefault(name, set()).update(names_of(node))
            if said:
                found.add(name)
    while more := {name for name, used in uses.items() if name not in found and used & found}:
        found |= more
    return found


def pytest_collection_modifyitems(config, items):
    beside_asan = "BECALM_BESIDE_ASAN" in os.environ
    words = os.environ.get("BECALM_CHOSEN_BESIDE_ASAN" if beside_asan else "BECALM_CHOSEN")
    if not words:
        return
    by_file = {}
    chosen, others = [], []
    for item in items:
        path = pathlib.Path(item.fspath)
        if path not in by_file:
            by_file[path] = speaking(path.read_text(), words)
        (chosen if item.nodeid.split("::")[1].split("[")[0] in by_file[path] else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen
