// Browsers load no modules into a page that is opened as a file; this script is none, and says so.
if (location.protocol === "file:") {
  const status = /** @type {HTMLElement} */ (document.getElementById("status"));
  status.classList.add("bad");
  status.textContent =
    "This page was opened as a file, and browsers run models from a web server only. " +
    "Start one in the folder of the page, python -m http.server, and open http://localhost:8000 in the browser.";
}
