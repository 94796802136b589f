"""Leave-one-out cross-validation over all rows by actors of Ray: python loo_with_ray.py loo."""

from pathlib import Path

import numpy as np
import ray
from arviz_stats.base import array_stats
from ray.data.aggregate import Count, Max, Std, Sum

from pytensor_onnx_scoring import Scorer


class Loo:
    """An actor that opens the file and the draws once."""

    def __init__(self, folder: Path) -> None:
        draws = np.load(folder / "draws.npy")
        self.scorer = Scorer(folder / "density.onnx", constants={"point": draws})

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the terms of a batch of rows, and their Pareto k."""
        by_draw = self.scorer(batch)["logp_y"]
        elpd, k, _ = array_stats.loo(by_draw[:, None, :])
        return {"elpd": elpd, "k": k}


def loo(folder: Path) -> dict[str, float]:
    """Return the expected log predictive density, its standard error, and the largest Pareto k."""
    folder = folder.resolve()
    terms = ray.data.read_parquet(str(folder / "rows")).map_batches(
        Loo,
        fn_constructor_args=[folder],
        batch_size=2_000,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=2),
    )
    found = terms.aggregate(Sum("elpd"), Std("elpd"), Max("k"), Count())
    rows = found["count()"]
    se = rows**0.5 * found["std(elpd)"]
    return {"elpd": found["sum(elpd)"], "se": se, "k": found["max(k)"], "rows": rows}


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(loo, __doc__, "loo_make.py")
