"""The command line of the scripts: which folder, what starts, and what came out."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds


def run_on_rows(function: Callable[[Path], Any], description: str | None, maker: str) -> None:
    """Apply a function to the folder of the command line; print rows, seconds and the result.

    Parameters
    ----------
    function
        Function of the folder that returns the path of a result, or numbers by name.
    description
        Documentation of the script.
    maker
        Script that writes such a folder.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, help=f"folder that {maker} wrote")
    folder = parser.parse_args().folder
    if not (folder / "rows").is_dir():
        parser.error(f"{folder} has no folder of rows: write it by python {maker} {folder}")
    count = ds.dataset(folder / "rows").count_rows()
    print(f"{count:,} rows of {folder / 'rows'} ...", flush=True)
    start = time.perf_counter()
    result = function(folder)
    seconds = time.perf_counter() - start
    if isinstance(result, dict):
        result = ", ".join(f"{name} {value:,.6g}" for name, value in result.items())
    print(f"{count:,} rows in {seconds:.1f} s, {count / seconds:,.0f} a second: {result}")
