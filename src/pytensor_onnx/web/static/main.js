import { makeControl } from "./controls.js";
import { writeCsv } from "./csv.js";
import { writeNpz } from "./npz.js";
import { described, loaded, model } from "./start.js";
import { makeView, readResults } from "./views.js";

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);
const status = byId("status");

/** @param {string} text @param {boolean} [isBad] */
function say(text, isBad = false) {
  status.textContent = text;
  status.classList.toggle("bad", isBad);
}

class Page {
  /** @param {any} description @param {import("./model.js").Model} model */
  constructor(description, model) {
    this.description = description;
    this.model = model;
    this.isRunning = this.isStale = this.isReady = this.isRepeating = false;
    /** @type {import("./views.js").Results} */
    this.results = {};
    /** Numbers of all runs, of outputs that are kept. @type {Record<string, number[]>} */
    this.kept = {};
    this.runs = 0;
    const changed = () => this.changed();
    this.controls = description.inputs.map((/** @type {any} */ input) => ({ name: input.name, ...makeControl(input, changed) }));
    const picture = (/** @type {string | undefined} */ name) =>
      this.controls.find((/** @type {any} */ c) => c.picture && (!name || c.name === name))?.picture() ?? null;
    this.views = description.outputs.map((/** @type {any} */ output) => makeView(output, picture)).filter(Boolean);
    byId("inputs").append(...this.controls.map((/** @type {any} */ c) => c.element));
    byId("outputs").append(...this.views.map((/** @type {any} */ v) => v.element));
    const hasState = Object.keys(description.state.pairs).length > 0;
    byId("repeat").hidden = byId("reset").hidden = !hasState && !description.outputs.some(isKept);
    byId("save").hidden = !hasState;
    byId("run").addEventListener("click", () => this.run());
    byId("download").addEventListener("click", () => offer(new Blob([writeCsv(this.results)], { type: "text/csv" }), "results.csv"));
    byId("save").addEventListener("click", async () => offer(writeNpz(await this.model.ask("state", {})), "state.npz"));
    byId("repeat").addEventListener("click", () => this.repeat());
    byId("reset").addEventListener("click", () => this.reset());
  }

  async start() {
    say("Loading the model…");
    const { seconds, bytes, threads, backend } = await loaded;
    const where = backend === "webgpu" ? "WebGPU" : `WebAssembly, ${threads} thread${threads > 1 ? "s" : ""}`;
    const size = bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
    this.loaded = `${size} loaded in ${seconds.toFixed(2)} s (${where})`;
    byId("timing").textContent = this.loaded;
    this.isReady = true;
    for (const name of ["run", "repeat", "reset", "save"]) byId(name).disabled = false;
    say("Ready.");
    if (this.description.run === "change") await this.run();
  }

  async reset() {
    this.isRepeating = false;
    await this.running;
    await this.model.ask("reset", {});
    for (const { restart } of this.controls) restart?.();
    this.runs = 0;
    this.kept = {};
    this.results = {};
    for (const { clear } of this.views) clear?.();
    byId("download").disabled = true;
    byId("timing").textContent = this.loaded;
    say("All is as at the beginning.");
  }

  changed() {
    // Draws for other inputs are draws from another distribution.
    for (const { name, view } of this.description.outputs) if (view.kind === "histogram") delete this.kept[name];
    if (this.isReady && this.description.run === "change") this.run();
  }

  /** Run the model on what the controls give; while it runs, only the last change waits. */
  async run() {
    if (this.isRunning) {
      this.isStale = true;
      return;
    }
    this.isRunning = true;
    byId("outputs").setAttribute("aria-busy", "true");
    this.running = this.untilCurrent();
    await this.running;
    this.isRunning = false;
    byId("outputs").setAttribute("aria-busy", "false");
  }

  async untilCurrent() {
    try {
      do {
        this.isStale = false;
        await this.once();
      } while (this.isStale);
    } catch (error) {
      this.isRepeating = false;
      say(error instanceof Error ? error.message : String(error), true);
    }
  }

  async once() {
    const started = performance.now();
    /** @type {Record<string, import("./tensors.js").Tensor>} */
    const feeds = {};
    for (const { name, read } of this.controls) {
      const value = read();
      if (value === null) {
        this.isRepeating = false;
        say(`Give ${name} to run the model.`);
        return;
      }
      feeds[name] = value;
    }
    const times = this.description.repeat;
    const reading = performance.now() - started;
    const { outputs, milliseconds, sending, answered } = await this.model.run(feeds, times);
    this.runs += times;
    for (const { advance } of this.controls) advance?.();
    this.results = readResults(outputs);
    for (const output of this.description.outputs.filter(isKept)) this.keep(output);
    const given = readResults(Object.fromEntries(this.description.shown.map((/** @type {string} */ name) => [name, feeds[name]])));
    for (const view of this.views) view.show({ ...given, ...this.results }, this.runs);
    byId("download").disabled = false;
    const rest = reading + sending + performance.now() - answered;
    const count = this.runs > 1 ? `run ${this.runs}, ` : "";
    const each = times > 1 ? ` for ${times} runs` : "";
    byId("timing").textContent = `${count}${milliseconds.toFixed(1)} ms in the model${each}, ${rest.toFixed(1)} ms in the page; ${this.loaded}`;
    const rounded = Object.keys(outputs).filter((name) => outputs[name].type.endsWith("int64") && this.results[name].numbers.some(isRounded));
    say(rounded.length ? `Done. Whole numbers beyond 2^53 are rounded in ${rounded.join(", ")}.` : "Done.");
  }

  /** @param {{name: string}} output */
  keep({ name }) {
    this.kept[name] ??= [];
    for (const x of this.results[name].numbers) this.kept[name].push(x);
    this.results[name] = { dims: [this.kept[name].length], numbers: this.kept[name] };
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
}

/** @param {{view: any}} output */
const isKept = ({ view }) => view.kind === "trace" || Boolean(view.keep);

/** @param {number} x */
const isRounded = (x) => !Number.isSafeInteger(x);

/** @param {Blob} content @param {string} name */
function offer(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Keep the browser from leaving the page for a file that is dropped beside the controls. */
function ignoreDrops() {
  for (const name of ["dragover", "drop"]) {
    document.addEventListener(name, (event) => {
      if (!(event.target instanceof HTMLInputElement)) event.preventDefault();
    });
  }
}

async function main() {
  ignoreDrops();
  if (typeof WebAssembly === "undefined") throw new Error("This browser has no WebAssembly, which the model needs.");
  const description = await described;
  document.title = description.title;
  byId("title").textContent = description.title;
  byId("text").textContent = description.text;
  await new Page(description, model).start();
}

main().catch((error) => say(`The page cannot start: ${error.message}`, true));
