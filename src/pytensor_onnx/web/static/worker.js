/**
 * Runs the model and keeps its state, so that the page stays alive. It answers messages {id, action, ...}.
 */

import { fromBytes, zeros } from "./tensors.js";

/**
 * @typedef {import("./tensors.js").Tensor} Tensor
 * @typedef {string | Uint8Array<ArrayBuffer>} Source the address of a file, or its content
 */

/** Bytes of a model up to which it has one thread. */
const SMALL = 1e6;
const MOST_THREADS = 4;
/** Level of what the runtime logs: it would tell which nodes WebGPU leaves to the processor. */
const ERRORS = 3;

/**
 * How far a run is: iterations, and the outputs so far.
 *
 * @typedef {{done: number, total: number, outputs: () => Record<string, Tensor>}} Progress
 * @typedef {(progress: Progress) => boolean} Watch
 */

/** Runs the model on tensors. @type {(feeds: Record<string, Tensor>, watch: Watch) => Promise<Record<string, Tensor>>} */
let runModel;
/** Whether the present run is to stop. */
let isStopping = false;
/** @type {Record<string, string>} inputs of the state, and the outputs of their next values */
let pairs = {};
/** @type {{name: string, bytes: ArrayBuffer, dtype: string, dims: number[]}[]} */
let firstState = [];
/** @type {Record<string, Tensor>} */
let state = {};
/** State before the last reset. @type {Record<string, Tensor>} */
let left = {};
/** States within a sequence of windows: the outputs of their next values, and their types. @type {Record<string, {next: string, dtype: string, dims: number[]}>} */
let carried = {};
/** Milliseconds of a sequence before it says how far it is. */
const PATIENCE = 200;

const actions = {
  /**
   * Load the engine, the model and its first state.
   *
   * @param {{model: Source, runtime: any, state: any}} options
   */
  async load({ model, runtime, state: described }) {
    const started = performance.now();
    const values = (described.values ?? []).map(async (/** @type {any} */ x) => ({ ...x, bytes: await load(x.file) }));
    const first = Promise.all(values);
    first.catch(() => {});
    const start = runtime.engine === "tape" ? startTape : startRuntime;
    const { run, ...about } = await start(model, runtime);
    runModel = run;
    pairs = described.pairs;
    carried = described.carried ?? {};
    firstState = await first;
    actions.reset();
    return { seconds: (performance.now() - started) / 1000, ...about };
  },

  /** Return to the first state; `undo` goes back. */
  reset() {
    left = state;
    const values = firstState.map(({ name, bytes, dtype, dims }) => [name, fromBytes(dtype, bytes.slice(0), dims)]);
    state = Object.fromEntries(values);
  },

  /** Return to the state before the last reset. */
  undo() {
    state = left;
  },

  /** Return the present state. */
  state() {
    return state;
  },

  /** Stop the present run, if the engine can. */
  stop() {
    isStopping = true;
  },

  /**
   * Run the model once or several times, each on the state that the run before it left. A run that is stopped returns the
   * outputs so far, and leaves the state as it was.
   *
   * @param {{feeds: Record<string, import("./tensors.js").Tensor>, times: number}} options
   */
  async run({ feeds, times }) {
    if (Object.values(feeds).some(isSequence)) return runSequence(feeds);
    const received = performance.now();
    /** @type {Record<string, Tensor>} */
    let outputs = {};
    let milliseconds = 0;
    /** @type {{done: number, total: number} | null} */
    let stopped = null;
    const watch = (/** @type {Progress} */ { done, total, outputs }) => {
      if (isStopping) stopped = { done, total };
      else self.postMessage({ running: { done, total, outputs: soFar(outputs) } });
      return !isStopping;
    };
    isStopping = false;
    for (let i = 0; i < times && !stopped; i++) {
      const started = performance.now();
      outputs = await runModel({ ...feeds, ...state, ...firstCarried() }, watch);
      milliseconds += performance.now() - started;
      if (stopped) outputs = shown(outputs);
      else for (const [name, next] of Object.entries(pairs)) {
        state[name] = outputs[next];
        delete outputs[next];
      }
      for (const { next } of Object.values(carried)) delete outputs[next];
    }
    return { outputs, milliseconds, stopped, others: performance.now() - received - milliseconds };
  },
};

/** Zeros of the states within a sequence. @returns {Record<string, Tensor>} */
const firstCarried = () => mapped(carried, ({ dtype, dims }) => zeros(dtype, dims));

/** @param {any} x */
const isSequence = (x) => x.steps !== undefined;

/**
 * Run the model on one window after the other; what it hands on begins with zeros. Outputs have a first axis of windows.
 *
 * @param {Record<string, Tensor & {steps?: number}>} feeds
 */
async function runSequence(feeds) {
  const started = performance.now();
  const fixed = Object.fromEntries(Object.entries(feeds).filter(([, x]) => !isSequence(x)));
  const [name, all] = /** @type {[string, any]} */ (Object.entries(feeds).find(([, x]) => isSequence(x)));
  const dims = all.dims.slice(1);
  const size = dims.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
  let handed = firstCarried();
  /** @type {Record<string, {type: string, dims: number[], parts: any[]}>} */
  const found = {};
  const joined = () =>
    mapped(found, ({ type, dims, parts }) => {
      const data = new parts[0].constructor(parts.length * parts[0].length);
      parts.forEach((/** @type {any} */ part, /** @type {number} */ i) => data.set(part, i * part.length));
      return { type, data, dims: [parts.length, ...dims] };
    });
  isStopping = false;
  let told = started;
  for (let i = 0; i < all.steps; i++) {
    const window = { type: all.type, data: all.data.slice(i * size, (i + 1) * size), dims };
    const outputs = await runModel({ ...fixed, [name]: window, ...handed }, () => true);
    handed = mapped(carried, ({ next }) => outputs[next]);
    for (const { next } of Object.values(carried)) delete outputs[next];
    for (const [key, { type, dims, data }] of Object.entries(outputs)) (found[key] ??= { type, dims, parts: [] }).parts.push(data);
    if (performance.now() - told < PATIENCE) continue;
    self.postMessage({ running: { done: i + 1, total: all.steps, outputs: joined() } });
    // A message to stop arrives meanwhile.
    await new Promise((resolve) => setTimeout(resolve));
    told = performance.now();
    if (isStopping) return { outputs: joined(), milliseconds: told - started, stopped: { done: i + 1, total: all.steps }, others: 0 };
  }
  return { outputs: joined(), milliseconds: performance.now() - started, stopped: null, others: 0 };
}

/** Return the outputs of a run that goes on, null where the rest of the model cannot take a part of a loop's results. @param {() => Record<string, Tensor>} outputs */
function soFar(outputs) {
  try {
    return shown(outputs());
  } catch {
    return null;
  }
}

/** Return the outputs that are not the next state. @param {Record<string, Tensor>} outputs */
function shown(outputs) {
  const next = Object.values(pairs);
  return Object.fromEntries(Object.entries(outputs).filter(([name]) => !next.includes(name)));
}

/**
 * Load a tape, which needs no runtime.
 *
 * @param {Source} model
 * @param {{tape: Source}} runtime
 */
async function startTape(model, runtime) {
  const files = Promise.all([load(model), load(runtime.tape)]);
  files.catch(() => {});
  const tape = await import("./tape.js");
  const [content, binary] = await files;
  const loaded = await tape.load(content, binary);
  const tensors = (/** @type {any} */ results) => mapped(results, ({ dtype, ...x }) => ({ type: dtype, ...x }));
  const run = async (/** @type {any} */ feeds, /** @type {Watch} */ watch) =>
    tensors(await loaded.run(feeds, ({ outputs, ...x }) => watch({ ...x, outputs: () => tensors(outputs()) })));
  return { run, bytes: content.byteLength, threads: 1, backend: "wasm" };
}

/**
 * Load ONNX Runtime Web and a model.
 *
 * @param {Source} model
 * @param {{folder: string, module: string, binary: string, backend: string}} runtime
 */
async function startRuntime(model, runtime) {
  // Files arrive while the runtime is read.
  const files = Promise.all([load(model), load(runtime.folder + runtime.binary).then(opened)]);
  files.catch(() => {});
  const ort = await import(runtime.folder + runtime.module);
  ort.env.wasm.wasmPaths = runtime.folder;
  const [content, binary] = await files;
  ort.env.wasm.wasmBinary = binary;
  const bytes = new Uint8Array(content);
  // Threads take time to start, and small models gain nothing from them.
  const cores = self.crossOriginIsolated && bytes.length > SMALL ? navigator.hardwareConcurrency || 1 : 1;
  ort.env.wasm.numThreads = Math.min(MOST_THREADS, cores);
  let { backend } = runtime;
  if (backend === "webgpu" && !(await adapter())) backend = "wasm";
  const session = await ort.InferenceSession.create(bytes, { executionProviders: [backend], logSeverityLevel: ERRORS });
  const made = (/** @type {Tensor} */ x) => new ort.Tensor(x.type, x.data, x.dims);
  const run = async (/** @type {Record<string, Tensor>} */ feeds) => {
    const results = await session.run(mapped(feeds, made));
    return mapped(results, (x) => ({ type: x.type, data: x.data, dims: [...x.dims] }));
  };
  return { run, bytes: bytes.length, threads: ort.env.wasm.numThreads, backend };
}

/** @param {Record<string, any>} tensors @param {(x: any) => any} change @returns {Record<string, any>} */
const mapped = (tensors, change) => Object.fromEntries(Object.entries(tensors).map(([name, x]) => [name, change(x)]));

/** Bytes of all files: those that arrived, and those that are expected. */
const progress = { received: 0, total: 0 };

/**
 * Load a file, and tell the page how much of it has arrived.
 *
 * @param {Source} address
 * @returns {Promise<ArrayBuffer>}
 */
async function load(address) {
  if (typeof address !== "string") return address.buffer;
  const response = await fetch(address);
  if (!response.ok || !response.body) throw new Error(`${address} cannot be loaded: ${response.status} ${response.statusText}`);
  // The length of an encoded file is not that of the bytes that are read.
  const expected = response.headers.has("Content-Encoding") ? NaN : Number(response.headers.get("Content-Length") ?? NaN);
  progress.total += expected;
  const parts = [];
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    progress.received += value.length;
    self.postMessage({ progress });
  }
  return new Blob(parts).arrayBuffer();
}

/**
 * Open a compressed file; some servers send it opened already.
 *
 * @param {ArrayBuffer} bytes
 */
async function opened(bytes) {
  const [first, second] = new Uint8Array(bytes);
  if (first !== 0x1f || second !== 0x8b) return bytes;
  const stream = /** @type {ReadableStream} */ (new Response(bytes).body);
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function adapter() {
  const gpu = /** @type {any} */ (navigator).gpu;
  return gpu ? gpu.requestAdapter().catch(() => null) : null;
}

self.onmessage = async ({ data: { id, action, ...options } }) => {
  try {
    const result = await /** @type {any} */ (actions)[action](options);
    self.postMessage({ id, result });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
};
