/**
 * Return the content of a file that a page in one file has inside, null in a page that is a folder.
 *
 * @param {string} name
 * @returns {Uint8Array<ArrayBuffer> | null}
 */
export function embedded(name) {
  const block = document.getElementById(`file ${name}`);
  if (!block) return null;
  const letters = atob(block.textContent ?? "");
  // A loop takes a tenth of the time of Uint8Array.from, which matters for weights of megabytes.
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
