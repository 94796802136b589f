import { makeControl } from "./controls.js";
import { writeCsv } from "./csv.js";
import { Model } from "./model.js";
import { fromBytes } from "./tensors.js";
import { makeView, readResults } from "./views.js";

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);
const status = byId("status");

/** @param {string} text @param {boolean} [isBad] */
function say(text, isBad = false) {
  status.textContent = text;
  status.classList.toggle("bad", isBad);
}

/** @param {string} path */
async function load(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path} cannot be loaded: ${response.status} ${response.statusText}`);
  return response;
}

class Page {
  /** @param {any} description */
  constructor(description) {
    this.description = description;
    this.model = new Model();
    this.isRunning = this.isStale = this.isReady = false;
    /** @type {Record<string, import("./tensors.js").Tensor>} */
    this.state = {};
    /** @type {import("./views.js").Results} */
    this.results = {};
    this.runs = 0;
    const changed = () => this.changed();
    this.controls = description.inputs.map((/** @type {any} */ input) => ({ name: input.name, ...makeControl(input, changed) }));
    const picture = (/** @type {string | undefined} */ name) =>
      this.controls.find((/** @type {any} */ c) => c.picture && (!name || c.name === name))?.picture() ?? null;
    this.views = description.outputs.map((/** @type {any} */ output) => makeView(output, picture)).filter(Boolean);
    byId("inputs").append(...this.controls.map((/** @type {any} */ c) => c.element));
    byId("outputs").append(...this.views.map((/** @type {any} */ v) => v.element));
    byId("run").addEventListener("click", () => this.run());
    byId("download").addEventListener("click", () => this.download());
    const repeat = byId("repeat");
    repeat.hidden = byId("reset").hidden = !Object.keys(description.state.pairs).length;
    repeat.addEventListener("click", () => this.repeat());
    byId("reset").addEventListener("click", () => this.reset().then(() => say("The state is as at the beginning.")));
  }

  async start() {
    await this.reset();
    say("Loading the model…");
    const { seconds, bytes, threads, backend } = await this.model.load(this.description.runtime);
    const where = backend === "webgpu" ? "WebGPU" : `WebAssembly, ${threads} thread${threads > 1 ? "s" : ""}`;
    this.loaded = `${(bytes / 1e6).toFixed(2)} MB loaded in ${seconds.toFixed(2)} s (${where})`;
    byId("timing").textContent = this.loaded;
    this.isReady = true;
    byId("run").disabled = false;
    say("Ready.");
    if (this.description.run === "change") await this.run();
  }

  async reset() {
    this.runs = 0;
    for (const { name, file, dtype, dims } of this.description.state.values ?? []) {
      this.state[name] = fromBytes(dtype, await (await load(file)).arrayBuffer(), dims);
    }
  }

  changed() {
    if (this.isReady && this.description.run === "change") this.run();
  }

  /** Run the model on what the controls give; while it runs, only the last change waits. */
  async run() {
    if (this.isRunning) {
      this.isStale = true;
      return;
    }
    this.isRunning = true;
    try {
      do {
        this.isStale = false;
        await this.once();
      } while (this.isStale);
    } catch (error) {
      this.isRepeating = false;
      say(error instanceof Error ? error.message : String(error), true);
    } finally {
      this.isRunning = false;
    }
  }

  async once() {
    const started = performance.now();
    /** @type {Record<string, import("./tensors.js").Tensor>} */
    const feeds = { ...this.state };
    for (const { name, read } of this.controls) {
      const value = read();
      if (value === null) {
        say(`Give ${name} to run the model.`);
        return;
      }
      feeds[name] = value;
    }
    const { outputs, milliseconds } = await this.model.run(feeds);
    for (const [name, next] of Object.entries(this.description.state.pairs)) {
      this.state[name] = outputs[/** @type {string} */ (next)];
      delete outputs[/** @type {string} */ (next)];
    }
    this.runs += 1;
    this.results = readResults(outputs);
    for (const view of this.views) view.show(this.results);
    byId("download").disabled = false;
    const rest = performance.now() - started - milliseconds;
    const count = this.runs > 1 ? `run ${this.runs}, ` : "";
    byId("timing").textContent = `${count}${milliseconds.toFixed(1)} ms in the model, ${rest.toFixed(1)} ms in the page; ${this.loaded}`;
    say("Done.");
  }

  async repeat() {
    this.isRepeating = !this.isRepeating;
    const button = byId("repeat");
    while (this.isRepeating) {
      button.textContent = "Stop";
      await this.run();
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    button.textContent = "Run repeatedly";
  }

  download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([writeCsv(this.results)], { type: "text/csv" }));
    link.download = "results.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

async function main() {
  if (typeof WebAssembly === "undefined") throw new Error("This browser has no WebAssembly, which the model needs.");
  const description = await (await load("page.json")).json();
  document.title = description.title;
  byId("title").textContent = description.title;
  byId("text").textContent = description.text;
  await new Page(description).start();
}

main().catch((error) => say(`The page cannot start: ${error.message}`, true));
