"""Transforms of the scores of estimators of ai.onnx.ml."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry import known_values


def transformed(scores: TensorVariable, name: str) -> TensorVariable:
    """Return scores after a transform of the standard.

    Examples
    --------
    >>> transformed(pt.constant([[0.0, 1.0]]), "SOFTMAX_ZERO").eval()
    array([[0., 1.]])
    """
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return pt.sigmoid(scores)
    if name == "SOFTMAX":
        return pt.special.softmax(scores, axis=-1)
    if name == "SOFTMAX_ZERO":
        # Zeros stay, and have no part in the sum.
        is_zero = pt.eq(scores, known_values.like(scores, 0))
        top = pt.max(scores, axis=-1, keepdims=True)
        powers = pt.switch(is_zero, known_values.like(scores, 0), pt.exp(scores - top))
        total = powers.sum(axis=-1, keepdims=True)
        return powers / pt.switch(
            pt.eq(total, known_values.like(scores, 0)), known_values.like(scores, 1), total
        )
    if name == "PROBIT":
        return known_values.like(scores, 2**0.5) * pt.erfinv(
            known_values.like(scores, 2) * scores - known_values.like(scores, 1)
        )
    raise UnsupportedCase(f"its transform {name.lower()} of scores is not known")


def binary_scores(score: TensorVariable, name: str, is_share: bool) -> TensorVariable:
    """Return the scores of two labels for the score (rows, 1) of the second.

    Parameters
    ----------
    score
        The score.
    name
        The transform.
    is_share
        Whether both scores add up to one; otherwise one is the negative of the other.
    """
    if name == "LOGISTIC":
        second = pt.sigmoid(score)
        first = known_values.like(score, 1) - second if is_share else pt.sigmoid(-score)
        return pt.concatenate([first, second], axis=1)
    if name == "PROBIT":
        return transformed(score, name)
    first = known_values.like(score, 1) - score if is_share else -score
    return pt.concatenate([first, score], axis=1)
