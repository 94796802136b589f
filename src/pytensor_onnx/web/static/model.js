import { embedded } from "./embedded.js";

/** The model in its worker. */
export class Model {
  constructor() {
    const script = embedded("worker.js");
    this.worker = script
      ? new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })))
      : new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    this.count = 0;
    /** When the last answer arrived. */
    this.answered = 0;
    /** Told how many bytes of all have arrived. @type {(progress: {received: number, total: number}) => void} */
    this.onprogress = () => {};
    /** Told how far a long run is. @type {(progress: {done: number, total: number, outputs: any}) => void} */
    this.onrunning = () => {};
    this.worker.onmessage = (event) => {
      if (event.data.progress) return this.onprogress(event.data.progress);
      if (event.data.running) return this.onrunning(event.data.running);
      this.answered = performance.now();
      // Reading the data copies them.
      const { id, result, error } = event.data;
      const { resolve, reject } = /** @type {any} */ (this.waiting.get(id));
      this.waiting.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(error));
    };
    this.worker.onerror = (event) => {
      const error = new Error(event.message || "the worker cannot start in this browser");
      for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
    };
  }

  /**
   * @param {string} action
   * @param {object} options
   * @returns {Promise<any>}
   */
  ask(action, options) {
    const id = this.count++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, action, ...options });
    });
  }

  /**
   * @param {{engine: string, folder?: string}} runtime the engine that runs the model, and the folder of its files
   * @param {{pairs: Record<string, string>, values?: {file: string}[]}} state
   */
  load(runtime, state) {
    const at = (/** @type {string} */ path) => embedded(path) ?? new URL(path, document.baseURI).href;
    const values = (state.values ?? []).map((value) => ({ ...value, file: at(value.file) }));
    return this.ask("load", {
      model: at(runtime.engine === "tape" ? "model.tape" : "model.onnx"),
      runtime: { ...runtime, folder: at(runtime.folder ?? ""), tape: at("tape.wasm.gz") },
      state: { ...state, values },
    });
  }

  /**
   * Run the model; beside its own time, `sending` is what messages take, without waiting for the browser's next frame,
   * and `answered` is when the outputs arrived; `stopped` is how far a run came that was stopped.
   *
   * @param {Record<string, import("./tensors.js").Tensor>} feeds
   * @param {number} times
   */
  async run(feeds, times) {
    const started = performance.now();
    const answer = this.ask("run", { feeds, times });
    const sending = performance.now() - started;
    const { outputs, milliseconds, stopped, others } = await answer;
    return { outputs, milliseconds, stopped, sending: sending + others, answered: this.answered };
  }
}
