/** A field that leaves those rows of the page's tables which have all words that are typed. */

function filterRows(words) {
  for (const section of document.querySelectorAll("article section section")) {
    const rows = [...section.querySelectorAll("tbody tr")];
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    section.hidden = rows.length > 0 && rows.every((row) => row.hidden);
  }
  const left = document.querySelectorAll("article tbody tr:not([hidden])").length;
  document.getElementById("filter-count").textContent = words.length ? `${left} ${left === 1 ? "row" : "rows"}` : "";
}

addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("filter");
  if (!place) return;
  place.innerHTML =
    '<label for="filter-words">Filter</label> <input id="filter-words" type="search" placeholder="gammaln, linalg float32, refused …"> <span id="filter-count" role="status"></span>';
  const field = document.getElementById("filter-words");
  field.addEventListener("input", () => filterRows(field.value.toLowerCase().split(/\s+/).filter(Boolean)));
});
