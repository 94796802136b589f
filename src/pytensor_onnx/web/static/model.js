/** The model in its worker. */
export class Model {
  constructor() {
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, result, error } }) => {
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

  /** @param {{folder: string, module: string, backend: string}} runtime */
  load(runtime) {
    const folder = new URL(runtime.folder, document.baseURI).href;
    const model = new URL("model.onnx", document.baseURI).href;
    return this.ask("load", { model, runtime: { ...runtime, folder } });
  }

  /** @param {Record<string, import("./tensors.js").Tensor>} feeds */
  run(feeds) {
    return this.ask("run", { feeds });
  }
}
