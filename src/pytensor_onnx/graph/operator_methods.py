"""The standard operators as methods, declared one by one for editors by the stub beside it."""

from collections.abc import Callable
from functools import partial
from typing import Any


class Operators:
    """Gives every standard operator as a method that emits it."""

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self.op, op_type)
