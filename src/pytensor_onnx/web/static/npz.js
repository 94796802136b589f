import { fromBytes, numbersOf } from "./tensors.js";

/** @type {Record<string, string>} */
const DESCRIPTORS = {
  float16: "<f2",
  float32: "<f4",
  float64: "<f8",
  int8: "|i1",
  int16: "<i2",
  int32: "<i4",
  int64: "<i8",
  uint8: "|u1",
  uint16: "<u2",
  uint32: "<u4",
  uint64: "<u8",
  bool: "|b1",
};
const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;

/** @param {string} text */
const encode = (text) => new TextEncoder().encode(text);

/**
 * Write tensors as NumPy's `savez` does: an archive of one array each, not compressed.
 *
 * @param {Record<string, import("./tensors.js").Tensor>} tensors
 * @returns {Blob}
 */
export function writeNpz(tensors) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const parts = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const directory = [];
  let offset = 0;
  for (const [name, x] of Object.entries(tensors)) {
    const file = encode(`${name}.npy`);
    const bytes = npy(x);
    const common = [20, 0x800, 0, 0, 0x21];
    const sizes = [crc32(bytes), bytes.length, bytes.length];
    const local = [record([LOCAL], common, sizes, [file.length, 0]), file, bytes];
    const entry = record([CENTRAL], [20, ...common], sizes, [file.length, 0, 0, 0, 0], [0, offset]);
    directory.push(entry, file);
    parts.push(...local);
    offset += length(local);
  }
  const count = Object.keys(tensors).length;
  const end = record([END], [0, 0, count, count], [length(directory), offset], [0]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

/** @param {Uint8Array[]} parts */
const length = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

/**
 * Return numbers as bytes, little-endian: lists of 32 and of 16 bits in turn.
 *
 * @param {...number[]} fields
 */
function record(...fields) {
  const bytes = fields.flatMap((numbers, i) =>
    numbers.flatMap((n) => (i % 2 ? [n, n >>> 8] : [n, n >>> 8, n >>> 16, n >>> 24])),
  );
  return Uint8Array.from(bytes, (b) => b & 0xff);
}

/**
 * Write a tensor in NumPy's format, version 1.0.
 *
 * @param {import("./tensors.js").Tensor} x
 */
function npy({ type, data, dims }) {
  const shape = `(${dims.join(", ")}${dims.length === 1 ? "," : ""})`;
  const header = `{'descr': '${DESCRIPTORS[type]}', 'fortran_order': False, 'shape': ${shape}, }`;
  const padded = header.padEnd(64 * Math.ceil((header.length + 11) / 64) - 11) + "\n";
  const start = [0x93, ...encode("NUMPY"), 1, 0, padded.length & 0xff, padded.length >>> 8, ...encode(padded)];
  const bytes = new Uint8Array(start.length + data.byteLength);
  bytes.set(start);
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), start.length);
  return bytes;
}

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * Read an array of NumPy, a file `.npy`.
 *
 * @param {ArrayBuffer} content
 * @returns {{dims: number[], numbers: number[]}}
 */
export function readNpy(content) {
  const view = new DataView(content);
  if (content.byteLength < 10 || view.getUint32(0) !== 0x934e554d) throw new Error("this is no file of NumPy (.npy)");
  const isLong = view.getUint8(6) > 1;
  const start = (isLong ? 12 : 10) + (isLong ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = new TextDecoder().decode(new Uint8Array(content, 10, start - 10));
  const [, mark, letter, bytes] = /'descr': '([<|>=])([a-z])(\d+)'/.exec(header) ?? [];
  const dims = (/'shape': \(([^)]*)\)/.exec(header)?.[1] ?? "").split(",").map((x) => x.trim()).filter(Boolean).map(Number);
  const type = { f: "float", i: "int", u: "uint", b: "bool" }[letter];
  if (!type || mark === ">" || header.includes("'fortran_order': True")) {
    throw new Error("give an array of numbers in the order of C: numpy.save(file, numpy.ascontiguousarray(x))");
  }
  const name = type === "bool" ? type : `${type}${8 * Number(bytes)}`;
  const numbers = numbersOf(fromBytes(name, content.slice(start), dims));
  return { dims, numbers };
}
