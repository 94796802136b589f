"""Sizes computed from named dimensions: texts that keep their structure."""

from __future__ import annotations

import re


class ComputedSize(str):
    """Size computed from named dimensions; it equals no name of the same text.

    Examples
    --------
    >>> from pytensor_onnx.graph.dims import sum_dim
    >>> sum_dim(["k", 1]), sum_dim(["k", 1]) == "k+1", sum_dim(["k", 1]) == sum_dim([1, "k"])
    (k+1, False, True)
    """

    __slots__ = ()

    # Texts of different sizes differ, since names that are no plain words are quoted in them.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComputedSize) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return str(self)


class Polynomial(ComputedSize):
    """Sum of products of dimensions, with positive coefficients."""

    __slots__ = ("terms",)
    terms: tuple[tuple[tuple[str, ...], int], ...]

    def __new__(cls, *terms: tuple[tuple[str, ...], int]) -> Polynomial:
        """Take terms: the factors of each, and its coefficient."""
        self = super().__new__(cls, "+".join(_product_text(*term) for term in terms))
        self.terms = terms
        return self

    def __getnewargs__(self) -> tuple:
        return self.terms


class SliceLength(ComputedSize):
    """Length of a slice along a dimension; bounds of None are open."""

    __slots__ = ("bounds", "whole")
    whole: str
    bounds: tuple[int | None, int | None, int]

    def __new__(cls, whole: str, start: int | None, stop: int | None, step: int) -> SliceLength:
        """Take the dimension that is sliced, and the bounds."""
        text = f"({whole})" if isinstance(whole, Polynomial) else atom_text(whole)
        bounds = ["" if bound is None else str(bound) for bound in (start, stop)]
        self = super().__new__(cls, f"{text}[{':'.join(bounds)}{f':{step}' if step != 1 else ''}]")
        self.whole, self.bounds = whole, (start, stop, step)
        return self

    def __getnewargs__(self) -> tuple:
        return (self.whole, *self.bounds)


def _product_text(names: tuple[str, ...], coefficient: int) -> str:
    number = [str(coefficient)] if coefficient != 1 or not names else []
    return "*".join([*number, *map(atom_text, names)])


def atom_text(name: str) -> str:
    """Return the text of a dimension within a computed size.

    Examples
    --------
    >>> atom_text("k"), atom_text("k+1")
    ('k', "'k+1'")
    """
    return str(name) if isinstance(name, ComputedSize) or is_plain(name) else repr(name)


def is_plain(name: str) -> bool:
    """Return whether a name cannot be confused with a computed size.

    Examples
    --------
    >>> is_plain("batch"), is_plain("k+1"), is_plain("3")
    (True, False, False)
    """
    return not (name.isdecimal() or re.search(r"""[+*()\[\]'"]""", name))
