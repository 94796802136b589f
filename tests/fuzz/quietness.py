"""PyTensor without compilers and without its warnings."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import pytensor


@contextmanager
def quiet() -> Iterator[None]:
    """Compile nothing in C, and leave out what PyTensor has to say of its rewrites.

    Without the stack traces that it keeps for its messages, too: they take a tenth of the time.
    """
    logger = logging.getLogger("pytensor")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with (
            open(os.devnull, "w") as nowhere,
            redirect_stderr(nowhere),
            warnings.catch_warnings(),
            pytensor.config.change_flags(cxx="", traceback__limit=0),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
