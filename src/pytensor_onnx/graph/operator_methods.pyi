"""Operators of opset 21 and later ones, by `scripts/make_operators.py`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from pytensor_onnx.graph.emitter import Operand

class Operators:
    """Gives every standard operator as a method that emits it."""

    def op(self, op_type: str, *operands: Operand, outputs: int = 1, **attributes: Any) -> Any: ...
    def Abs(self, X: Operand, /) -> ir.Value:
        """Absolute takes one input data (Tensor) and produces one output data (Tensor) where …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Acos(self, input: Operand, /) -> ir.Value:
        """Calculates the arccosine (inverse of cosine) of the given input tensor, element- …

        T: float16, float32, float64.
        """

    def Acosh(self, input: Operand, /) -> ir.Value:
        """Calculates the hyperbolic arccosine of the given input tensor element-wise.

        T: float16, float32, float64.
        """

    def Add(self, A: Operand, B: Operand, /) -> ir.Value:
        """Performs element-wise binary addition (with Numpy-style broadcasting support).

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def AffineGrid(self, theta: Operand, size: Operand, /, *, align_corners: int = 0) -> ir.Value:
        """Generates a 2D or 3D flow field (sampling grid), given a batch of affine matrices …

        T1: bfloat16, float16, float32, float64.
        T2: int64.
        """

    def And(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the and logical operation elementwise …

        T: bool.
        T1: bool.
        """

    def ArgMax(
        self, data: Operand, /, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> ir.Value:
        """Computes the indices of the max elements of the input tensor's element along the …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def ArgMin(
        self, data: Operand, /, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> ir.Value:
        """Computes the indices of the min elements of the input tensor's element along the …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Asin(self, input: Operand, /) -> ir.Value:
        """Calculates the arcsine (inverse of sine) of the given input tensor, element-wise.

        T: float16, float32, float64.
        """

    def Asinh(self, input: Operand, /) -> ir.Value:
        """Calculates the hyperbolic arcsine of the given input tensor element-wise.

        T: float16, float32, float64.
        """

    def Atan(self, input: Operand, /) -> ir.Value:
        """Calculates the arctangent (inverse of tangent) of the given input tensor, element- …

        T: float16, float32, float64.
        """

    def Atanh(self, input: Operand, /) -> ir.Value:
        """Calculates the hyperbolic arctangent of the given input tensor element-wise.

        T: float16, float32, float64.
        """

    def Attention(
        self,
        Q: Operand,
        K: Operand,
        V: Operand,
        attn_mask: Operand = None,
        past_key: Operand = None,
        past_value: Operand = None,
        nonpad_kv_seqlen: Operand = None,
        /,
        *,
        is_causal: int = 0,
        kv_num_heads: int = ...,
        left_window_size: int = -1,
        q_num_heads: int = ...,
        qk_matmul_output_mode: int = 0,
        right_window_size: int = -1,
        scale: float = ...,
        softcap: float = ...,
        softmax_precision: int = ...,
        outputs: int = 1,
    ) -> Any:
        """Computes scaled dot product attention on query, key and value tensors, using an …

        Since opset 25.
        T1: bfloat16, float16, float32, float64.
        T2: bfloat16, float16, float32, float64.
        U: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def AveragePool(
        self,
        X: Operand,
        /,
        *,
        kernel_shape: Sequence[int],
        auto_pad: str = "NOTSET",
        ceil_mode: int = 0,
        count_include_pad: int = 0,
        dilations: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """AveragePool consumes an input tensor X and applies average pooling across the …

        T: float16, float32, float64.
        """

    def BatchNormalization(
        self,
        X: Operand,
        scale: Operand,
        B: Operand,
        input_mean: Operand,
        input_var: Operand,
        /,
        *,
        epsilon: float = ...,
        momentum: float = ...,
        training_mode: int = 0,
        outputs: int = 1,
    ) -> Any:
        """Carries out batch normalization as described in the paper …

        T: bfloat16, float16, float32, float64.
        T1: bfloat16, float16, float32, float64.
        T2: bfloat16, float16, float32, float64.
        """

    def Bernoulli(self, input: Operand, /, *, dtype: int = ..., seed: float = ...) -> ir.Value:
        """Draws binary random numbers (0 or 1) from a Bernoulli distribution.

        T1: float16, float32, float64.
        T2: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def BitCast(self, input: Operand, /, *, to: int) -> ir.Value:
        """Reinterprets the binary representation of a tensor as a different data type, …

        Since opset 26.
        T1: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, tensor(float4e2m1), tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz), tensor(float8e8m0), tensor(int2),
            tensor(int4), tensor(uint2), tensor(uint4), uint16, uint32, uint64, uint8.
        T2: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, tensor(float4e2m1), tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz), tensor(float8e8m0), tensor(int2),
            tensor(int4), tensor(uint2), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def BitShift(self, X: Operand, Y: Operand, /, *, direction: str) -> ir.Value:
        """Bitwise shift operator performs element-wise operation.

        T: uint16, uint32, uint64, uint8.
        """

    def BitwiseAnd(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulting from performing the bitwise and operation elementwise …

        T: int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        """

    def BitwiseNot(self, X: Operand, /) -> ir.Value:
        """Returns the bitwise not of the input tensor element-wise.

        T: int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        """

    def BitwiseOr(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulting from performing the bitwise or operation elementwise …

        T: int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        """

    def BitwiseXor(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulting from performing the bitwise xor operation elementwise …

        T: int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        """

    def BlackmanWindow(
        self, size: Operand, /, *, output_datatype: int = 1, periodic: int = 1
    ) -> ir.Value:
        """Generates a Blackman window as described in the paper …

        T1: int32, int64.
        T2: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def Cast(self, input: Operand, /, *, to: int, saturate: int = 1) -> ir.Value:
        """The operator casts the elements of a given input tensor to a data type specified …

        T1: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, string,
            tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        T2: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, string,
            tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def CastLike(self, input: Operand, target_type: Operand, /, *, saturate: int = 1) -> ir.Value:
        """The operator casts the elements of a given input tensor (the first input) to the …

        T1: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, string,
            tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        T2: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, string,
            tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def CausalConvWithState(
        self,
        input: Operand,
        weight: Operand,
        bias: Operand = None,
        past_state: Operand = None,
        /,
        *,
        activation: str = "none",
        outputs: int = 1,
    ) -> Any:
        """Stateful causal 1D depthwise convolution.

        Since opset 27.
        T: bfloat16, float16, float32.
        """

    def Ceil(self, X: Operand, /) -> ir.Value:
        """Ceil takes one input data (Tensor) and produces one output data (Tensor) where the …

        T: bfloat16, float16, float32, float64.
        """

    def Celu(self, X: Operand, /, *, alpha: float = ...) -> ir.Value:
        """Continuously Differentiable Exponential Linear Units.

        T: float32.
        """

    def CenterCropPad(
        self, input_data: Operand, shape: Operand, /, *, axes: Sequence[int] = ...
    ) -> ir.Value:
        """Center crop or pad an input to given dimensions.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        Tind: int32, int64.
        """

    def Clip(self, input: Operand, min: Operand = None, max: Operand = None, /) -> ir.Value:
        """Clip operator limits the given input within an interval.

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Col2Im(
        self,
        input: Operand,
        image_shape: Operand,
        block_shape: Operand,
        /,
        *,
        dilations: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """The operator rearranges column blocks back into a multidimensional image Col2Im …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Compress(self, input: Operand, condition: Operand, /, *, axis: int = ...) -> ir.Value:
        """Selects slices from an input tensor along a given axis where condition evaluates …

        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        T1: bool.
        """

    def Concat(self, *inputs: Operand, axis: int) -> ir.Value:
        """Concatenate a list of tensors into a single tensor.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def ConcatFromSequence(
        self, input_sequence: Operand, /, *, axis: int, new_axis: int = 0
    ) -> ir.Value:
        """Concatenate a sequence of tensors into a single tensor.

        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        """

    def Constant(
        self,
        *,
        value: np.ndarray | ir.TensorProtocol = ...,
        value_float: float = ...,
        value_floats: Sequence[float] = ...,
        value_int: int = ...,
        value_ints: Sequence[int] = ...,
        value_string: str = ...,
        value_strings: Sequence[str] = ...,
    ) -> ir.Value:
        """This operator produces a constant tensor.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def ConstantOfShape(
        self, input: Operand, /, *, value: np.ndarray | ir.TensorProtocol = ...
    ) -> ir.Value:
        """Generate a tensor with given value and shape.

        T1: int64.
        T2: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8,
            tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def Conv(
        self,
        X: Operand,
        W: Operand,
        B: Operand = None,
        /,
        *,
        auto_pad: str = "NOTSET",
        dilations: Sequence[int] = ...,
        group: int = 1,
        kernel_shape: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """The convolution operator consumes an input tensor and a filter, and computes the …

        T: float16, float32, float64.
        """

    def ConvInteger(
        self,
        x: Operand,
        w: Operand,
        x_zero_point: Operand = None,
        w_zero_point: Operand = None,
        /,
        *,
        auto_pad: str = "NOTSET",
        dilations: Sequence[int] = ...,
        group: int = 1,
        kernel_shape: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """The integer convolution operator consumes an input tensor, its zero-point, a …

        T1: int8, uint8.
        T2: int8, uint8.
        T3: int32.
        """

    def ConvTranspose(
        self,
        X: Operand,
        W: Operand,
        B: Operand = None,
        /,
        *,
        auto_pad: str = "NOTSET",
        dilations: Sequence[int] = ...,
        group: int = 1,
        kernel_shape: Sequence[int] = ...,
        output_padding: Sequence[int] = ...,
        output_shape: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """The convolution transpose operator consumes an input tensor and a filter, and …

        T: float16, float32, float64.
        """

    def Cos(self, input: Operand, /) -> ir.Value:
        """Calculates the cosine of the given input tensor, element-wise.

        T: float16, float32, float64.
        """

    def Cosh(self, input: Operand, /) -> ir.Value:
        """Calculates the hyperbolic cosine of the given input tensor element-wise.

        T: float16, float32, float64.
        """

    def CumProd(
        self, x: Operand, axis: Operand, /, *, exclusive: int = 0, reverse: int = 0
    ) -> ir.Value:
        """Performs cumulative product of the input elements along the given axis.

        Since opset 26.
        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        T2: int32, int64.
        """

    def CumSum(
        self, x: Operand, axis: Operand, /, *, exclusive: int = 0, reverse: int = 0
    ) -> ir.Value:
        """Performs cumulative sum of the input elements along the given axis.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        T2: int32, int64.
        """

    def DFT(
        self,
        input: Operand,
        dft_length: Operand = None,
        axis: Operand = None,
        /,
        *,
        inverse: int = 0,
        onesided: int = 0,
    ) -> ir.Value:
        """Computes the discrete Fourier Transform (DFT) of the input.

        T1: bfloat16, float16, float32, float64.
        T2: int32, int64.
        """

    def DeformConv(
        self,
        X: Operand,
        W: Operand,
        offset: Operand,
        B: Operand = None,
        mask: Operand = None,
        /,
        *,
        dilations: Sequence[int] = ...,
        group: int = 1,
        kernel_shape: Sequence[int] = ...,
        offset_group: int = 1,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """Performs deformable convolution as described in https://arxiv.org/abs/1703.06211 …

        T: float16, float32, float64.
        """

    def DepthToSpace(self, input: Operand, /, *, blocksize: int, mode: str = "DCR") -> ir.Value:
        """DepthToSpace rearranges (permutes) data from depth into blocks of spatial data.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def DequantizeLinear(
        self,
        x: Operand,
        x_scale: Operand,
        x_zero_point: Operand = None,
        /,
        *,
        axis: int = 1,
        block_size: int = 0,
    ) -> ir.Value:
        """The linear dequantization operator.

        T1: int16, int32, int8, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint8.
        T2: bfloat16, float16, float32.
        """

    def Det(self, X: Operand, /) -> ir.Value:
        """Det calculates determinant of a square matrix or batches of square matrices.

        T: float16, float32, float64.
        """

    def Div(self, A: Operand, B: Operand, /) -> ir.Value:
        """Performs element-wise binary division (with Numpy-style broadcasting support).

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Dropout(
        self,
        data: Operand,
        ratio: Operand = None,
        training_mode: Operand = None,
        /,
        *,
        seed: int = ...,
        outputs: int = 1,
    ) -> Any:
        """Dropout takes an input floating-point tensor, an optional input ratio (floating- …

        T: bfloat16, float16, float32, float64.
        T1: float16, float32, float64.
        T2: bool.
        """

    def DynamicQuantizeLinear(self, x: Operand, /, *, outputs: int = 1) -> Any:
        """A Function to fuse calculation for Scale, Zero Point and FP32->8Bit conversion of …

        T1: float32.
        T2: uint8.
        """

    def Einsum(self, *Inputs: Operand, equation: str) -> ir.Value:
        """An einsum of the form term1, term2 -> output-term produces an output tensor using …

        T: float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        """

    def Elu(self, X: Operand, /, *, alpha: float = ...) -> ir.Value:
        """Elu takes one input data (Tensor) and produces one output data (Tensor) where the …

        T: float16, float32, float64.
        """

    def Equal(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the equal logical operation …

        T: bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, string, uint16,
            uint32, uint64, uint8.
        T1: bool.
        """

    def Erf(self, input: Operand, /) -> ir.Value:
        """Computes the error function of the given input tensor element-wise.

        T: bfloat16, float16, float32, float64.
        """

    def Exp(self, input: Operand, /) -> ir.Value:
        """Calculates the exponential of the given input tensor, element-wise.

        T: bfloat16, float16, float32, float64.
        """

    def Expand(self, input: Operand, shape: Operand, /) -> ir.Value:
        """Broadcast the input tensor following the given shape and the broadcast rule.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def EyeLike(self, input: Operand, /, *, dtype: int = ..., k: int = 0) -> ir.Value:
        """Generate a 2D tensor (matrix) with ones on the diagonal and zeros everywhere else.

        T1: bool, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        T2: bool, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Flatten(self, input: Operand, /, *, axis: int = 1) -> ir.Value:
        """Flattens the input tensor into a 2D matrix.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def Floor(self, X: Operand, /) -> ir.Value:
        """Floor takes one input data (Tensor) and produces one output data (Tensor) where …

        T: bfloat16, float16, float32, float64.
        """

    def GRU(
        self,
        X: Operand,
        W: Operand,
        R: Operand,
        B: Operand = None,
        sequence_lens: Operand = None,
        initial_h: Operand = None,
        /,
        *,
        activation_alpha: Sequence[float] = ...,
        activation_beta: Sequence[float] = ...,
        activations: Sequence[str] = ...,
        clip: float = ...,
        direction: str = "forward",
        hidden_size: int = ...,
        layout: int = 0,
        linear_before_reset: int = 0,
        outputs: int = 1,
    ) -> Any:
        """Computes an one-layer GRU. This operator is usually supported via some custom …

        T: float16, float32, float64.
        T1: int32.
        """

    def Gather(self, data: Operand, indices: Operand, /, *, axis: int = 0) -> ir.Value:
        """Given data tensor of rank r >= 1, and indices tensor of rank q, gather entries of …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        Tind: int32, int64.
        """

    def GatherElements(self, data: Operand, indices: Operand, /, *, axis: int = 0) -> ir.Value:
        """GatherElements takes two inputs data and indices of the same rank r >= 1 and an …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        Tind: int32, int64.
        """

    def GatherND(self, data: Operand, indices: Operand, /, *, batch_dims: int = 0) -> ir.Value:
        """Given data tensor of rank r >= 1, indices tensor of rank q >= 1, and batch_dims …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Gelu(self, X: Operand, /, *, approximate: str = "none") -> ir.Value:
        """Gelu takes one input data (Tensor) and produces one output data (Tensor) where the …

        T: bfloat16, float16, float32, float64.
        """

    def Gemm(
        self,
        A: Operand,
        B: Operand,
        C: Operand = None,
        /,
        *,
        alpha: float = ...,
        beta: float = ...,
        transA: int = 0,
        transB: int = 0,
    ) -> ir.Value:
        """General Matrix multiplication.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def GlobalAveragePool(self, X: Operand, /) -> ir.Value:
        """GlobalAveragePool consumes an input tensor X and applies average pooling across …

        T: float16, float32, float64.
        """

    def GlobalLpPool(self, X: Operand, /, *, p: int = 2) -> ir.Value:
        """GlobalLpPool consumes an input tensor X and applies lp pool pooling across the …

        T: float16, float32, float64.
        """

    def GlobalMaxPool(self, X: Operand, /) -> ir.Value:
        """GlobalMaxPool consumes an input tensor X and applies max pooling across the values …

        T: float16, float32, float64.
        """

    def Greater(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the greater logical operation …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        T1: bool.
        """

    def GreaterOrEqual(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the greater_equal logical operation …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        T1: bool.
        """

    def GridSample(
        self,
        X: Operand,
        grid: Operand,
        /,
        *,
        align_corners: int = 0,
        mode: str = "linear",
        padding_mode: str = "zeros",
    ) -> ir.Value:
        """Given an input X and a flow-field grid, computes the output Y using X values and …

        T1: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        T2: float16, float32, float64.
        """

    def GroupNormalization(
        self,
        X: Operand,
        scale: Operand,
        bias: Operand,
        /,
        *,
        num_groups: int,
        epsilon: float = ...,
        stash_type: int = 1,
    ) -> ir.Value:
        """A GroupNormalization function.

        T: bfloat16, float16, float32, float64.
        """

    def HammingWindow(
        self, size: Operand, /, *, output_datatype: int = 1, periodic: int = 1
    ) -> ir.Value:
        """Generates a Hamming window as described in the paper …

        T1: int32, int64.
        T2: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def HannWindow(
        self, size: Operand, /, *, output_datatype: int = 1, periodic: int = 1
    ) -> ir.Value:
        """Generates a Hann window as described in the paper …

        T1: int32, int64.
        T2: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def HardSigmoid(self, X: Operand, /, *, alpha: float = ..., beta: float = ...) -> ir.Value:
        """HardSigmoid takes one input data (Tensor) and produces one output data (Tensor) …

        T: float16, float32, float64.
        """

    def HardSwish(self, X: Operand, /) -> ir.Value:
        """HardSwish takes one input data (Tensor) and produces one output data (Tensor) …

        T: float16, float32, float64.
        """

    def Hardmax(self, input: Operand, /, *, axis: int = -1) -> ir.Value:
        """The operator computes the hardmax values for the given input.

        T: bfloat16, float16, float32, float64.
        """

    def Identity(self, input: Operand, /) -> ir.Value:
        """Identity operator.

        V: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, optional(seq(tensor(bool))), optional(seq(tensor(complex128))),
            optional(seq(tensor(complex64))), optional(seq(tensor(double))),
            optional(seq(tensor(float))), optional(seq(tensor(float16))),
            optional(seq(tensor(int16))), optional(seq(tensor(int32))),
            optional(seq(tensor(int64))), optional(seq(tensor(int8))),
            optional(seq(tensor(string))), optional(seq(tensor(uint16))),
            optional(seq(tensor(uint32))), optional(seq(tensor(uint64))),
            optional(seq(tensor(uint8))), optional(tensor(bool)), optional(tensor(complex128)),
            optional(tensor(complex64)), optional(tensor(double)), optional(tensor(float)),
            optional(tensor(float16)), optional(tensor(int16)), optional(tensor(int32)),
            optional(tensor(int64)), optional(tensor(int8)), optional(tensor(string)),
            optional(tensor(uint16)), optional(tensor(uint32)), optional(tensor(uint64)),
            optional(tensor(uint8)), seq(tensor(bool)), seq(tensor(complex128)),
            seq(tensor(complex64)), seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)),
            seq(tensor(int16)), seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)),
            seq(tensor(string)), seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)),
            seq(tensor(uint8)), string, tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16,
            uint32, uint64, uint8.
        """

    def If(
        self, cond: Operand, /, *, else_branch: ir.Graph, then_branch: ir.Graph, outputs: int = 1
    ) -> Any:
        """If conditional.

        V: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, optional(seq(tensor(bfloat16))), optional(seq(tensor(bool))),
            optional(seq(tensor(complex128))), optional(seq(tensor(complex64))),
            optional(seq(tensor(double))), optional(seq(tensor(float))),
            optional(seq(tensor(float16))), optional(seq(tensor(int16))),
            optional(seq(tensor(int32))), optional(seq(tensor(int64))),
            optional(seq(tensor(int8))), optional(seq(tensor(string))),
            optional(seq(tensor(uint16))), optional(seq(tensor(uint32))),
            optional(seq(tensor(uint64))), optional(seq(tensor(uint8))),
            optional(tensor(bfloat16)), optional(tensor(bool)), optional(tensor(complex128)),
            optional(tensor(complex64)), optional(tensor(double)), optional(tensor(float)),
            optional(tensor(float16)), optional(tensor(float8e4m3fn)),
            optional(tensor(float8e4m3fnuz)), optional(tensor(float8e5m2)),
            optional(tensor(float8e5m2fnuz)), optional(tensor(int16)), optional(tensor(int32)),
            optional(tensor(int4)), optional(tensor(int64)), optional(tensor(int8)),
            optional(tensor(string)), optional(tensor(uint16)), optional(tensor(uint32)),
            optional(tensor(uint4)), optional(tensor(uint64)), optional(tensor(uint8)),
            seq(tensor(bfloat16)), seq(tensor(bool)), seq(tensor(complex128)),
            seq(tensor(complex64)), seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)),
            seq(tensor(float8e4m3fn)), seq(tensor(float8e4m3fnuz)), seq(tensor(float8e5m2)),
            seq(tensor(float8e5m2fnuz)), seq(tensor(int16)), seq(tensor(int32)),
            seq(tensor(int4)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint4)), seq(tensor(uint64)),
            seq(tensor(uint8)), string, tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16,
            uint32, uint64, uint8.
        B: bool.
        """

    def ImageDecoder(self, encoded_stream: Operand, /, *, pixel_format: str = "RGB") -> ir.Value:
        """Loads and decodes and image from a file.

        T1: uint8.
        T2: uint8.
        """

    def InstanceNormalization(
        self, input: Operand, scale: Operand, B: Operand, /, *, epsilon: float = ...
    ) -> ir.Value:
        """Carries out instance normalization as described in the paper …

        T: float16, float32, float64.
        """

    def IsInf(
        self, X: Operand, /, *, detect_negative: int = 1, detect_positive: int = 1
    ) -> ir.Value:
        """Map infinity to true and other values to false.

        T1: bfloat16, float16, float32, float64, tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz).
        T2: bool.
        """

    def IsNaN(self, X: Operand, /) -> ir.Value:
        """Returns which elements of the input are NaN.

        T1: bfloat16, float16, float32, float64, tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz).
        T2: bool.
        """

    def LRN(
        self, X: Operand, /, *, size: int, alpha: float = ..., beta: float = ..., bias: float = ...
    ) -> ir.Value:
        """Local Response Normalization proposed in the [AlexNet …

        T: bfloat16, float16, float32, float64.
        """

    def LSTM(
        self,
        X: Operand,
        W: Operand,
        R: Operand,
        B: Operand = None,
        sequence_lens: Operand = None,
        initial_h: Operand = None,
        initial_c: Operand = None,
        P: Operand = None,
        /,
        *,
        activation_alpha: Sequence[float] = ...,
        activation_beta: Sequence[float] = ...,
        activations: Sequence[str] = ...,
        clip: float = ...,
        direction: str = "forward",
        hidden_size: int = ...,
        input_forget: int = 0,
        layout: int = 0,
        outputs: int = 1,
    ) -> Any:
        """Computes an one-layer LSTM. This operator is usually supported via some custom …

        T: float16, float32, float64.
        T1: int32.
        """

    def LayerNormalization(
        self,
        X: Operand,
        Scale: Operand,
        B: Operand = None,
        /,
        *,
        axis: int = -1,
        epsilon: float = ...,
        stash_type: int = 1,
        outputs: int = 1,
    ) -> Any:
        """This is layer normalization defined in ONNX as function.

        T: bfloat16, float16, float32, float64.
        U: bfloat16, float32.
        """

    def LeakyRelu(self, X: Operand, /, *, alpha: float = ...) -> ir.Value:
        """LeakyRelu takes input data (Tensor) and an argument alpha, and produces one output …

        T: bfloat16, float16, float32, float64.
        """

    def Less(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the less logical operation elementwise …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        T1: bool.
        """

    def LessOrEqual(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the less_equal logical operation …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        T1: bool.
        """

    def LinearAttention(
        self,
        query: Operand,
        key: Operand,
        value: Operand,
        past_state: Operand = None,
        decay: Operand = None,
        beta: Operand = None,
        /,
        *,
        kv_num_heads: int,
        q_num_heads: int,
        chunk_size: int = 64,
        scale: float = ...,
        update_rule: str = "gated_delta",
        outputs: int = 1,
    ) -> Any:
        """Unified linear attention operator for autoregressive decoding (T=1) and prefill …

        Since opset 27.
        T: bfloat16, float16, float32.
        S: bfloat16, float16, float32.
        """

    def Log(self, input: Operand, /) -> ir.Value:
        """Calculates the natural log of the given input tensor, element-wise.

        T: bfloat16, float16, float32, float64.
        """

    def LogSoftmax(self, input: Operand, /, *, axis: int = -1) -> ir.Value:
        """The operator computes the log of softmax values for the given input.

        T: bfloat16, float16, float32, float64.
        """

    def Loop(
        self, M: Operand, cond: Operand, *v_initial: Operand, body: ir.Graph, outputs: int = 1
    ) -> Any:
        """Generic Looping construct.

        V: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, optional(seq(tensor(bfloat16))), optional(seq(tensor(bool))),
            optional(seq(tensor(complex128))), optional(seq(tensor(complex64))),
            optional(seq(tensor(double))), optional(seq(tensor(float))),
            optional(seq(tensor(float16))), optional(seq(tensor(int16))),
            optional(seq(tensor(int32))), optional(seq(tensor(int64))),
            optional(seq(tensor(int8))), optional(seq(tensor(string))),
            optional(seq(tensor(uint16))), optional(seq(tensor(uint32))),
            optional(seq(tensor(uint64))), optional(seq(tensor(uint8))),
            optional(tensor(bfloat16)), optional(tensor(bool)), optional(tensor(complex128)),
            optional(tensor(complex64)), optional(tensor(double)), optional(tensor(float)),
            optional(tensor(float16)), optional(tensor(float8e4m3fn)),
            optional(tensor(float8e4m3fnuz)), optional(tensor(float8e5m2)),
            optional(tensor(float8e5m2fnuz)), optional(tensor(int16)), optional(tensor(int32)),
            optional(tensor(int4)), optional(tensor(int64)), optional(tensor(int8)),
            optional(tensor(string)), optional(tensor(uint16)), optional(tensor(uint32)),
            optional(tensor(uint4)), optional(tensor(uint64)), optional(tensor(uint8)),
            seq(tensor(bfloat16)), seq(tensor(bool)), seq(tensor(complex128)),
            seq(tensor(complex64)), seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)),
            seq(tensor(float8e4m3fn)), seq(tensor(float8e4m3fnuz)), seq(tensor(float8e5m2)),
            seq(tensor(float8e5m2fnuz)), seq(tensor(int16)), seq(tensor(int32)),
            seq(tensor(int4)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint4)), seq(tensor(uint64)),
            seq(tensor(uint8)), string, tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16,
            uint32, uint64, uint8.
        I: int64.
        B: bool.
        """

    def LpNormalization(self, input: Operand, /, *, axis: int = -1, p: int = 2) -> ir.Value:
        """Given a matrix, apply Lp-normalization along the provided axis.

        T: float16, float32, float64.
        """

    def LpPool(
        self,
        X: Operand,
        /,
        *,
        kernel_shape: Sequence[int],
        auto_pad: str = "NOTSET",
        ceil_mode: int = 0,
        dilations: Sequence[int] = ...,
        p: int = 2,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """LpPool consumes an input tensor X and applies Lp pooling across the tensor …

        T: float16, float32, float64.
        """

    def MatMul(self, A: Operand, B: Operand, /) -> ir.Value:
        """Matrix product that behaves like …

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def MatMulInteger(
        self, A: Operand, B: Operand, a_zero_point: Operand = None, b_zero_point: Operand = None, /
    ) -> ir.Value:
        """Matrix product that behaves like …

        T1: int8, uint8.
        T2: int8, uint8.
        T3: int32.
        """

    def Max(self, *data_0: Operand) -> ir.Value:
        """Element-wise max of each of the input tensors (with Numpy-style broadcasting …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def MaxPool(
        self,
        X: Operand,
        /,
        *,
        kernel_shape: Sequence[int],
        auto_pad: str = "NOTSET",
        ceil_mode: int = 0,
        dilations: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        storage_order: int = 0,
        strides: Sequence[int] = ...,
        outputs: int = 1,
    ) -> Any:
        """MaxPool consumes an input tensor X and applies max pooling across the tensor …

        T: float16, float32, float64, int8, uint8.
        I: int64.
        """

    def MaxRoiPool(
        self,
        X: Operand,
        rois: Operand,
        /,
        *,
        pooled_shape: Sequence[int],
        spatial_scale: float = ...,
    ) -> ir.Value:
        """ROI max pool consumes an input tensor X and region of interests (RoIs) to apply …

        T: float16, float32, float64.
        """

    def MaxUnpool(
        self,
        X: Operand,
        I: Operand,
        output_shape: Operand = None,
        /,
        *,
        kernel_shape: Sequence[int],
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """MaxUnpool essentially computes the partial inverse of the MaxPool op.

        T1: float16, float32, float64.
        T2: int64.
        """

    def Mean(self, *data_0: Operand) -> ir.Value:
        """Element-wise mean of each of the input tensors (with Numpy-style broadcasting …

        T: bfloat16, float16, float32, float64.
        """

    def MeanVarianceNormalization(self, X: Operand, /, *, axes: Sequence[int] = ...) -> ir.Value:
        """A MeanVarianceNormalization Function.

        T: bfloat16, float16, float32, float64.
        """

    def MelWeightMatrix(
        self,
        num_mel_bins: Operand,
        dft_length: Operand,
        sample_rate: Operand,
        lower_edge_hertz: Operand,
        upper_edge_hertz: Operand,
        /,
        *,
        output_datatype: int = 1,
    ) -> ir.Value:
        """Generate a MelWeightMatrix that can be used to re-weight a Tensor containing a …

        T1: int32, int64.
        T2: bfloat16, float16, float32, float64.
        T3: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def Min(self, *data_0: Operand) -> ir.Value:
        """Element-wise min of each of the input tensors (with Numpy-style broadcasting …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Mish(self, X: Operand, /) -> ir.Value:
        """Mish.

        T: float16, float32, float64.
        """

    def Mod(self, A: Operand, B: Operand, /, *, fmod: int = 0) -> ir.Value:
        """Performs an element-wise binary modulo operation.

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Mul(self, A: Operand, B: Operand, /) -> ir.Value:
        """Performs element-wise binary multiplication (with Numpy-style broadcasting support).

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Multinomial(
        self, input: Operand, /, *, dtype: int = 6, sample_size: int = 1, seed: float = ...
    ) -> ir.Value:
        """Generate a tensor of samples from a multinomial distribution according to the …

        T1: float16, float32, float64.
        T2: int32, int64.
        """

    def Neg(self, X: Operand, /) -> ir.Value:
        """Neg takes one input data (Tensor) and produces one output data (Tensor) where each …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8.
        """

    def NegativeLogLikelihoodLoss(
        self,
        input: Operand,
        target: Operand,
        weight: Operand = None,
        /,
        *,
        ignore_index: int = ...,
        reduction: str = "mean",
    ) -> ir.Value:
        """A NegativeLogLikelihoodLoss operator computes (weighted) negative log likelihood …

        T: float16, float32, float64.
        Tind: int32, int64.
        """

    def NonMaxSuppression(
        self,
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand = None,
        iou_threshold: Operand = None,
        score_threshold: Operand = None,
        /,
        *,
        center_point_box: int = 0,
    ) -> ir.Value:
        """Filter out boxes that have high intersection-over-union (IOU) overlap with …"""

    def NonZero(self, X: Operand, /) -> ir.Value:
        """Returns the indices of the elements that are non-zero (in row-major order - by …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Not(self, X: Operand, /) -> ir.Value:
        """Returns the negation of the input tensor element-wise.

        T: bool.
        """

    def OneHot(
        self, indices: Operand, depth: Operand, values: Operand, /, *, axis: int = -1
    ) -> ir.Value:
        """Produces a one-hot tensor based on inputs.

        T1: float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        T2: float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        T3: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        """

    def Optional(self, input: Operand = None, /) -> ir.Value:
        """Constructs an optional-type value containing either an empty optional of a certain …

        V: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)),
            string, uint16, uint32, uint64, uint8.
        O: optional(seq(tensor(bool))), optional(seq(tensor(complex128))),
            optional(seq(tensor(complex64))), optional(seq(tensor(double))),
            optional(seq(tensor(float))), optional(seq(tensor(float16))),
            optional(seq(tensor(int16))), optional(seq(tensor(int32))),
            optional(seq(tensor(int64))), optional(seq(tensor(int8))),
            optional(seq(tensor(string))), optional(seq(tensor(uint16))),
            optional(seq(tensor(uint32))), optional(seq(tensor(uint64))),
            optional(seq(tensor(uint8))), optional(tensor(bool)), optional(tensor(complex128)),
            optional(tensor(complex64)), optional(tensor(double)), optional(tensor(float)),
            optional(tensor(float16)), optional(tensor(int16)), optional(tensor(int32)),
            optional(tensor(int64)), optional(tensor(int8)), optional(tensor(string)),
            optional(tensor(uint16)), optional(tensor(uint32)), optional(tensor(uint64)),
            optional(tensor(uint8)).
        """

    def OptionalGetElement(self, input: Operand, /) -> ir.Value:
        """If the input is a tensor or sequence type, it returns the input.

        O: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            optional(seq(tensor(bool))), optional(seq(tensor(complex128))),
            optional(seq(tensor(complex64))), optional(seq(tensor(double))),
            optional(seq(tensor(float))), optional(seq(tensor(float16))),
            optional(seq(tensor(int16))), optional(seq(tensor(int32))),
            optional(seq(tensor(int64))), optional(seq(tensor(int8))),
            optional(seq(tensor(string))), optional(seq(tensor(uint16))),
            optional(seq(tensor(uint32))), optional(seq(tensor(uint64))),
            optional(seq(tensor(uint8))), optional(tensor(bool)), optional(tensor(complex128)),
            optional(tensor(complex64)), optional(tensor(double)), optional(tensor(float)),
            optional(tensor(float16)), optional(tensor(int16)), optional(tensor(int32)),
            optional(tensor(int64)), optional(tensor(int8)), optional(tensor(string)),
            optional(tensor(uint16)), optional(tensor(uint32)), optional(tensor(uint64)),
            optional(tensor(uint8)), seq(tensor(bool)), seq(tensor(complex128)),
            seq(tensor(complex64)), seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)),
            seq(tensor(int16)), seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)),
            seq(tensor(string)), seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)),
            seq(tensor(uint8)), string, uint16, uint32, uint64, uint8.
        V: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)),
            string, uint16, uint32, uint64, uint8.
        """

    def OptionalHasElement(self, input: Operand = None, /) -> ir.Value:
        """Returns true if (1) the input is an optional-type and contains an element, or, (2) …

        O: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            optional(seq(tensor(bool))), optional(seq(tensor(complex128))),
            optional(seq(tensor(complex64))), optional(seq(tensor(double))),
            optional(seq(tensor(float))), optional(seq(tensor(float16))),
            optional(seq(tensor(int16))), optional(seq(tensor(int32))),
            optional(seq(tensor(int64))), optional(seq(tensor(int8))),
            optional(seq(tensor(string))), optional(seq(tensor(uint16))),
            optional(seq(tensor(uint32))), optional(seq(tensor(uint64))),
            optional(seq(tensor(uint8))), optional(tensor(bool)), optional(tensor(complex128)),
            optional(tensor(complex64)), optional(tensor(double)), optional(tensor(float)),
            optional(tensor(float16)), optional(tensor(int16)), optional(tensor(int32)),
            optional(tensor(int64)), optional(tensor(int8)), optional(tensor(string)),
            optional(tensor(uint16)), optional(tensor(uint32)), optional(tensor(uint64)),
            optional(tensor(uint8)), seq(tensor(bool)), seq(tensor(complex128)),
            seq(tensor(complex64)), seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)),
            seq(tensor(int16)), seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)),
            seq(tensor(string)), seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)),
            seq(tensor(uint8)), string, uint16, uint32, uint64, uint8.
        B: bool.
        """

    def Or(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the or logical operation elementwise …

        T: bool.
        T1: bool.
        """

    def PRelu(self, X: Operand, slope: Operand, /) -> ir.Value:
        """PRelu takes input data (Tensor) and slope tensor as input, and produces one output …

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def Pad(
        self,
        data: Operand,
        pads: Operand,
        constant_value: Operand = None,
        axes: Operand = None,
        /,
        *,
        mode: str = "constant",
    ) -> ir.Value:
        """Given a tensor containing the data to be padded (data), a tensor containing the …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        Tind: int32, int64.
        """

    def Pow(self, X: Operand, Y: Operand, /) -> ir.Value:
        """Pow takes input data (Tensor) and exponent Tensor, and produces one output data …

        T: bfloat16, float16, float32, float64, int32, int64.
        T1: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32,
            uint64, uint8.
        """

    def QLinearConv(
        self,
        x: Operand,
        x_scale: Operand,
        x_zero_point: Operand,
        w: Operand,
        w_scale: Operand,
        w_zero_point: Operand,
        y_scale: Operand,
        y_zero_point: Operand,
        B: Operand = None,
        /,
        *,
        auto_pad: str = "NOTSET",
        dilations: Sequence[int] = ...,
        group: int = 1,
        kernel_shape: Sequence[int] = ...,
        pads: Sequence[int] = ...,
        strides: Sequence[int] = ...,
    ) -> ir.Value:
        """The convolution operator consumes a quantized input tensor, its scale and zero …

        T1: int8, uint8.
        T2: int8, uint8.
        T3: int8, uint8.
        T4: int32.
        """

    def QLinearMatMul(
        self,
        a: Operand,
        a_scale: Operand,
        a_zero_point: Operand,
        b: Operand,
        b_scale: Operand,
        b_zero_point: Operand,
        y_scale: Operand,
        y_zero_point: Operand,
        /,
    ) -> ir.Value:
        """Matrix product that behaves like …

        TS: bfloat16, float16, float32.
        T1: int8, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), uint8.
        T2: int8, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), uint8.
        T3: int8, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), uint8.
        """

    def QuantizeLinear(
        self,
        x: Operand,
        y_scale: Operand,
        y_zero_point: Operand = None,
        /,
        *,
        axis: int = 1,
        block_size: int = 0,
        output_dtype: int = 0,
        saturate: int = 1,
    ) -> ir.Value:
        """The linear quantization operator consumes a high-precision tensor, a scale, and a …

        T1: bfloat16, float16, float32, int32.
        T2: int16, int8, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint8.
        """

    def RMSNormalization(
        self,
        X: Operand,
        scale: Operand,
        /,
        *,
        axis: int = -1,
        epsilon: float = ...,
        stash_type: int = 1,
    ) -> ir.Value:
        """This is RMS normalization defined in ONNX as function as described in the paper …

        Since opset 23.
        T: bfloat16, float16, float32, float64.
        V: bfloat16, float16, float32, float64.
        """

    def RNN(
        self,
        X: Operand,
        W: Operand,
        R: Operand,
        B: Operand = None,
        sequence_lens: Operand = None,
        initial_h: Operand = None,
        /,
        *,
        activation_alpha: Sequence[float] = ...,
        activation_beta: Sequence[float] = ...,
        activations: Sequence[str] = ...,
        clip: float = ...,
        direction: str = "forward",
        hidden_size: int = ...,
        layout: int = 0,
        outputs: int = 1,
    ) -> Any:
        """Computes an one-layer simple RNN. This operator is usually supported via some …

        T: float16, float32, float64.
        T1: int32.
        """

    def RandomNormal(
        self,
        *,
        shape: Sequence[int],
        dtype: int = 1,
        mean: float = ...,
        scale: float = ...,
        seed: float = ...,
    ) -> ir.Value:
        """Generate a tensor with random values drawn from a normal distribution.

        T: float16, float32, float64.
        """

    def RandomNormalLike(
        self,
        input: Operand,
        /,
        *,
        dtype: int = ...,
        mean: float = ...,
        scale: float = ...,
        seed: float = ...,
    ) -> ir.Value:
        """Generate a tensor with random values drawn from a normal distribution.

        T1: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        T2: float16, float32, float64.
        """

    def RandomUniform(
        self,
        *,
        shape: Sequence[int],
        dtype: int = 1,
        high: float = ...,
        low: float = ...,
        seed: float = ...,
    ) -> ir.Value:
        """Generate a tensor with random values drawn from a uniform distribution.

        T: float16, float32, float64.
        """

    def RandomUniformLike(
        self,
        input: Operand,
        /,
        *,
        dtype: int = ...,
        high: float = ...,
        low: float = ...,
        seed: float = ...,
    ) -> ir.Value:
        """Generate a tensor with random values drawn from a uniform distribution.

        T1: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        T2: float16, float32, float64.
        """

    def Range(self, start: Operand, limit: Operand, delta: Operand, /) -> ir.Value:
        """Generate a tensor containing a sequence of numbers that begin at start and extends …

        T: float32, float64, int16, int32, int64.
        """

    def Reciprocal(self, X: Operand, /) -> ir.Value:
        """Reciprocal takes one input data (Tensor) and produces one output data (Tensor) …

        T: bfloat16, float16, float32, float64.
        """

    def ReduceL1(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the L1 norm of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceL2(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the L2 norm of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceLogSum(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the log sum of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceLogSumExp(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the log sum exponent of the input tensor's elements along the provided …

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceMax(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the max of the input tensor's elements along the provided axes.

        T: bfloat16, bool, float16, float32, float64, int32, int64, int8, uint32, uint64, uint8.
        """

    def ReduceMean(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the mean of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceMin(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the min of the input tensor's elements along the provided axes.

        T: bfloat16, bool, float16, float32, float64, int32, int64, int8, uint32, uint64, uint8.
        """

    def ReduceProd(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the product of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceSum(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the sum of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def ReduceSumSquare(
        self,
        data: Operand,
        axes: Operand = None,
        /,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> ir.Value:
        """Computes the sum square of the input tensor's elements along the provided axes.

        T: bfloat16, float16, float32, float64, int32, int64, uint32, uint64.
        """

    def RegexFullMatch(self, X: Operand, /, *, pattern: str = ...) -> ir.Value:
        """RegexFullMatch performs a full regex match on each element of the input tensor.

        T1: string.
        T2: bool.
        """

    def Relu(self, X: Operand, /) -> ir.Value:
        """Relu takes one input data (Tensor) and produces one output data (Tensor) where the …

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8.
        """

    def Reshape(self, data: Operand, shape: Operand, /, *, allowzero: int = 0) -> ir.Value:
        """Reshape the input tensor similar to numpy.reshape.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def Resize(
        self,
        X: Operand,
        roi: Operand = None,
        scales: Operand = None,
        sizes: Operand = None,
        /,
        *,
        antialias: int = 0,
        axes: Sequence[int] = ...,
        coordinate_transformation_mode: str = "half_pixel",
        cubic_coeff_a: float = ...,
        exclude_outside: int = 0,
        extrapolation_value: float = ...,
        keep_aspect_ratio_policy: str = "stretch",
        mode: str = "nearest",
        nearest_mode: str = "round_prefer_floor",
    ) -> ir.Value:
        """Resize the input tensor.

        T1: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        T2: float16, float32, float64.
        """

    def ReverseSequence(
        self, input: Operand, sequence_lens: Operand, /, *, batch_axis: int = 1, time_axis: int = 0
    ) -> ir.Value:
        """Reverse batch of sequences having different lengths specified by sequence_lens.

        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        """

    def RoiAlign(
        self,
        X: Operand,
        rois: Operand,
        batch_indices: Operand,
        /,
        *,
        coordinate_transformation_mode: str = "half_pixel",
        mode: str = "avg",
        output_height: int = 1,
        output_width: int = 1,
        sampling_ratio: int = 0,
        spatial_scale: float = ...,
    ) -> ir.Value:
        """Region of Interest (RoI) align operation described in the [Mask R-CNN …

        T1: float16, float32, float64.
        T2: int64.
        """

    def RotaryEmbedding(
        self,
        X: Operand,
        cos_cache: Operand,
        sin_cache: Operand,
        position_ids: Operand = None,
        /,
        *,
        interleaved: int = 0,
        num_heads: int = ...,
        rotary_embedding_dim: int = 0,
    ) -> ir.Value:
        """RotaryEmbedding is the implementation of rotary positional embeddings (RoPE) based …

        Since opset 23.
        T: bfloat16, float16, float32.
        M: int64.
        """

    def Round(self, X: Operand, /) -> ir.Value:
        """Round takes one input Tensor and rounds the values, element-wise, meaning it finds …

        T: float16, float32, float64.
        """

    def STFT(
        self,
        signal: Operand,
        frame_step: Operand,
        window: Operand = None,
        frame_length: Operand = None,
        /,
        *,
        onesided: int = 1,
    ) -> ir.Value:
        """Computes the Short-time Fourier Transform of the signal.

        T1: bfloat16, float16, float32, float64.
        T2: int32, int64.
        """

    def Scan(
        self,
        *initial_state_and_scan_inputs: Operand,
        body: ir.Graph,
        num_scan_inputs: int,
        scan_input_axes: Sequence[int] = ...,
        scan_input_directions: Sequence[int] = ...,
        scan_output_axes: Sequence[int] = ...,
        scan_output_directions: Sequence[int] = ...,
        outputs: int = 1,
    ) -> Any:
        """Scan can be used to iterate over one or more scan_input tensors, constructing zero …

        V: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def ScatterElements(
        self,
        data: Operand,
        indices: Operand,
        updates: Operand,
        /,
        *,
        axis: int = 0,
        reduction: str = "none",
    ) -> ir.Value:
        """ScatterElements takes three inputs data, updates, and indices of the same rank r …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        Tind: int32, int64.
        """

    def ScatterND(
        self, data: Operand, indices: Operand, updates: Operand, /, *, reduction: str = "none"
    ) -> ir.Value:
        """ScatterND takes three inputs data tensor of rank r >= 1, indices tensor of rank q …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Selu(self, X: Operand, /, *, alpha: float = ..., gamma: float = ...) -> ir.Value:
        """Selu takes one input data (Tensor) and produces one output data (Tensor) where the …

        T: float16, float32, float64.
        """

    def SequenceAt(self, input_sequence: Operand, position: Operand, /) -> ir.Value:
        """Outputs a tensor copy from the tensor at 'position' in 'input_sequence'. Accepted …

        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        I: int32, int64.
        """

    def SequenceConstruct(self, *inputs: Operand) -> ir.Value:
        """Construct a tensor sequence containing 'inputs' tensors.

        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        """

    def SequenceEmpty(self, *, dtype: int = ...) -> ir.Value:
        """Construct an empty tensor sequence, with given data type.

        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        """

    def SequenceErase(self, input_sequence: Operand, position: Operand = None, /) -> ir.Value:
        """Outputs a tensor sequence that removes the tensor at 'position' from …

        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        I: int32, int64.
        """

    def SequenceInsert(
        self, input_sequence: Operand, tensor: Operand, position: Operand = None, /
    ) -> ir.Value:
        """Outputs a tensor sequence that inserts 'tensor' into 'input_sequence' at …

        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        I: int32, int64.
        """

    def SequenceLength(self, input_sequence: Operand, /) -> ir.Value:
        """Produces a scalar(tensor of empty shape) containing the number of tensors in …

        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        I: int64.
        """

    def SequenceMap(
        self, input_sequence: Operand, *additional_inputs: Operand, body: ir.Graph, outputs: int = 1
    ) -> Any:
        """Applies a sub-graph to each sample in the input sequence(s).

        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        V: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)),
            string, uint16, uint32, uint64, uint8.
        """

    def Shape(self, data: Operand, /, *, end: int = ..., start: int = 0) -> ir.Value:
        """Takes a tensor as input and outputs an 1D int64 tensor containing the shape of the …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        T1: int64.
        """

    def Shrink(self, input: Operand, /, *, bias: float = ..., lambd: float = ...) -> ir.Value:
        """Shrink takes one input data (Tensor) and produces one Tensor output, having same …

        T: float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        """

    def Sigmoid(self, X: Operand, /) -> ir.Value:
        """Sigmoid takes one input data (Tensor) and produces one output data (Tensor) where …

        T: bfloat16, float16, float32, float64.
        """

    def Sign(self, input: Operand, /) -> ir.Value:
        """Calculate the sign of the given input tensor element-wise.

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Sin(self, input: Operand, /) -> ir.Value:
        """Calculates the sine of the given input tensor, element-wise.

        T: float16, float32, float64.
        """

    def Sinh(self, input: Operand, /) -> ir.Value:
        """Calculates the hyperbolic sine of the given input tensor element-wise.

        T: float16, float32, float64.
        """

    def Size(self, data: Operand, /) -> ir.Value:
        """Takes a tensor as input and outputs a int64 scalar that equals to the total number …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        T1: int64.
        """

    def Slice(
        self,
        data: Operand,
        starts: Operand,
        ends: Operand,
        axes: Operand = None,
        steps: Operand = None,
        /,
    ) -> ir.Value:
        """Produces a slice of the input tensor along multiple axes.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        Tind: int32, int64.
        """

    def Softmax(self, input: Operand, /, *, axis: int = -1) -> ir.Value:
        """The operator computes the normalized exponential values for the given input.

        T: bfloat16, float16, float32, float64.
        """

    def SoftmaxCrossEntropyLoss(
        self,
        scores: Operand,
        labels: Operand,
        weights: Operand = None,
        /,
        *,
        ignore_index: int = ...,
        reduction: str = "mean",
        outputs: int = 1,
    ) -> Any:
        """Loss function that measures the softmax cross entropy between 'scores' and …

        T: bfloat16, float16, float32, float64.
        Tind: int32, int64.
        """

    def Softplus(self, X: Operand, /) -> ir.Value:
        """Softplus takes one input data (Tensor) and produces one output data (Tensor) where …

        T: float16, float32, float64.
        """

    def Softsign(self, input: Operand, /) -> ir.Value:
        """Calculates the softsign (x/(1+|x|)) of the given input tensor element-wise.

        T: float16, float32, float64.
        """

    def SpaceToDepth(self, input: Operand, /, *, blocksize: int) -> ir.Value:
        """SpaceToDepth rearranges blocks of spatial data into depth.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Split(
        self,
        input: Operand,
        split: Operand = None,
        /,
        *,
        axis: int = 0,
        num_outputs: int = ...,
        outputs: int = 1,
    ) -> Any:
        """Split a tensor into a list of tensors, along the specified 'axis'. Either input …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def SplitToSequence(
        self, input: Operand, split: Operand = None, /, *, axis: int = 0, keepdims: int = 1
    ) -> ir.Value:
        """Split a tensor into a sequence of tensors, along the specified 'axis'. Lengths of …

        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        I: int32, int64.
        S: seq(tensor(bool)), seq(tensor(complex128)), seq(tensor(complex64)),
            seq(tensor(double)), seq(tensor(float)), seq(tensor(float16)), seq(tensor(int16)),
            seq(tensor(int32)), seq(tensor(int64)), seq(tensor(int8)), seq(tensor(string)),
            seq(tensor(uint16)), seq(tensor(uint32)), seq(tensor(uint64)), seq(tensor(uint8)).
        """

    def Sqrt(self, X: Operand, /) -> ir.Value:
        """Square root takes one input data (Tensor) and produces one output data (Tensor) …

        T: bfloat16, float16, float32, float64.
        """

    def Squeeze(self, data: Operand, axes: Operand = None, /) -> ir.Value:
        """Remove single-dimensional entries from the shape of a tensor.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def StringConcat(self, X: Operand, Y: Operand, /) -> ir.Value:
        """StringConcat concatenates string tensors elementwise (with NumPy-style …

        T: string.
        """

    def StringNormalizer(
        self,
        X: Operand,
        /,
        *,
        case_change_action: str = "NONE",
        is_case_sensitive: int = 0,
        locale: str = ...,
        stopwords: Sequence[str] = ...,
    ) -> ir.Value:
        """StringNormalization performs string operations for basic cleaning."""

    def StringSplit(
        self, X: Operand, /, *, delimiter: str = ..., maxsplit: int = ..., outputs: int = 1
    ) -> Any:
        """StringSplit splits a string tensor's elements into substrings based on a delimiter …

        T1: string.
        T2: string.
        T3: int64.
        """

    def Sub(self, A: Operand, B: Operand, /) -> ir.Value:
        """Performs element-wise binary subtraction (with Numpy-style broadcasting support).

        T: bfloat16, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64,
            uint8.
        """

    def Sum(self, *data_0: Operand) -> ir.Value:
        """Element-wise sum of each of the input tensors (with Numpy-style broadcasting …

        T: bfloat16, float16, float32, float64.
        """

    def SwiGLU(self, A: Operand, B: Operand, /, *, alpha: float = ...) -> ir.Value:
        """SwiGLU is a gated activation that takes two inputs, a gate A and a linear (value) …

        Since opset 28.
        T: bfloat16, float16, float32, float64.
        """

    def Swish(self, X: Operand, /, *, alpha: float = ...) -> ir.Value:
        """Swish function takes one input data (Tensor) and produces one output data (Tensor) …

        Since opset 24.
        T: bfloat16, float16, float32, float64.
        """

    def Tan(self, input: Operand, /) -> ir.Value:
        """Calculates the tangent of the given input tensor, element-wise.

        T: float16, float32, float64.
        """

    def Tanh(self, input: Operand, /) -> ir.Value:
        """Calculates the hyperbolic tangent of the given input tensor element-wise.

        T: bfloat16, float16, float32, float64.
        """

    def TensorScatter(
        self,
        past_cache: Operand,
        update: Operand,
        write_indices: Operand = None,
        /,
        *,
        axis: int = -2,
        mode: str = "linear",
    ) -> ir.Value:
        """TensorScatter is a generic tensor update operation, motivated by the requirements …

        Since opset 24.
        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float4e2m1), tensor(float8e4m3fn), tensor(float8e4m3fnuz),
            tensor(float8e5m2), tensor(float8e5m2fnuz), tensor(float8e8m0), tensor(int4),
            tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def TfIdfVectorizer(
        self,
        X: Operand,
        /,
        *,
        max_gram_length: int,
        max_skip_count: int,
        min_gram_length: int,
        mode: str,
        ngram_counts: Sequence[int],
        ngram_indexes: Sequence[int],
        pool_int64s: Sequence[int] = ...,
        pool_strings: Sequence[str] = ...,
        weights: Sequence[float] = ...,
    ) -> ir.Value:
        """This transform extracts n-grams from the input sequence and save them as a vector.

        T: int32, int64, string.
        T1: float32.
        """

    def ThresholdedRelu(self, X: Operand, /, *, alpha: float = ...) -> ir.Value:
        """ThresholdedRelu takes one input data (Tensor) and produces one output data …

        T: float16, float32, float64.
        """

    def Tile(self, input: Operand, repeats: Operand, /) -> ir.Value:
        """Constructs a tensor by tiling a given tensor.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        T1: int64.
        """

    def TopK(
        self,
        X: Operand,
        K: Operand,
        /,
        *,
        axis: int = -1,
        largest: int = 1,
        sorted: int = 1,
        outputs: int = 1,
    ) -> Any:
        """Retrieve the top-K largest or smallest elements along a specified axis.

        T: float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8.
        I: int64.
        """

    def Transpose(self, data: Operand, /, *, perm: Sequence[int] = ...) -> ir.Value:
        """Returns a transpose of the input tensor.

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def Trilu(self, input: Operand, k: Operand = None, /, *, upper: int = 1) -> ir.Value:
        """Given a 2-D matrix or batches of 2-D matrices, returns the upper or lower …

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Unique(self, X: Operand, /, *, axis: int = ..., sorted: int = 1, outputs: int = 1) -> Any:
        """Find the unique elements of a tensor.

        T: bool, complex128, complex64, float16, float32, float64, int16, int32, int64, int8,
            string, uint16, uint32, uint64, uint8.
        """

    def Unsqueeze(self, data: Operand, axes: Operand, /) -> ir.Value:
        """Insert single-dimensional entries to the shape of an input tensor (data).

        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, tensor(float8e4m3fn), tensor(float8e4m3fnuz), tensor(float8e5m2),
            tensor(float8e5m2fnuz), tensor(int4), tensor(uint4), uint16, uint32, uint64, uint8.
        """

    def Where(self, condition: Operand, X: Operand, Y: Operand, /) -> ir.Value:
        """Return elements, either from X or Y, depending on condition.

        B: bool.
        T: bfloat16, bool, complex128, complex64, float16, float32, float64, int16, int32, int64,
            int8, string, uint16, uint32, uint64, uint8.
        """

    def Xor(self, A: Operand, B: Operand, /) -> ir.Value:
        """Returns the tensor resulted from performing the xor logical operation elementwise …

        T: bool.
        T1: bool.
        """
