"""Transforms of the scores of estimators of ai.onnx.ml."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pytensor_onnx.errors import UnsupportedCase
from pytensor_onnx.importing.registry.known_values import like


def transformed(scores: TensorVariable, name: str) -> TensorVariable:
    """Return scores after a transform of the standard.

    Examples
    --------
    >>> transformed(pt.constant([[0.0, 1.0]]), "SOFTMAX_ZERO").eval()
    array([[0., 1.]])
    """
    if name == "NONE":
        return scores
    if scores.type.shape[-1] == 1 and name != "PROBIT":
        raise UnsupportedCase(
            f"its transform {name} of a single score is not applied by ONNX Runtime",
            "write NONE to the file, and apply the transform after the import",
        )
    if name == "LOGISTIC":
        return pt.sigmoid(scores)
    if name == "SOFTMAX":
        return pt.special.softmax(scores, axis=-1)
    if name == "SOFTMAX_ZERO":
        # Zeros stay, and have no part in the sum.
        is_zero = pt.abs(scores) <= like(scores, 1e-7)
        top = pt.max(scores, axis=-1, keepdims=True)
        powers = pt.switch(is_zero, like(scores, 0), pt.exp(scores - top))
        return powers / powers.sum(axis=-1, keepdims=True)
    if name == "PROBIT":
        return like(scores, 2**0.5) * pt.erfinv(like(scores, 2) * scores - like(scores, 1))
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

    Examples
    --------
    >>> binary_scores(pt.constant([[0.25]]), "NONE", is_share=True).eval()
    array([[0.75, 0.25]])
    """
    if name == "PROBIT":
        raise UnsupportedCase("runtimes have no results for its transform PROBIT of two labels")
    if name == "LOGISTIC":
        return pt.concatenate([pt.sigmoid(-score), pt.sigmoid(score)], axis=1)
    first = like(score, 1) - score if is_share else -score
    return pt.concatenate([first, score], axis=1)
