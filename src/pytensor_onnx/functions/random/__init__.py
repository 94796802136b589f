"""Random numbers from a counter: what is drawn follows from a state of four words alone.

`reference` says in NumPy what is drawn, `ops` has the Ops that draw, `threefry` and `samplers`
define them in operators that every ONNX runtime has, and `distributions` makes all else of them.
"""
