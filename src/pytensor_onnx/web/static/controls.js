import { bytes } from "./bytes.js";
import { readRows, readTable, sizesOf, writeTable } from "./csv.js";
import { acceptDrops, element, panel } from "./dom.js";
import { readNpy } from "./npz.js";
import { drawing, image } from "./pictures.js";
import { sound } from "./sound.js";
import { shown, tensor } from "./tensors.js";

/**
 * @typedef {{name: string, dtype: string, dims: (number | null)[], control: any}} Input
 * @typedef {{element: HTMLElement, read: () => import("./tensors.js").Tensor | null, save?: () => string, restore?: (saved: string) => void, advance?: () => void, restart?: () => void, picture?: () => HTMLCanvasElement, width?: number, wish?: string}} Control
 */

/** @type {Record<string, (input: Input, changed: () => void) => Control>} */
const KINDS = { slider, sliders, grid, checkbox, seed, table, columns, drawing, image, sound, bytes };

/**
 * Make the control of an input. Its `read` returns null while nothing is given; `save` writes what is given as a text,
 * which `restore` takes.
 *
 * @param {Input} input
 * @param {() => void} changed
 * @returns {Control}
 */
export function makeControl(input, changed) {
  return KINDS[input.control.kind](input, changed);
}

/** @param {(number | null)[]} dims */
const single = (dims) => dims.map((n) => n ?? 1);

/**
 * A slider and a field for one number.
 *
 * @param {Input} input
 * @param {string} label
 * @param {number} start
 * @param {() => void} changed
 */
function row(input, label, start, changed) {
  const { min = input.dtype.startsWith("uint") ? 0 : -3, max = Math.max(min + 1, 3) } = input.control;
  const isWhole = input.dtype.includes("int");
  const step = input.control.step ?? (isWhole ? 1 : (max - min) / 200);
  const range = element("input", { type: "range", min, max, step, "aria-label": label });
  const field = element("input", { type: "number", step: isWhole ? 1 : "any" });
  range.value = String(start);
  field.value = shown(start);
  range.addEventListener("input", () => {
    field.value = shown(Number(range.value));
    changed();
  });
  field.addEventListener("input", () => {
    range.value = field.value;
    if (field.value !== "") changed();
  });
  const made = element("div", { class: "row" }, element("label", {}, label), range, field);
  field.setAttribute("aria-label", `${label}, value`);
  const read = () => {
    const { least = input.dtype.startsWith("uint") ? 0 : -Infinity } = input.control;
    if (field.value === "") throw new Error(`${label}: give a number`);
    const value = checked(field, label, least, isWhole);
    return value;
  };
  const restore = (/** @type {string} */ saved) => {
    field.value = saved;
    range.value = saved;
  };
  return { element: made, read, save: () => field.value, restore };
}

/**
 * Return the number in a field, or mark the field and say what it lacks.
 *
 * @param {HTMLInputElement} field
 * @param {string} label
 * @param {number} least
 * @param {boolean} isWhole
 */
function checked(field, label, least, isWhole) {
  const value = Number(field.value);
  const problem = value < least ? `${label}: give ${least} or more` : isWhole && !Number.isInteger(value) ? `${label}: give a whole number` : "";
  field.setAttribute("aria-invalid", String(problem !== ""));
  field.setCustomValidity(problem);
  if (problem) throw new Error(problem);
  return value;
}

/** @type {(input: Input, changed: () => void) => Control} */
function slider(input, changed) {
  const { label, value = 0 } = input.control;
  const one = row(input, label, value, changed);
  return {
    element: element("div", { class: "panel" }, one.element),
    read: () => tensor(input.dtype, [one.read()], single(input.dims)),
    save: one.save,
    restore: one.restore,
  };
}

/** @type {(input: Input, changed: () => void) => Control} */
function sliders(input, changed) {
  const { label, labels = [], value, size } = input.control;
  const dims = input.dims.map((n, axis) => n ?? (axis === input.dims.length - 1 ? (size ?? 1) : 1));
  const count = dims.reduce((product, n) => product * n, 1);
  const rows = Array.from({ length: count }, (_, i) =>
    row(input, String(labels[i] ?? `${label}[${i}]`), Array.isArray(value) ? value[i] : (value ?? 0), changed),
  );
  return {
    element: panel(label, ...rows.map((one) => one.element)),
    read: () => tensor(input.dtype, rows.map((one) => one.read()), dims),
    save: () => rows.map((one) => one.save()).join(","),
    restore: (saved) => saved.split(",").forEach((value, i) => rows[i]?.restore(value)),
  };
}

/**
 * The ends of equally spaced numbers.
 *
 * @type {(input: Input, changed: () => void) => Control}
 */
function grid(input, changed) {
  const { label, min = 0, max = 1, size = 50 } = input.control;
  const count = input.dims.find((n) => n !== null && n !== 1) ?? size;
  const dims = input.dims.map((n) => n ?? count);
  const [from, to] = [min, max].map((value) => element("input", { type: "number", step: "any", value, oninput: changed }));
  const field = (/** @type {string} */ name, /** @type {any} */ input) => element("label", {}, `${name} `, input);
  return {
    element: panel(label, element("div", { class: "ends" }, field("from", from), field("to", to))),
    read: () => {
      const [a, b] = [Number(from.value), Number(to.value)];
      return tensor(input.dtype, Array.from({ length: count }, (_, i) => a + ((b - a) * i) / Math.max(1, count - 1)), dims);
    },
    save: () => `${from.value},${to.value}`,
    restore: (saved) => ([from.value, to.value] = saved.split(",")),
  };
}

/** @type {(input: Input, changed: () => void) => Control} */
function checkbox(input, changed) {
  const box = element("input", { type: "checkbox", checked: Boolean(input.control.value), onchange: changed });
  return {
    element: element("div", { class: "panel" }, element("label", {}, box, ` ${input.control.label}`)),
    read: () => tensor(input.dtype, [box.checked ? 1 : 0], single(input.dims)),
    save: () => (box.checked ? "1" : "0"),
    restore: (saved) => (box.checked = saved === "1"),
  };
}

/**
 * A seed: the state of a generator, a whole number, or successive numbers.
 *
 * @type {(input: Input, changed: () => void) => Control}
 */
function seed(input, changed) {
  const { label, value = 1, size = 1, advance = false } = input.control;
  const field = element("input", { type: "number", min: 0, step: 1, value, oninput: changed, "aria-label": label });
  const renew = () => {
    field.value = String(crypto.getRandomValues(new Uint32Array(1))[0] >>> 1);
    changed();
  };
  const button = element("button", { type: "button", onclick: renew }, "New seed");
  const dims = input.dims.map((n) => n ?? size);
  const count = dims.reduce((product, n) => product * n, 1);
  // A generator's state has the key in its first words, and counts draws in the others.
  const isState = input.dtype === "uint64";
  const next = (/** @type {number} */ i) => (isState ? 0 : Number(field.value) + i);
  return {
    element: panel(label, element("div", { class: "actions" }, field, button)),
    read: () => {
      const first = checked(field, label, 0, true);
      return tensor(input.dtype, Array.from({ length: count }, (_, i) => (i ? next(i) : first)), dims);
    },
    save: () => field.value,
    restore: (saved) => (field.value = saved),
    advance: () => {
      if (advance) field.value = String(Number(field.value) + (isState ? 1 : count));
    },
    restart: () => {
      if (advance) field.value = String(value);
    },
  };
}

/** @type {(input: Input, changed: () => void) => Control} */
function table(input, changed) {
  const { label, value, columns, example } = input.control;
  const text = element("textarea", { spellcheck: false, oninput: changed, "aria-label": label });
  if (value) text.value = value.map((/** @type {any} */ line) => [line].flat().join(", ")).join("\n");
  /** An array that is no text: that of a file of NumPy, or the example. @type {{dims: number[], numbers: number[]} | null} */
  let array = value ? null : (example ?? null);
  const told = element("p", { class: "hint" });
  const tell = (/** @type {string} */ what) => (told.textContent = array ? `${what} of sizes ${array.dims.join(" x ") || "none"}.` : "");
  tell(example?.is_given ? "Example of the file: numbers" : "Example: random numbers");
  const file = element("input", { type: "file", accept: ".csv,.tsv,.txt,.npy,text/*", "aria-label": `${label}, file` });
  const take = async (/** @type {File} */ given) => {
    if (given.name.endsWith(".npy")) {
      array = readNpy(await given.arrayBuffer());
      text.value = "";
    } else {
      array = null;
      text.value = await given.text();
    }
    tell(given.name);
    changed();
  };
  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  text.addEventListener("input", () => {
    array = null;
    tell("");
  });
  const sizes = input.dims.map((n) => n ?? "any").join(" x ");
  const wanted = columns ? `Columns: ${columns.join(", ")}.` : `Sizes: ${sizes}.`;
  const lines = input.dims.length > 2 ? "a row of the last axis in each line" : "a row in each line";
  const hint = element("p", { class: "hint" }, `${wanted} Numbers separated by commas, ${lines}, or a file of NumPy (.npy).`);
  const made = panel(label, hint, text, file, told);
  acceptDrops(made, take);
  return {
    element: made,
    wish: `Give ${label}: type numbers, or open a CSV file or a file of NumPy (.npy).`,
    read: () => {
      if (array) {
        const { dims, numbers } = array;
        if (dims.length !== input.dims.length || input.dims.some((n, axis) => n !== null && n !== dims[axis])) {
          throw new Error(`${label} has sizes ${dims.join(" x ")}, but ${sizes} are needed`);
        }
        return tensor(input.dtype, numbers, dims);
      }
      const rows = readRows(text.value);
      if (!rows.length && text.value.trim()) throw new Error(`${label}: there are no numbers`);
      if (!rows.length) return null;
      const entries = rows.flat();
      const bad = entries.indexOf(null);
      if (bad >= 0) throw new Error(`${label}: entry ${bad + 1} is not a number`);
      const numbers = /** @type {number[]} */ (entries);
      const given = input.dims.length === 1 ? [numbers.length] : sizesOf(input.dims, rows);
      if (input.dims.some((n, axis) => n !== null && n !== given[axis])) {
        throw new Error(`${label} has sizes ${given.join(" x ")}, but ${sizes} are needed`);
      }
      return tensor(input.dtype, numbers, given);
    },
    save: () => text.value,
    restore: (saved) => (text.value = saved),
  };
}

/** Tables that vectors of one length share, by the names of their groups. @type {Map<string, ReturnType<typeof sharedTable>>} */
const TABLES = new Map();

/**
 * A column of a table that vectors of one length share.
 *
 * @type {(input: Input, changed: () => void) => Control}
 */
function columns(input, changed) {
  const { group } = input.control;
  const label = columnOf(input);
  const isFirst = !TABLES.has(group);
  const shared = TABLES.get(group) ?? sharedTable(group, changed);
  TABLES.set(group, shared);
  shared.add(input);
  const read = () => {
    const numbers = shared.read(input);
    const [size] = input.dims;
    if (size !== null && numbers.length !== size) throw new Error(`${label}: the model takes ${size} rows, not ${numbers.length}`);
    return numbers.length ? tensor(input.dtype, numbers, [numbers.length]) : null;
  };
  const wish = `Type or open the data: a line for each row, with the columns ${shared.names().join(", ")}.`;
  return isFirst ? { element: shared.element, read, wish, save: shared.save, restore: shared.restore } : { element: element("span"), read, wish };
}

/** The name of an input in the first line of a table. @param {Input} input @returns {string} */
const columnOf = ({ control: { column, label } }) => column ?? label;

/** @param {string} title @param {() => void} changed */
function sharedTable(title, changed) {
  /** @type {Input[]} */
  const inputs = [];
  const text = element("textarea", { spellcheck: false, oninput: changed, "aria-label": `Data, ${title}` });
  const file = element("input", { type: "file", accept: ".csv,.tsv,.txt,text/*", "aria-label": `Data, ${title}, file` });
  const take = async (/** @type {File} */ given) => {
    text.value = await given.text();
    changed();
  };
  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  const hint = element("p", { class: "hint" }, `${title}. Change them here, paste others, or open a CSV file.`);
  const made = panel("Data", hint, text, file);
  acceptDrops(made, take);
  const shownAs = (/** @type {Input} */ { control: { labels } }, /** @type {number} */ value) => String(labels?.[value] ?? value);
  const write = () => {
    const count = Math.max(...inputs.map(({ control }) => control.value.length));
    const rows = Array.from({ length: count }, (_, i) => inputs.map((input) => (i < input.control.value.length ? shownAs(input, input.control.value[i]) : "")));
    text.value = writeTable([inputs.map(columnOf), ...rows]);
  };
  return {
    element: made,
    names: () => inputs.map(columnOf),
    /** @param {Input} input */
    add: (input) => {
      inputs.push(input);
      write();
    },
    /** @param {Input} input */
    read: (input) => {
      const { labels } = input.control;
      const label = columnOf(input);
      const [header = [], ...lines] = readTable(text.value);
      const at = header.indexOf(label);
      if (at < 0) throw new Error(`The first line of the data names the columns: ${label} is missing`);
      return lines.map((line, i) => {
        const cell = line[at] ?? "";
        const known = labels ? labels.indexOf(cell) : -1;
        const value = known >= 0 ? known : cell === "" ? NaN : Number(cell);
        if (Number.isNaN(value)) throw new Error(`Row ${i + 1} of the data: ${cell || "nothing"} is no value of ${label}`);
        return value;
      });
    },
    save: () => text.value,
    restore: (/** @type {string} */ saved) => (text.value = saved),
  };
}
