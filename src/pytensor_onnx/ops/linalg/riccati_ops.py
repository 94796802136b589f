"""The discrete algebraic Riccati equation."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply

from pytensor_onnx.ops.linalg.factorisations import Part


class DiscreteRiccati(Part):
    """Stabilising solution of a discrete algebraic Riccati equation."""

    gufunc_signature = "(m,m),(m,n),(m,m),(n,n)->(m,m)"

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Compute the solution by SciPy, NaN where there is none."""
        import scipy.linalg  # type: ignore[import-untyped]

        try:
            solution = scipy.linalg.solve_discrete_are(*inputs)
        except np.linalg.LinAlgError:
            solution = np.full_like(inputs[0], np.nan)
        except ValueError as error:
            if "symmetric" not in str(error):
                raise
            solution = np.full_like(inputs[0], np.nan)
        output_storage[0][0] = np.asarray(solution, dtype=node.outputs[0].type.dtype)
