"""Random numbers from a counter: a state of three words determines all draws.

`ops.random.draws` has the Ops that draw, with their reference in NumPy. `threefry` and `samplers`
define them in operators that every ONNX runtime has, and `distributions` has all else.
"""
