"""The words that models are shown, on programs and docstrings that models and users really write."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from operators.prompts import numbers, stub
from problems.tsp_construct import TASK


def test_imaginary_numbers_are_left_alone() -> None:
    """A run would end with a traceback as soon as a heuristic with complex numbers stood in the population."""
    code = f"{TASK.signature}\n    z = 0.5j + 1.5e0 * 0.0 + 2.5 + 3J\n    return unvisited_nodes[0]\n"
    assert [number.text for number in numbers(TASK, code)] == ["1.5e0", "2.5"]


@pytest.mark.parametrize("docstring", ['ends in a "quote"', 'has """three""" quotes', "plain\nlines", '"'])
def test_the_stub_is_python_whatever_the_docstring_holds(docstring: str) -> None:
    """The model would be shown broken Python for a problem whose docstring quotes something."""
    tree = ast.parse(stub(replace(TASK, docstring=docstring)) + "\n    return 0\n")
    assert isinstance(tree.body[-1], ast.FunctionDef)
