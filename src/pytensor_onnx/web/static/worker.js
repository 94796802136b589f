/**
 * Runs the model and keeps its state, so that the page stays alive. It answers messages {id, action, ...}.
 */

import { fromBytes } from "./tensors.js";

/** Bytes of a model up to which it has one thread. */
const SMALL = 1e6;
const MOST_THREADS = 4;
/** Level of what the runtime logs: it would tell which nodes WebGPU leaves to the processor. */
const ERRORS = 3;

/** @type {any} */
let ort;
/** @type {any} */
let session;
/** @type {Record<string, string>} inputs of the state, and the outputs of their next values */
let pairs = {};
/** @type {{name: string, bytes: ArrayBuffer, dtype: string, dims: number[]}[]} */
let firstState = [];
/** @type {Record<string, any>} */
let state = {};
/** State before the last reset. @type {Record<string, any>} */
let left = {};

const actions = {
  /**
   * Load the runtime, the model and its first state.
   *
   * @param {{model: string, runtime: {folder: string, module: string, binary: string, backend: string}, state: any}} options
   */
  async load({ model, runtime, state: described }) {
    const started = performance.now();
    // Files arrive while the runtime is read.
    const arriving = load(model);
    const compiled = load(runtime.folder + runtime.binary).then(opened);
    const values = (described.values ?? []).map(async (/** @type {any} */ x) => ({ ...x, bytes: await load(x.file) }));
    const files = Promise.all([arriving, compiled, ...values]);
    files.catch(() => {});
    ort = await import(runtime.folder + runtime.module);
    ort.env.wasm.wasmPaths = runtime.folder;
    const [content, binary, ...first] = await files;
    ort.env.wasm.wasmBinary = binary;
    const bytes = new Uint8Array(content);
    // Threads take time to start, and small models gain nothing from them.
    const cores = self.crossOriginIsolated && bytes.length > SMALL ? navigator.hardwareConcurrency || 1 : 1;
    ort.env.wasm.numThreads = Math.min(MOST_THREADS, cores);
    pairs = described.pairs;
    firstState = first;
    actions.reset();
    let backend = runtime.backend;
    if (backend === "webgpu" && !(await adapter())) backend = "wasm";
    session = await ort.InferenceSession.create(bytes, { executionProviders: [backend], logSeverityLevel: ERRORS });
    const seconds = (performance.now() - started) / 1000;
    return { seconds, bytes: bytes.length, threads: ort.env.wasm.numThreads, backend };
  },

  /** Return to the first state; `undo` goes back. */
  reset() {
    left = state;
    const values = firstState.map(({ name, bytes, dtype, dims }) => [name, made(fromBytes(dtype, bytes.slice(0), dims))]);
    state = Object.fromEntries(values);
  },

  /** Return to the state before the last reset. */
  undo() {
    state = left;
  },

  /** Return the present state. */
  state() {
    return Object.fromEntries(Object.entries(state).map(([name, x]) => [name, plain(x)]));
  },

  /**
   * Run the model once or several times, each on the state that the run before it left.
   *
   * @param {{feeds: Record<string, import("./tensors.js").Tensor>, times: number}} options
   */
  async run({ feeds, times }) {
    const received = performance.now();
    const given = Object.fromEntries(Object.entries(feeds).map(([name, x]) => [name, made(x)]));
    const started = performance.now();
    /** @type {Record<string, any>} */
    let results = {};
    for (let i = 0; i < times; i++) {
      results = await session.run({ ...given, ...state });
      for (const [name, next] of Object.entries(pairs)) {
        state[name] = results[next];
        delete results[next];
      }
    }
    const milliseconds = performance.now() - started;
    const outputs = Object.fromEntries(Object.entries(results).map(([name, x]) => [name, plain(x)]));
    return { outputs, milliseconds, others: performance.now() - received - milliseconds };
  },
};

/** @param {import("./tensors.js").Tensor} x @returns {any} */
const made = (x) => new ort.Tensor(x.type, x.data, x.dims);

/** @param {any} x @returns {import("./tensors.js").Tensor} */
const plain = (x) => ({ type: x.type, data: x.data, dims: [...x.dims] });

/** Bytes of all files: those that arrived, and those that are expected. */
const progress = { received: 0, total: 0 };

/**
 * Load a file, and tell the page how much of it has arrived.
 *
 * @param {string} address
 */
async function load(address) {
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
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
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
