/**
 * Read numbers separated by commas, semicolons, tabs or spaces, a row in each line.
 * A first line without numbers is a header and is left out.
 *
 * @param {string} text
 * @returns {number[][]}
 */
export function readRows(text) {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  const rows = lines.map((line) => line.split(/[,;\t ]+/).filter(Boolean).map(readNumber));
  if (rows.length && rows[0].every(Number.isNaN)) rows.shift();
  rows.forEach((row, i) => {
    if (row.length !== rows[0].length) {
      throw new Error(`row ${i + 1} has ${row.length} numbers, the first row ${rows[0].length}`);
    }
  });
  return rows;
}

/** @param {string} text */
function readNumber(text) {
  const special = { nan: NaN, inf: Infinity, "-inf": -Infinity, infinity: Infinity, true: 1, false: 0 };
  const word = text.toLowerCase();
  return word in special ? special[/** @type {keyof typeof special} */ (word)] : Number(text);
}

/**
 * Write results, one column for each output, or one for each of its columns.
 *
 * @param {Record<string, {dims: number[], numbers: number[]}>} results
 */
export function writeCsv(results) {
  /** @type {[string, number[]][]} */
  const columns = [];
  for (const [name, { dims, numbers }] of Object.entries(results)) {
    const width = dims.length > 1 ? dims.slice(1).reduce((a, b) => a * b, 1) : 1;
    for (let j = 0; j < width; j++) {
      columns.push([width > 1 ? `${name}[${j}]` : name, numbers.filter((_, i) => i % width === j)]);
    }
  }
  const rows = Math.max(0, ...columns.map(([, values]) => values.length));
  const lines = [columns.map(([name]) => quoted(name)).join(",")];
  for (let i = 0; i < rows; i++) lines.push(columns.map(([, values]) => values[i] ?? "").join(","));
  return lines.join("\n") + "\n";
}

/** @param {string} name */
function quoted(name) {
  // A name that begins so would be a formula in a spreadsheet.
  const safe = /^[=+\-@]/.test(name) ? `'${name}` : name;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
