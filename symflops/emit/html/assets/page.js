// What every page has: light and dark, and formulas, which KaTeX sets a few at a time so that the page stays alive.
"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (prefers.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(dark()));
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("symflops-theme", root.dataset.theme); } catch { /* a page from a file may have no storage */ }
    show();
  });
  prefers.addEventListener("change", show);
  show();

  const waiting = [...document.querySelectorAll(".tex")];
  const known = new Map();
  const set = (element) => {
    const text = element.textContent, display = element.classList.contains("display");
    const key = (display ? "d" : "i") + text;
    if (!known.has(key)) known.set(key, katex.renderToString(text, { displayMode: display, throwOnError: false, output: "htmlAndMathml", maxExpand: Infinity }));
    element.innerHTML = known.get(key);
    element.classList.add("set");
  };
  const work = (until) => {
    while (waiting.length && performance.now() < until) set(waiting.shift());
    if (!waiting.length) root.dataset.math = "set";
  };
  const slice = () => {
    work(performance.now() + 24);
    if (waiting.length) setTimeout(slice, 0);
  };
  if (typeof katex === "undefined" || !waiting.length) root.dataset.math = "set";
  else slice();
  addEventListener("beforeprint", () => {
    work(Infinity);
    for (const details of document.querySelectorAll("details:not([open])")) details.open = details.dataset.printed = true;
  });
  addEventListener("afterprint", () => {
    for (const details of document.querySelectorAll("details[data-printed]")) { details.open = false; delete details.dataset.printed; }
  });

  // a picture that is wider than the page is seen from its middle, where values come in
  for (const box of document.querySelectorAll(".drawing")) box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;

  // the contents tell which section is read
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  if (links.size && "IntersectionObserver" in window) {
    const seen = new Set();
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) isIntersecting ? seen.add(target.id) : seen.delete(target.id);
      const first = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) id === first ? link.setAttribute("aria-current", "location") : link.removeAttribute("aria-current");
    }, { rootMargin: "-80px 0px -55% 0px" });
    for (const id of links.keys()) { const section = document.getElementById(id); if (section) observer.observe(section); }
  }
})();
