/**
 * Read numbers separated by commas, semicolons, tabs or spaces, a row in each line.
 * A first line without numbers is a header and is left out.
 *
 * @param {string} text
 * @returns {(number | null)[][]} null for what is no number
 */
export function readRows(text) {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  const rows = lines.map((line) => line.split(/[,;\t ]+/).filter(Boolean).map(readNumber));
  if (rows.length && rows[0].every((number) => number === null)) rows.shift();
  rows.forEach((row, i) => {
    if (row.length !== rows[0].length) {
      throw new Error(`row ${i + 1} has ${row.length} numbers, the first row ${rows[0].length}`);
    }
  });
  return rows;
}

/**
 * Read the cells of a table, in which quotes stand around commas; the first line is the header.
 *
 * @param {string} text
 * @returns {string[][]}
 */
export function readTable(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  const separator = [",", ";", "\t"].find((mark) => lines[0]?.includes(mark)) ?? ",";
  const cell = new RegExp(`(?:^|${separator})(?:"((?:[^"]|"")*)"|([^${separator}]*))`, "g");
  return lines.map((line) => [...line.matchAll(cell)].map(([, quoted, plain]) => (quoted?.replaceAll('""', '"') ?? plain ?? "").trim()));
}

/** Write the cells of a table. @param {string[][]} rows */
export const writeTable = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n");

/** @param {string} text @returns {number | null} */
function readNumber(text) {
  const special = { nan: NaN, inf: Infinity, "-inf": -Infinity, infinity: Infinity, true: 1, false: 0 };
  const word = text.toLowerCase();
  if (word in special) return special[/** @type {keyof typeof special} */ (word)];
  const number = Number(text);
  return Number.isNaN(number) ? null : number;
}

/**
 * Return the sizes of an array whose rows of the last axis are given, in the order of C. An open axis before it takes
 * as many as there are.
 *
 * @param {(number | null)[]} dims
 * @param {unknown[][]} rows
 */
export function sizesOf(dims, rows) {
  const before = dims.slice(0, -1);
  const known = before.map((n) => n ?? 1).reduce((product, n) => product * n, 1);
  const open = rows.length / known;
  const isWhole = Number.isInteger(open) && (open === 1 || before.includes(null));
  return isWhole ? [...before.map((n) => n ?? open), rows[0].length] : [rows.length, rows[0].length];
}

/** Cells of a file from which most of them may not be empty. */
const MANY = 1e6;

/**
 * Write results, one column for each output, or one for each of its columns.
 *
 * If lengths differ so much that most of many cells would be empty, each number has a line instead, with its output and
 * its position there.
 *
 * @param {Record<string, {dims: number[], numbers: number[]}>} results
 */
export function writeCsv(results) {
  /** @type {[string, number[]][]} */
  const columns = [];
  for (const [name, { dims, numbers }] of Object.entries(results)) {
    const width = dims.length > 1 ? dims.slice(1).reduce((a, b) => a * b, 1) : 1;
    for (let j = 0; j < width; j++) {
      const column = [];
      for (let i = j; i < numbers.length; i += width) column.push(numbers[i]);
      columns.push([width > 1 ? `${name}[${j}]` : name, column]);
    }
  }
  const rows = columns.reduce((most, [, values]) => Math.max(most, values.length), 0);
  const count = columns.reduce((sum, [, values]) => sum + values.length, 0);
  if (rows * columns.length > Math.max(MANY, 2 * count)) return writeLong(results);
  const lines = [columns.map(([name]) => quoted(name)).join(",")];
  for (let i = 0; i < rows; i++) lines.push(columns.map(([, values]) => values[i] ?? "").join(","));
  return lines.join("\n") + "\n";
}

/** @param {Record<string, {numbers: number[]}>} results */
function writeLong(results) {
  const lines = ["output,position,value"];
  for (const [name, { numbers }] of Object.entries(results)) {
    const first = quoted(name);
    numbers.forEach((value, i) => lines.push(`${first},${i},${value}`));
  }
  return lines.join("\n") + "\n";
}

/** @param {string} name */
function quoted(name) {
  // A name that begins so would be a formula in a spreadsheet.
  const safe = /^[=+\-@]/.test(name) && Number.isNaN(Number(name)) ? `'${name}` : name;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
