// A wide table fades at the edge behind which it goes on.
function mark(table) {
  const rest = table.scrollWidth - table.clientWidth - table.scrollLeft;
  table.classList.toggle("goes-on", rest > 4);
}

document.addEventListener("DOMContentLoaded", () => {
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
  for (const table of document.querySelectorAll(".pst-scrollable-table-container")) {
    table.addEventListener("scroll", () => mark(table), { passive: true });
    sizes.observe(table);
  }
});
