/**
 * Arrays of a model: numbers with a dtype and sizes.
 *
 * @typedef {{type: string, data: ArrayBufferView & ArrayLike<any>, dims: number[], steps?: number}} Tensor with `steps`, the
 *   first axis has windows of which the model takes one after the other
 */

/** @type {Record<string, any>} */
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

/**
 * Make a tensor of numbers.
 *
 * @param {string} type dtype
 * @param {ArrayLike<number>} numbers
 * @param {number[]} dims
 * @returns {Tensor}
 */
export function tensor(type, numbers, dims) {
  const count = dims.reduce((product, n) => product * n, 1);
  if (numbers.length !== count) {
    throw new Error(`${numbers.length} numbers do not fill an array of sizes ${dims.join(" x ")}`);
  }
  const data = new ARRAYS[type](count);
  const convert = converter(type);
  const isWhole = type.includes("int");
  for (let i = 0; i < count; i++) {
    data[i] = convert(numbers[i]);
    if (isWhole && Number(data[i]) !== numbers[i]) throw new Error(`${numbers[i]} does not fit ${type}`);
  }
  return { type, data, dims };
}

/**
 * Make a tensor of zeros.
 *
 * @param {string} type dtype
 * @param {number[]} dims
 * @returns {Tensor}
 */
export function zeros(type, dims) {
  return { type, data: new ARRAYS[type](dims.reduce((product, n) => product * n, 1)), dims };
}

/**
 * Read a tensor from bytes.
 *
 * @param {string} type dtype
 * @param {ArrayBuffer} bytes
 * @param {number[]} dims
 * @returns {Tensor}
 */
export function fromBytes(type, bytes, dims) {
  return { type, data: new ARRAYS[type](bytes), dims };
}

/**
 * Return the elements of a tensor as numbers.
 *
 * @param {Tensor} x
 * @returns {number[]}
 */
export function numbersOf(x) {
  const read = x.type === "float16" && x.data instanceof Uint16Array ? fromHalf : Number;
  return Array.from(/** @type {any} */ (x.data), read);
}

/**
 * @param {string} type
 * @returns {(value: number) => any}
 */
function converter(type) {
  if (type === "int64" || type === "uint64") return (value) => BigInt(whole(value));
  if (type.includes("int")) return whole;
  if (type === "bool") return (value) => (value ? 1 : 0);
  return type === "float16" ? toHalf : Number;
}

/** @param {number} value */
function whole(value) {
  if (!Number.isInteger(value)) throw new Error(`${value} is not a whole number`);
  if (!Number.isSafeInteger(value)) throw new Error(`${value} is beyond 2^53, up to which whole numbers are exact here`);
  return value;
}

const FLOAT = new Float32Array(1);
const BITS = new Uint32Array(FLOAT.buffer);

/**
 * Round a number to the bits of a float16, to nearest and ties to even.
 *
 * @param {number} value
 */
export function toHalf(value) {
  FLOAT[0] = value;
  const bits = BITS[0];
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Below the normal numbers: units of 2 ** -24.
    const units = Math.abs(FLOAT[0]) * 2 ** 24;
    const low = Math.floor(units);
    const up = units - low > 0.5 || (units - low === 0.5 && low % 2 === 1);
    return sign | (low + (up ? 1 : 0));
  }
  const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1);
  return sign | ((rounded - 0x38000000) >>> 13);
}

/**
 * Return the number of the bits of a float16.
 *
 * @param {number} bits
 */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * (1 + fraction / 1024) * 2 ** (exponent - 15) : sign * fraction * 2 ** -24;
}

/**
 * Write a probability as a percentage.
 *
 * @param {number} value
 */
export function percentage(value) {
  if (value > 0 && value < 5e-4) return "< 0.1%";
  if (value < 1 && value > 0.9995) return "> 99.9%";
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)}%` : String(value);
}

/**
 * Return a function that writes numbers with as many decimals as a spread of them has digits that matter: two.
 *
 * @param {number} spread
 * @returns {(value: number) => string}
 */
export function inDigitsOf(spread) {
  const decimals = 1 - Math.floor(Math.log10(spread));
  if (!Number.isFinite(decimals) || decimals > 6) return (value) => shown(value, 3);
  return (value) => {
    if (!Number.isFinite(value) || Math.abs(value) >= 1e6) return shown(value, 3);
    const text = value.toFixed(Math.max(0, decimals));
    return Number(text) === 0 ? text.replace("-", "") : text;
  };
}

/**
 * Write a number in few digits.
 *
 * @param {number} value
 * @param {number} [digits]
 */
export function shown(value, digits = 5) {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
}
