/**
 * Run a model that `pytensor-onnx web` wrote as a tape, in a browser or in Node.
 *
 *     const model = await load("model.tape");
 *     const { y } = await model.run({ x: { data: Float64Array.of(1, 2), dims: [2] } });
 *
 * @typedef {"float64" | "float32" | "int64" | "int32" | "uint64" | "uint32" | "uint8" | "bool"} Dtype
 * @typedef {Float64Array | Float32Array | BigInt64Array | Int32Array | BigUint64Array | Uint32Array | Uint8Array} Numbers
 * @typedef {{data: Numbers, dims: number[]}} Given the elements of an array in order, and its sizes
 * @typedef {{dtype: Dtype, data: Numbers, dims: number[]}} Result
 * @typedef {{name: string, dtype: Dtype, dims: (number | string | null)[]}} Value a size is a number, a name, or unknown
 * @typedef {string | URL | ArrayBuffer | Uint8Array} Source an address, a path in Node, or the content
 */

const MAGIC = "PTTAPE\0\0";
const FORMAT = 3;
const DAMAGED = "model.tape is damaged: write it anew";
/** The largest number of steps of a call. */
const MOST = 2 ** 31 - 1;
/** Axes of an array at most, and bytes of an array in the module: dtype, rank, size, eight sizes, address. */
const AXES = 8;
const ARRAY = 88;
/** Milliseconds of a run before it first says how far it is, and between two such times. */
const PATIENCE = 200;
/** Milliseconds of a part of a run, after which messages arrive. */
const PART = 20;
/** Bytes that memory grows by before the module starts anew, as it cannot shrink. */
const ROOM = 2 ** 26;

/** Numbers and arrays of dtypes. @type {Record<string, [number, any]>} */
const DTYPES = {
  float32: [1, Float32Array],
  uint8: [2, Uint8Array],
  int32: [6, Int32Array],
  int64: [7, BigInt64Array],
  bool: [9, Uint8Array],
  float64: [11, Float64Array],
  uint32: [12, Uint32Array],
  uint64: [13, BigUint64Array],
};
/** @type {Record<number, string>} */
const NAMES = Object.fromEntries(Object.entries(DTYPES).map(([name, [number]]) => [number, name]));

/**
 * Load a model.
 *
 * @param {Source} source the file `model.tape`
 * @param {Source} [module] the file `tape.wasm.gz`; the one beside this script unless it is given
 * @returns {Promise<Model>}
 */
export async function load(source, module = new URL("tape.wasm.gz", import.meta.url)) {
  const [content, binary] = await Promise.all([source, module].map((x) => bytesOf(x).then(opened)));
  const model = new Model(new Uint8Array(content), await WebAssembly.compile(binary));
  await model.open();
  return model;
}

/**
 * How far a run is: iterations of its present loop, and the outputs so far, whose missing numbers are NaN or zero.
 *
 * @typedef {{done: number, total: number, outputs: () => Record<string, Result>}} Progress
 */

/** A model in a module of WebAssembly. */
export class Model {
  /** @param {Uint8Array} content @param {WebAssembly.Module} module */
  constructor(content, module) {
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    const isTape = content.length >= 16 && MAGIC === String.fromCharCode(...content.subarray(0, 8));
    if (!isTape) throw new Error("this is no file model.tape");
    const start = 16 + view.getUint32(8, true);
    const header = headerOf(content.subarray(16, start));
    if (header.format !== FORMAT) throw new Error("model.tape is of another version than tape.js: write it anew");
    if (digestOf(content.subarray(16)) !== view.getUint32(12, true)) throw new Error(DAMAGED);
    this.header = header;
    this.data = content.subarray(start);
    this.module = module;
    /** @type {any} */
    this.exports = null;
    this.runner = this.first = 0;
    /** The end of the last run. @type {Promise<unknown>} */
    this.turn = Promise.resolve();
    /** Addresses of constants by the position of the operand. @type {Map<number, number>} */
    this.constants = new Map();
    /** Inputs of the model. @type {Value[]} */
    this.inputs = header.inputs;
    /** Outputs of the model. @type {Value[]} */
    this.outputs = header.outputs;
    /** For each input that is a state, the output that is its next value. @type {Record<string, string>} */
    this.state = header.state;
    /** SHA-256 of the ONNX file that the tape was made of. @type {string} */
    this.sha256 = header.sha256;
  }

  /** Start the module, and give it the tape and the constants. */
  async open() {
    const instance = await WebAssembly.instantiate(this.module, {});
    const exports = /** @type {any} */ (instance.exports);
    exports._initialize?.();
    this.exports = exports;
    const names = [];
    for (let at; (at = exports.operator(names.length)); ) names.push(this.text(at));
    if (String(names) !== String(this.header.operators)) {
      throw new Error("model.tape and tape.wasm.gz are of different versions: write both anew");
    }
    if (this.header.whole && !exports.whole()) {
      throw new Error("tape.wasm.gz has no kernels for model.tape: write both anew");
    }
    const { operands, tape } = this.header;
    const copy = this.copy(this.part(tape));
    this.runner = exports.open(copy, tape[1]);
    exports.release(copy);
    if (!this.runner) throw new Error(DAMAGED);
    // The module reads and writes as many arrays as the tape has.
    const isOfTape = operands.length === exports.inputs(this.runner) && this.header.results.length === exports.outputs(this.runner);
    if (!isOfTape || !this.inputs.every(({ dims }) => dims.length <= AXES)) throw new Error(DAMAGED);
    for (let i = 0; i < operands.length; i++) {
      if (typeof operands[i] === "string") continue;
      checkSizes(operands[i]);
      this.constants.set(i, this.copy(this.part(operands[i].data)));
      exports.hold(this.runner, i);
    }
    this.first = exports.memory.buffer.byteLength;
  }

  /**
   * Run the model.
   *
   * @param {Record<string, Given>} feeds the inputs by name
   * @param {((progress: Progress) => unknown)} [watch] called a few times a second in a long run; it stops the run by
   *   returning false, and the outputs are then those so far
   * @returns {Promise<Record<string, Result>>} the outputs by name
   */
  async run(feeds, watch) {
    const given = this.checked(feeds ?? {});
    // Runs take turns.
    const turn = this.turn.then(() => this.once(given, watch));
    this.turn = turn.catch(() => {});
    return turn;
  }

  /** @param {Record<string, Given>} given @param {((progress: Progress) => unknown)} [watch] */
  async once(given, watch) {
    if (!this.exports) await this.open();
    try {
      return await this.call(given, watch);
    } catch (error) {
      // A module that has stopped is not used again.
      const problem = this.exports.problem();
      const reason = problem ? this.text(problem) : error instanceof Error ? error.message : String(error);
      this.exports = null;
      throw new Error(`the model cannot run: ${reason}`);
    } finally {
      if (this.exports?.memory.buffer.byteLength > this.first + ROOM) this.exports = null;
    }
  }

  /**
   * @param {Record<string, Given>} given
   * @param {((progress: Progress) => unknown)} [watch]
   * @returns {Promise<Record<string, Result>>}
   */
  async call(given, watch) {
    const { operands, results } = this.header;
    const { exports } = this;
    const made = this.allocate((operands.length + results.length) * ARRAY);
    const answers = made + operands.length * ARRAY;
    /** @type {Map<string, number>} */
    const copies = new Map();
    operands.forEach((/** @type {any} */ operand, /** @type {number} */ i) => {
      if (typeof operand !== "string") return this.describe(made + i * ARRAY, operand, /** @type {number} */ (this.constants.get(i)));
      const { data, dims } = given[operand];
      const address = copies.get(operand) ?? this.copy(data);
      copies.set(operand, address);
      const { dtype } = /** @type {Value} */ (this.inputs.find(({ name }) => name === operand));
      this.describe(made + i * ARRAY, { dtype, dims }, address);
    });
    this.pass(exports.begin(this.runner, made, answers));
    const outputs = () => {
      const read = results.map((/** @type {string} */ name, /** @type {number} */ i) => [name, this.read(answers + i * ARRAY)]);
      const found = Object.fromEntries(read);
      return Object.fromEntries(this.outputs.map(({ name }) => [name, found[name]]));
    };
    if (watch) await this.inParts(watch, outputs);
    else while (exports.more()) this.pass(exports.advance(MOST));
    const found = outputs();
    exports.end();
    for (const i of results.keys()) exports.release(this.address(answers + i * ARRAY));
    for (const at of [made, ...copies.values()]) exports.release(at);
    return found;
  }

  /**
   * Run until the end, or until `watch` stops the run, with pauses in which the worker or the page receives messages.
   *
   * @param {(progress: Progress) => unknown} watch
   * @param {() => Record<string, Result>} outputs
   */
  async inParts(watch, outputs) {
    const { exports } = this;
    const partial = () => {
      this.pass(exports.peek());
      return outputs();
    };
    let told = performance.now();
    for (let count = 1; exports.more(); ) {
      const started = performance.now();
      this.pass(exports.advance(count));
      const now = performance.now();
      count = Math.max(1, Math.floor(now - started < PART ? 2 * count : count / 2));
      if (now - told < PATIENCE || !exports.total()) continue;
      await pause();
      const isStopped = (await watch({ done: exports.done(), total: exports.total(), outputs: partial })) === false;
      if (isStopped) {
        if (exports.peek()) throw new Error("it was stopped before it had results");
        return;
      }
      told = performance.now();
    }
  }

  /** Raise a problem of the module. @param {number} problem */
  pass(problem) {
    if (problem) throw new Error(this.text(problem));
  }

  /**
   * Return the inputs, after a check of names, dtypes and sizes.
   *
   * @param {Record<string, Given>} feeds
   * @returns {Record<string, Given>}
   */
  checked(feeds) {
    const known = this.inputs.map(({ name }) => name);
    const unknown = Object.keys(feeds).filter((name) => !known.includes(name));
    if (unknown.length) throw new Error(`the model has no input ${unknown.join(", ")}; it has ${known.join(", ") || "none"}`);
    /** Sizes by their names. @type {Map<string, number>} */
    const sizes = new Map();
    return Object.fromEntries(this.inputs.map((input) => [input.name, this.array(input, feeds[input.name], sizes)]));
  }

  /** @param {Value & {default?: any}} input @param {Given | undefined} given @param {Map<string, number>} sizes @returns {Given} */
  array({ name, dtype, dims, default: value }, given, sizes) {
    const [, Numbers] = DTYPES[dtype];
    if (!given && value) {
      checkSizes(value);
      const bytes = this.part(value.data).slice();
      return { data: new Numbers(bytes.buffer), dims: value.dims };
    }
    if (!given) throw new Error(`input ${name} is missing`);
    if (!(given.data instanceof Numbers)) {
      throw new Error(`input ${name}: data of ${dtype} are a ${Numbers.name}, not ${given.data?.constructor?.name ?? given.data}`);
    }
    const expected = dims.map((size) => size ?? "any size").join(" x ") || "no axes";
    if (!Array.isArray(given.dims) || given.dims.length !== dims.length) {
      throw new Error(`input ${name}: dims are [${given.dims ?? ""}], and the model has ${expected}`);
    }
    given.dims.forEach((size, axis) => {
      if (!Number.isInteger(size) || size < 0) throw new Error(`input ${name}: ${size} is no size`);
      const wanted = dims[axis];
      const fixed = typeof wanted === "string" ? (sizes.get(wanted) ?? size) : (wanted ?? size);
      if (typeof wanted === "string") sizes.set(wanted, fixed);
      if (size !== fixed) {
        const reason = typeof wanted === "string" ? `${wanted} is ${fixed} in an input before it` : `the model has ${expected}`;
        throw new Error(`input ${name}: dims are [${given.dims}], and ${reason}`);
      }
    });
    const count = given.dims.reduce((product, size) => product * size, 1);
    if (given.data.length !== count) {
      throw new Error(`input ${name}: ${given.data.length} numbers do not fill an array of sizes [${given.dims}]`);
    }
    return given;
  }

  /** @param {[number, number]} place */
  part([offset, bytes]) {
    const end = offset + bytes;
    if (!(offset >= 0 && bytes >= 0 && end <= this.data.length)) throw new Error(DAMAGED);
    return this.data.subarray(offset, end);
  }

  /** @param {number} bytes @returns {number} */
  allocate(bytes) {
    const at = this.exports.allocate(bytes) >>> 0;
    if (!at) throw new Error("there is no memory for it");
    return at;
  }

  /** Copy numbers into the module. @param {ArrayBufferView} numbers */
  copy(numbers) {
    const at = this.allocate(numbers.byteLength);
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    new Uint8Array(this.exports.memory.buffer).set(bytes, at);
    return at;
  }

  /** @param {number} at @param {{dtype: string, dims: number[]}} array @param {number} address */
  describe(at, { dtype, dims }, address) {
    const view = new DataView(this.exports.memory.buffer, at, ARRAY);
    view.setInt32(0, DTYPES[dtype][0], true);
    view.setInt32(4, dims.length, true);
    view.setBigInt64(8, BigInt(dims.reduce((product, size) => product * size, 1)), true);
    dims.forEach((size, axis) => view.setBigInt64(16 + 8 * axis, BigInt(size), true));
    view.setUint32(80, address, true);
  }

  /** The address of a result's numbers. @param {number} at */
  address(at) {
    return new DataView(this.exports.memory.buffer).getUint32(at + 80, true);
  }

  /** Read a result. @param {number} at @returns {Result} */
  read(at) {
    const { buffer } = this.exports.memory;
    const view = new DataView(buffer, at, ARRAY);
    const dtype = /** @type {Dtype} */ (NAMES[view.getInt32(0, true)]);
    const dims = Array.from({ length: view.getInt32(4, true) }, (_, axis) => Number(view.getBigInt64(16 + 8 * axis, true)));
    const address = this.address(at);
    const [, Numbers] = DTYPES[dtype];
    const end = address + Number(view.getBigInt64(8, true)) * Numbers.BYTES_PER_ELEMENT;
    const data = new Numbers(buffer.slice(address, end));
    return { dtype, data, dims };
  }

  /** Read a text of the module. @param {number} at */
  text(at) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return String.fromCharCode(...bytes.subarray(at, bytes.indexOf(0, at)));
  }
}

/** Check that an array of the file has as many bytes as its sizes say. @param {{dtype: string, dims: number[], data: number[]}} array */
function checkSizes({ dtype, dims, data }) {
  const bytes = dims.reduce((product, size) => product * size, DTYPES[dtype][1].BYTES_PER_ELEMENT);
  const areSizes = dims.length <= AXES && dims.every((size) => Number.isInteger(size) && size >= 0);
  if (!areSizes || bytes !== data[1]) throw new Error(DAMAGED);
}

/** CRC-32, four bytes at a time. @param {Uint8Array} bytes @returns {number} */
function digestOf(bytes) {
  const tables = Array.from({ length: 4 }, () => new Int32Array(256));
  const [first, second, third, fourth] = tables;
  for (let i = 0; i < 256; i++) {
    let rest = i;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
    first[i] = rest;
  }
  for (let i = 0; i < 256; i++) {
    for (let k = 1; k < 4; k++) tables[k][i] = (tables[k - 1][i] >>> 8) ^ first[tables[k - 1][i] & 255];
  }
  let digest = -1;
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    digest ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    digest = fourth[digest & 255] ^ third[(digest >>> 8) & 255] ^ second[(digest >>> 16) & 255] ^ first[digest >>> 24];
  }
  for (; at < bytes.length; at++) digest = (digest >>> 8) ^ first[(digest ^ bytes[at]) & 255];
  return ~digest >>> 0;
}

/** @param {Uint8Array} bytes @returns {any} */
function headerOf(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Error(DAMAGED);
  }
}

/** Wait until messages that have arrived are received. @returns {Promise<void>} */
function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/** @param {Source} source @returns {Promise<Uint8Array>} */
async function bytesOf(source) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if ("process" in globalThis && !String(source).startsWith("http")) {
    const module = "node:fs/promises";
    const { readFile } = await import(module);
    return new Uint8Array(await readFile(source));
  }
  const response = await fetch(source);
  if (!response.ok) throw new Error(`${source} cannot be loaded: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Open a compressed file; some servers send it opened already. @param {Uint8Array} bytes @returns {Promise<ArrayBuffer>} */
async function opened(bytes) {
  const content = /** @type {Uint8Array<ArrayBuffer>} */ (bytes);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return content.slice().buffer;
  // WebKit reads no Blob in a page that is opened from the disk.
  const stream = new Response(content).body ?? new Blob([content]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
