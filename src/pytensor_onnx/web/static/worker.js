/**
 * Runs the model, so that the page stays alive. It answers messages {id, action, ...}.
 */

/** @type {any} */
let ort;
/** @type {any} */
let session;

const actions = {
  /**
   * Load the runtime and the model.
   *
   * @param {{model: string, runtime: {folder: string, module: string, backend: string}}} options
   */
  async load({ model, runtime }) {
    const started = performance.now();
    ort = await import(runtime.folder + runtime.module);
    ort.env.wasm.wasmPaths = runtime.folder;
    const cores = navigator.hardwareConcurrency || 1;
    ort.env.wasm.numThreads = self.crossOriginIsolated ? Math.min(4, cores) : 1;
    const response = await fetch(model);
    if (!response.ok) throw new Error(`the model cannot be loaded: ${response.status} ${response.statusText}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    let backend = runtime.backend;
    if (backend === "webgpu" && !(await adapter())) backend = "wasm";
    session = await ort.InferenceSession.create(bytes, { executionProviders: [backend] });
    const seconds = (performance.now() - started) / 1000;
    return { seconds, bytes: bytes.length, threads: ort.env.wasm.numThreads, backend };
  },

  /**
   * Run the model once.
   *
   * @param {{feeds: Record<string, {type: string, data: any, dims: number[]}>}} options
   */
  async run({ feeds }) {
    const tensors = Object.fromEntries(
      Object.entries(feeds).map(([name, x]) => [name, new ort.Tensor(x.type, x.data, x.dims)]),
    );
    const started = performance.now();
    const results = await session.run(tensors);
    const milliseconds = performance.now() - started;
    const outputs = Object.fromEntries(
      Object.entries(results).map(([name, x]) => [name, { type: x.type, data: x.data, dims: [...x.dims] }]),
    );
    return { outputs, milliseconds };
  },
};

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
