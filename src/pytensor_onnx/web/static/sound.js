/** Windows of sound: from a file, from the microphone, or a tone to begin with. */

import { acceptDrops, element, panel } from "./dom.js";
import { linePlot } from "./plots.js";
import { shown, tensor } from "./tensors.js";

/** Seconds that are recorded, and milliseconds between two windows of the microphone. */
const [LONGEST, PAUSE] = [60, 150];
const TONE = 440;
/** Largest window that browsers hand over at once. */
const MOST_SAMPLES = 32768;

/**
 * A window of sound: numbers from -1 to 1, as many in a second as the model was made for.
 *
 * @type {(input: import("./controls.js").Input, changed: () => void) => import("./controls.js").Control}
 */
export function sound(input, changed) {
  const { label, rate = 16000, hop, window } = input.control;
  // A last axis of one is that of channels.
  const axis = input.dims.length > 2 && input.dims.at(-1) === 1 ? input.dims.length - 2 : input.dims.length - 1;
  const size = hop ? LONGEST * rate : (input.dims[axis] ?? rate);
  const isOpen = hop || input.dims[axis] === null;
  let samples = hop ? vowels(rate) : Float32Array.from({ length: size }, (_, i) => 0.5 * Math.sin((2 * Math.PI * TONE * i) / rate));
  const told = element("p", { class: "hint", role: "status" }, hop ? "Example: five vowels of a voice that is computed." : `Example: a tone of ${TONE} Hz.`);
  const wave = element("div", { class: "plot" });
  const place = element("input", { type: "range", min: 0, max: 0, step: "any", value: 0, "aria-label": "Window, from" });
  const where = element("output", {});
  const row = element("div", { class: "row", hidden: true }, element("label", {}, "Window from"), place, where);
  const start = () => Math.max(0, Math.min(samples.length - size, Math.round(Number(place.value) * rate)));
  const draw = () => {
    const shownSamples = isOpen ? samples : samples.subarray(start(), start() + size);
    const times = Array.from(shownSamples, (_, i) => start() / rate + i / rate);
    linePlot(wave, times, [Array.from(shownSamples)], [""], { x: "seconds", y: "sound", isTitled: true });
    where.textContent = `${shown(start() / rate, 3)} s`;
  };
  /** @param {Float32Array<ArrayBuffer>} taken @param {string} text */
  const take = (taken, text) => {
    samples = taken;
    told.textContent = text;
    row.hidden = Boolean(isOpen) || samples.length <= size;
    place.max = String(Math.max(0, (samples.length - size) / rate));
    place.value = String(loudest(samples, size) / rate);
    draw();
    changed();
  };
  place.addEventListener("input", () => {
    draw();
    changed();
  });
  const open = async (/** @type {File} */ file) => {
    try {
      const context = new OfflineAudioContext(1, 1, rate);
      const decoded = await context.decodeAudioData(await file.arrayBuffer());
      const content = decoded.getChannelData(0).slice(0, LONGEST * rate);
      take(content, `${file.name}, ${shown(content.length / rate, 3)} seconds${row.hidden ? "" : "; the loudest window is chosen"}.`);
    } catch {
      told.textContent = `${file.name} is no sound that the browser can read.`;
    }
  };
  const chooser = element("input", { type: "file", accept: "audio/*", "aria-label": `${label}, file` });
  chooser.addEventListener("change", () => chooser.files[0] && open(chooser.files[0]));
  /** Ends the listening, null while there is none. @type {(() => void) | null} */
  let end = null;
  const listen = element("button", { type: "button", "aria-pressed": "false" }, "Microphone");
  const toggle = async () => {
    if (end) return end();
    end = await listening(rate, Math.min(size, hop ? MOST_SAMPLES / 2 : MOST_SAMPLES), (window) => take(window, "Listening to the microphone."));
    listen.textContent = "Stop listening";
    listen.setAttribute("aria-pressed", "true");
    const stop = end;
    end = () => {
      stop();
      end = null;
      listen.textContent = "Microphone";
      listen.setAttribute("aria-pressed", "false");
      told.textContent = "The last window of the microphone.";
    };
  };
  listen.addEventListener("click", () => toggle().catch((error) => (told.textContent = `No microphone: ${error.message}`)));
  const seconds = shown((hop ? window : size) / rate, 3);
  const hint = element("p", { class: "hint" }, `Open a sound file or listen to the microphone${isOpen ? "" : `; the model hears ${seconds} seconds`}, ${rate} samples a second.`);
  const made = panel(label, hint, wave, row, told, element("div", { class: "actions" }, chooser, navigator.mediaDevices ? listen : ""));
  acceptDrops(made, open);
  draw();
  return {
    element: made,
    wish: "Open a sound file, or listen to the microphone.",
    read: () => {
      if (hop) return windowsOf(samples, input, window, hop);
      const taken = isOpen ? samples : samples.subarray(start(), start() + size);
      if (!isOpen && taken.length < size) {
        const padded = new Float32Array(size);
        padded.set(taken);
        return tensor(input.dtype, padded, input.dims.map((n) => n ?? 1));
      }
      return tensor(input.dtype, taken, input.dims.map((n, i) => (i === axis ? taken.length : (n ?? 1))));
    },
  };
}

/**
 * Return windows of which each begins some samples after the one before it, the first with silence before the sound. They
 * are rows where the model takes any number of rows, and else a sequence of arrays.
 *
 * @param {Float32Array<ArrayBuffer>} samples
 * @param {import("./controls.js").Input} input
 * @param {number} size
 * @param {number} hop
 */
export function windowsOf(samples, { dtype, dims, control: { rows } }, size, hop) {
  const count = Math.max(1, Math.ceil(samples.length / hop));
  const data = new Float32Array(count * size);
  for (let i = 0; i < count; i++) {
    const end = (i + 1) * hop;
    const from = Math.max(0, end - size);
    data.set(samples.subarray(from, Math.min(end, samples.length)), i * size + Math.max(0, size - end));
  }
  if (rows) return tensor(dtype, data, [count, size]);
  const sizes = dims.map((n, axis) => (axis === dims.length - 1 ? size : (n ?? 1)));
  return { ...tensor(dtype, data, [count, ...sizes]), steps: count };
}

/** Formants of vowels, in Hz, and seconds of silence, of a vowel and of a pause. */
const VOWELS = [[730, 1090, 2440], [530, 1840, 2480], [270, 2290, 3010], [570, 840, 2410], [300, 870, 2240]];
const WIDTHS = [80, 100, 150];
const [SILENCE, VOWEL, REST] = [0.5, 0.28, 0.06];

/**
 * Compute a voice that says five vowels: pulses through resonances, with a little noise.
 *
 * @param {number} rate
 */
export function vowels(rate) {
  const length = Math.round((2 * SILENCE + VOWELS.length * (VOWEL + REST)) * rate);
  const made = new Float32Array(length);
  const count = Math.round(VOWEL * rate);
  VOWELS.forEach((formants, k) => {
    const start = Math.round((SILENCE + k * (VOWEL + REST)) * rate);
    let wave = new Float64Array(count);
    let [phase, before] = [0, 0];
    for (let i = 0; i < count; i++) {
      phase += (120 * (1 + 0.12 * Math.sin((8.2 * i) / rate))) / rate;
      wave[i] = Math.floor(phase) - before;
      before = Math.floor(phase);
    }
    formants.forEach((frequency, j) => {
      const radius = Math.exp((-Math.PI * WIDTHS[j]) / rate);
      const turn = 2 * radius * Math.cos((2 * Math.PI * frequency) / rate);
      for (let i = 0; i < count; i++) wave[i] += turn * (wave[i - 1] ?? 0) - radius ** 2 * (wave[i - 2] ?? 0);
    });
    const most = wave.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    for (let i = 0; i < count; i++) made[start + i] = (0.3 * wave[i] * Math.min(1, i / rate / 0.05, (count - i) / rate / 0.05)) / most;
  });
  // Noise of a generator of its own: pages show the same at each visit.
  for (let i = 0, state = 1; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    made[i] += (state / 2 ** 32 - 0.5) * 0.003;
  }
  return made;
}

/**
 * Return where the loudest window begins.
 *
 * @param {Float32Array} samples
 * @param {number} size
 */
export function loudest(samples, size) {
  const step = Math.max(1, size >> 2);
  let [best, most] = [0, -1];
  for (let from = 0; from + size <= samples.length; from += step) {
    let power = 0;
    for (let i = from; i < from + size; i++) power += samples[i] ** 2;
    if (power > most) [best, most] = [from, power];
  }
  return best;
}

/**
 * Hand over the last window of the microphone a few times a second; returns what ends it.
 *
 * @param {number} rate
 * @param {number} size
 * @param {(window: Float32Array<ArrayBuffer>) => void} take
 */
async function listening(rate, size, take) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const context = new AudioContext({ sampleRate: rate });
  const analyser = context.createAnalyser();
  analyser.fftSize = 2 ** Math.ceil(Math.log2(Math.max(32, size)));
  context.createMediaStreamSource(stream).connect(analyser);
  const all = new Float32Array(analyser.fftSize);
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(all);
    take(all.slice(all.length - size));
  }, PAUSE);
  return () => {
    clearInterval(timer);
    stream.getTracks().forEach((track) => track.stop());
    context.close();
  };
}
