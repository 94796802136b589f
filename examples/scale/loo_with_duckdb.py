"""Leave-one-out cross-validation over all rows in SQL of DuckDB: python loo_with_duckdb.py loo."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from arviz_stats.base import array_stats

from pytensor_onnx_scoring import Scorer


def loo(folder: Path) -> dict[str, float]:
    """Return the expected log predictive density, its standard error, and the largest Pareto k."""
    draws = np.load(folder / "draws.npy")
    scorer = Scorer(folder / "density.onnx", constants={"point": draws})
    names = list(scorer.input_columns)

    def loo_of_rows(*columns: pa.ChunkedArray) -> pa.Array:
        by_draw = scorer(dict(zip(names, columns, strict=True)))["logp_y"]
        elpd, k, _ = array_stats.loo(by_draw[:, None, :])
        return pa.StructArray.from_arrays([pa.array(elpd), pa.array(k)], ["elpd", "k"])

    with duckdb.connect() as database:
        result = duckdb.struct_type({"elpd": "DOUBLE", "k": "DOUBLE"})
        database.create_function("loo", loo_of_rows, None, result, type="arrow")
        rows = f"SELECT loo({', '.join(names)}) AS loo FROM '{folder}/rows/*.parquet'"
        found = database.execute(
            "SELECT sum(loo.elpd), sqrt(count(*) * var_samp(loo.elpd)), max(loo.k), count(*) "
            f"FROM ({rows})"
        ).fetchone()
    return dict(zip(("elpd", "se", "k", "rows"), found or (), strict=True))


if __name__ == "__main__":
    from command import run_on_rows

    run_on_rows(loo, __doc__, "loo_make.py")
