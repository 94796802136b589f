/**
 * Return the content of a file that a page in one file has inside, null in a page that is a folder.
 *
 * @param {string} name
 * @returns {Uint8Array<ArrayBuffer> | null}
 */
export function embedded(name) {
  const block = document.getElementById(`file ${name}`);
  return block && Uint8Array.from(atob(block.textContent ?? ""), (letter) => letter.charCodeAt(0));
}
