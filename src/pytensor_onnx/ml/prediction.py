"""Switch layers of pytensor-ml from training to prediction."""

import sys
from collections.abc import Sequence

from pytensor.graph.basic import Variable


def prediction(outputs: Variable | Sequence[Variable]) -> Variable | Sequence[Variable]:
    """Return outputs in prediction mode: without dropout, with running statistics."""
    if "pytensor_ml" not in sys.modules:
        return outputs
    from pytensor_ml.pytensorf import rewrite_for_prediction

    return rewrite_for_prediction(outputs)
