import { makeControl } from "./controls.js";
import { writeCsv } from "./csv.js";
import { element } from "./dom.js";
import { writeNpz } from "./npz.js";
import { makePredictor } from "./predictor.js";
import { described, loaded, model } from "./start.js";
import { makeView, readResults } from "./views.js";

/** @param {string} id @returns {any} */
const byId = (id) => document.getElementById(id);
const status = byId("status");

/** @param {string} text @param {boolean} [isBad] */
function say(text, isBad = false) {
  // Screen readers read each change.
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("bad", isBad);
}

/** Number of views from which they stand in columns. */
const MANY_VIEWS = 4;
/** Milliseconds of a run after which the page says that it runs. */
const PATIENCE = 200;

class Page {
  /** @param {any} description @param {import("./model.js").Model} model */
  constructor(description, model) {
    this.description = description;
    this.model = model;
    this.isRunning = this.isStale = this.isReady = this.isRepeating = false;
    /** @type {import("./views.js").Results} */
    this.results = {};
    /** Results and inputs of the last run, as views show them. @type {import("./views.js").Results | null} */
    this.seen = null;
    /** Numbers of all runs, of outputs that are kept. @type {Record<string, number[]>} */
    this.kept = {};
    /** Chains of all runs. @type {import("./views.js").Results} */
    this.chains = {};
    this.runs = 0;
    const changed = () => this.changed();
    /** What makes the controls and views of a predictor. */
    this.predictor = description.predictor && makePredictor(description, changed);
    const single = description.inputs.filter((/** @type {any} */ x) => x.control.kind !== "covariate");
    this.controls = [
      ...(this.predictor?.controls ?? []),
      ...single.map((/** @type {any} */ input) => ({ name: input.name, more: input.control.more, ...makeControl(input, changed) })),
    ];
    const pictured = (/** @type {string | undefined} */ name) => this.controls.find((/** @type {any} */ c) => c.picture && (!name || c.name === name));
    const picture = (/** @type {string | undefined} */ name) => pictured(name)?.picture() ?? null;
    const width = (/** @type {string | undefined} */ name) => pictured(name)?.width ?? 1;
    const labels = Object.fromEntries([
      ...description.inputs.map((/** @type {any} */ x) => [x.name, x.control.label]),
      ...description.outputs.map((/** @type {any} */ x) => [x.name, x.view.label ?? x.name]),
    ]);
    const labelsOf = (/** @type {string} */ name) => description.outputs.find((/** @type {any} */ x) => x.name === name)?.view.labels;
    const page = { picture, width, labelOf: (/** @type {string} */ name) => labels[name], labelsOf };
    const own = description.outputs.map((/** @type {any} */ output) => makeView(output, page)).filter(Boolean);
    this.views = [...(this.predictor?.views ?? []), ...own];
    this.restore(new URLSearchParams(location.hash.slice(1)));
    const elements = (/** @type {boolean} */ isMore) => this.controls.filter((/** @type {any} */ c) => Boolean(c.more) === isMore).map((/** @type {any} */ c) => c.element);
    byId("inputs").append(...elements(false));
    if (elements(true).length) byId("inputs").append(element("details", {}, element("summary", {}, "More"), ...elements(true)));
    byId("run").textContent = description.button;
    byId("outputs").append(...this.views.map((/** @type {any} */ v) => v.element));
    document.body.classList.toggle("many", this.views.length > MANY_VIEWS);
    const hasState = Object.keys(description.state.pairs).length > 0;
    for (const name of ["repeat", "stop", "reset", "undo"]) byId(name).hidden = !hasState && !description.outputs.some(isKept);
    byId("save").hidden = !hasState;
    // A page within another one has no address of its own.
    byId("link").hidden = location.protocol === "about:";
    /** @type {Record<string, () => void>} */
    const actions = {
      run: () => this.start(),
      repeat: () => this.repeat(),
      stop: () => this.stop(),
      reset: () => this.reset(),
      undo: () => this.undo(),
      link: () => this.copyLink(),
      download: () => offer(new Blob([this.predictor ? this.predictor.csv() : writeCsv(this.results)], { type: "text/csv" }), "results.csv"),
      save: async () => offer(writeNpz(await this.model.ask("state", {})), "state.npz"),
    };
    for (const [name, act] of Object.entries(actions)) byId(name).addEventListener("click", act);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** Run no more, and stop the present run if the engine can. */
  stop() {
    this.isRepeating = this.isStale = false;
    this.model.ask("stop", {});
  }

  async load() {
    say(this.description.runtime.engine === "tape" ? "Loading the model…" : "Loading ONNX Runtime and the model…");
    const bar = byId("progress");
    bar.hidden = false;
    this.model.onprogress = ({ received, total }) => {
      if (total) [bar.value, bar.max] = [received, total];
      byId("timing").textContent = total ? `${megabytes(received)} of ${megabytes(total)}` : megabytes(received);
      if (received === total) say("Starting the model…");
    };
    const { seconds, bytes, threads, backend } = await loaded.finally(() => (bar.hidden = true));
    const where = backend === "webgpu" ? "WebGPU" : `WebAssembly, ${threads} thread${threads > 1 ? "s" : ""}`;
    this.loaded = `${megabytes(bytes)} loaded in ${seconds.toFixed(2)} s (${where})`;
    byId("timing").textContent = this.loaded;
    this.isReady = true;
    for (const name of ["run", "repeat", "reset", "save"]) byId(name).disabled = false;
    say("Ready.");
    await this.predictor?.probe(async (/** @type {() => void} */ change) => {
      change();
      const { outputs } = await this.model.run(this.read(), 1);
      return readResults(outputs);
    });
    if (this.description.run === "change" || this.description.starts) await this.run();
  }

  /** Run once, and bring the results into sight. */
  async start() {
    await this.run();
    this.showResults();
  }

  showResults() {
    const { top, bottom } = byId("outputs").getBoundingClientRect();
    const isSeen = top < 0.6 * innerHeight && bottom > 0;
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
    if (!isSeen) byId("outputs").scrollIntoView({ behavior: /** @type {ScrollBehavior} */ (behavior) });
  }

  async reset() {
    this.isRepeating = false;
    await this.running;
    await this.model.ask("reset", {});
    const { runs, kept, chains, results, seen } = this;
    this.left = { runs, kept, chains, results, seen, inputs: this.save() };
    for (const { restart } of this.controls) restart?.();
    Object.assign(this, { runs: 0, kept: {}, chains: {}, results: {}, seen: null });
    for (const view of this.views) view.clear();
    byId("download").disabled = true;
    byId("undo").disabled = false;
    byId("timing").textContent = this.loaded;
    say("All is as at the beginning. Undo reset brings the last state back.");
  }

  /** Go back to the state before the last reset. */
  async undo() {
    this.isRepeating = false;
    await this.running;
    await this.model.ask("undo", {});
    const { inputs, ...rest } = /** @type {any} */ (this.left);
    Object.assign(this, rest);
    this.restore(inputs);
    this.redraw();
    byId("undo").disabled = true;
    byId("download").disabled = !this.seen;
    say("The state before the reset is back.");
  }

  /** Draw the last results again. */
  redraw() {
    for (const view of this.views) view.clear();
    if (this.seen) for (const view of this.views) view.show(this.seen, this.runs);
  }

  /** Return what the controls give, but for pictures. */
  save() {
    const saved = this.controls.filter((/** @type {any} */ c) => c.save);
    return new URLSearchParams(saved.map((/** @type {any} */ c) => [c.name, c.save()]));
  }

  /** @param {URLSearchParams} saved */
  restore(saved) {
    for (const { name, restore } of this.controls) {
      const value = saved.get(name);
      if (value !== null) restore?.(value);
    }
  }

  async copyLink() {
    history.replaceState(null, "", `#${this.save()}`);
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied: it opens the page with these inputs.");
    } catch {
      say("The address of the page keeps these inputs: copy it.");
    }
  }

  /** Return what the controls give; null for one that waits. @returns {Record<string, any>} */
  read() {
    return Object.fromEntries(this.controls.map((/** @type {any} */ { name, read }) => [name, read()]));
  }

  changed() {
    // Draws for other inputs are draws from another distribution.
    for (const { name, view } of this.description.outputs) if (view.kind === "histogram") delete this.kept[name];
    this.chains = {};
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
    const started = performance.now();
    const clock = setInterval(() => {
      if (!this.isRepeating && byId("progress").hidden) say("Running…");
      if (!this.isRepeating) byId("timing").textContent = `${((performance.now() - started) / 1000).toFixed(1)} s`;
    }, PATIENCE);
    this.running = this.untilCurrent();
    await this.running;
    clearInterval(clock);
    this.isRunning = false;
    byId("progress").hidden = true;
    byId("stop").disabled = !this.isRepeating;
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
    const feeds = this.read();
    const missing = this.controls.find((/** @type {any} */ { name }) => feeds[name] === null);
    if (missing) {
      this.isRepeating = false;
      say(missing.wish ?? `Give ${missing.name} to run the model.`);
      return;
    }
    const times = this.description.repeat;
    const reading = performance.now() - started;
    const given = readResults(Object.fromEntries(this.description.shown.map((/** @type {string} */ name) => [name, feeds[name]])));
    /** What came last, and the timer that shows it: others are left out while the page shows one. @type {any} */
    let part = null;
    let timer = 0;
    let rest = 0;
    const showLast = () => {
      const started = performance.now();
      // Predictions from a part of the draws would be others.
      this.showPart(this.predictor ? null : part.outputs, given, part.done, part.total);
      rest = 2 * (performance.now() - started);
      timer = 0;
    };
    this.model.onrunning = (received) => {
      part = received;
      timer ||= window.setTimeout(showLast, rest);
    };
    const { outputs, milliseconds, stopped, sending, answered } = await this.model.run(feeds, times);
    clearTimeout(timer);
    if (stopped) {
      this.showPart(outputs, given, stopped.done, stopped.total);
      this.show(given, this.runs);
      this.isRepeating = false;
      return say(`Stopped after ${counted(stopped.done, stopped.total)}; the results are those so far.`);
    }
    this.runs += times;
    for (const { advance } of this.controls) advance?.();
    this.results = readResults(outputs);
    for (const output of this.description.outputs.filter(isKept)) this.keep(output);
    this.show(given, this.runs);
    const others = reading + sending + performance.now() - answered;
    const isCounted = Object.keys(this.description.state.pairs).length > 0 || this.description.outputs.some(isKept);
    const count = isCounted && this.runs > 1 ? `run ${this.runs}, ` : "";
    const each = times > 1 ? ` for ${times} runs` : "";
    byId("timing").textContent = `${count}${milliseconds.toFixed(1)} ms in the model${each}, ${others.toFixed(1)} ms in the page; ${this.loaded}`;
    const rounded = Object.keys(outputs).filter((name) => outputs[name].type.endsWith("int64") && this.results[name].numbers.some(isRounded));
    const done = this.isRepeating ? "Running repeatedly…" : "Done.";
    say(rounded.length ? `${done} Whole numbers beyond 2^53 are rounded in ${rounded.join(", ")}.` : done);
  }

  /**
   * Show the results; those of a run that goes on leave out views that take long.
   *
   * @param {import("./views.js").Results} given
   * @param {number} runs
   * @param {boolean} [isPart]
   */
  show(given, runs, isPart = false) {
    if (!this.seen) performance.mark("first result");
    this.seen = { ...given, ...this.results };
    for (const view of this.views) if (!isPart || !view.isSlow) view.show(this.seen, runs);
    byId("download").disabled = false;
  }

  /**
   * Show the results of a run so far, which missing numbers are not part of, with those of the runs before it.
   *
   * @param {Record<string, import("./tensors.js").Tensor> | null} outputs null while there are none to show
   * @param {import("./views.js").Results} given
   * @param {number} done
   * @param {number} total
   */
  showPart(outputs, given, done, total) {
    const bar = byId("progress");
    bar.hidden = !total;
    if (total) [bar.value, bar.max] = [done, total];
    byId("stop").hidden = byId("stop").disabled = false;
    if (!this.isRepeating) say(`Running: ${counted(done, total)}…`);
    if (!outputs) return;
    this.results = readResults(outputs);
    for (const { name, view } of this.description.outputs.filter(isKept)) {
      if (view.keep === "chains") {
        this.results[name] = joinedChains(this.chains[name], this.results[name]);
        continue;
      }
      const numbers = [...(this.kept[name] ?? []), ...this.results[name].numbers.filter(Number.isFinite)];
      this.results[name] = { dims: [numbers.length], numbers };
    }
    this.show(given, this.runs, true);
  }

  /** @param {{name: string, view: any}} output */
  keep({ name, view }) {
    if (view.keep === "chains") {
      this.chains[name] = this.results[name] = joinedChains(this.chains[name], this.results[name]);
      return;
    }
    this.kept[name] ??= [];
    for (const x of this.results[name].numbers) this.kept[name].push(x);
    this.results[name] = { dims: [this.kept[name].length], numbers: this.kept[name] };
  }

  async repeat() {
    this.isRepeating = true;
    byId("repeat").disabled = true;
    byId("stop").disabled = false;
    say("Running repeatedly…");
    this.showResults();
    while (this.isRepeating) {
      await this.run();
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    byId("repeat").disabled = false;
    byId("stop").disabled = true;
    // A run that ends after the click on Stop has said that it is done.
    say((status.textContent ?? "").replace(/^(Running repeatedly…|Done\.)/, "Stopped."));
  }
}

/** @param {number} done @param {number} total */
const counted = (done, total) => (total ? `${done} of ${total} steps` : "some steps");

/**
 * Return chains after those of earlier runs, unless these have another number of draws.
 *
 * @param {{dims: number[], numbers: number[]} | undefined} before
 * @param {{dims: number[], numbers: number[]}} found
 */
function joinedChains(before, { dims, numbers }) {
  if (!before || String(before.dims.slice(1)) !== String(dims.slice(1))) return { dims, numbers };
  return { dims: [before.dims[0] + dims[0], ...dims.slice(1)], numbers: before.numbers.concat(numbers) };
}

/** @param {{view: any}} output */
const isKept = ({ view }) => view.kind === "trace" || Boolean(view.keep);

/** @param {number} x */
const isRounded = (x) => !Number.isSafeInteger(x);

/** @param {number} bytes */
const megabytes = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

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
  // The pages of a site lead back to it.
  if (description.home) document.body.prepend(element("nav", { class: "home", "aria-label": "Site" }, ...description.home.map((/** @type {[string, string]} */ [text, href]) => element("a", { href }, text))));
  byId("links").append(
    ...description.links.map((/** @type {[string, string]} */ [text, href]) => element("li", {}, element("a", { href }, text))),
  );
  await new Page(description, model).load();
}

main().catch((error) => say(`The page cannot start: ${error.message}`, true));
