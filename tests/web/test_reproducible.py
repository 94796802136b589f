"""Models of the page on reproducible results: natively, without AVX2, and in Node."""

import onnx
import pytest

from pytensor_onnx import native
from scripts.reproducible import NINE, in_node
from tests.native.machines import digest
from tests.web.tapes import natively, needs_tapes


@pytest.mark.parametrize(
    "name",
    [
        "density and gradient: radon, 919 rows",
        "density and gradient: negative binomial",
        "training step",
    ],
)
def test_results_have_equal_bits_on_three_kinds_of_machines(name, tmp_path):
    needs_tapes()
    program, feed = NINE[name]()
    path = tmp_path / "model.onnx"
    onnx.save(program.proto, path)
    found = []
    for narrow in (0, 1):
        native.handle().pytensor_onnx_use_narrow_vectors(narrow)
        try:
            session = natively(path)
            found.append(
                dict(
                    zip(
                        [x.name for x in session.get_outputs()],
                        session.run(None, feed),
                        strict=True,
                    )
                )
            )
        finally:
            native.handle().pytensor_onnx_use_narrow_vectors(0)
    found.append(in_node(program, feed))
    assert len({digest([x[name] for name in sorted(x)]) for x in found}) == 1
