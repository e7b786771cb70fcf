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

  const waiting = [...document.querySelectorAll(".tex")], displayed = waiting.filter((element) => element.classList.contains("display"));
  const known = new Map(), sources = new Map();
  const html = (text, displayMode) => {
    const key = (displayMode ? "d" : "i") + text;
    if (!known.has(key)) known.set(key, katex.renderToString(text, { displayMode, throwOnError: false, output: "htmlAndMathml", maxExpand: Infinity }));
    return known.get(key);
  };
  const set = (element) => {
    sources.set(element, element.textContent);
    element.innerHTML = html(element.textContent, element.classList.contains("display"));
    element.classList.add("set");
  };
  // a formula that is wider than its box breaks where the box ends; what cannot break is set smaller
  const open = (row) => row.split("\\begin{").length > row.split("\\end{").length; // a row that ends within an inner array
  const lines = (text) => text.trim().replace(/^\\begin\{aligned\}|\\end\{aligned\}$/g, "").trim().split(/ ?\\\\\n/)
    .reduce((rows, row) => (rows.length && open(rows.at(-1)) ? [...rows.slice(0, -1), `${rows.at(-1)} \\\\\n${row}`] : [...rows, row]), [])
    .reduce((rows, row) => (/^&\\qquad/.test(row) && rows.length ? [...rows.slice(0, -1), `${rows.at(-1)} ${row.replace(/^&\\qquad ?/, "")}`] : [...rows, row]), [])
    .map((row) => row.replace("={}&", "=").replace(/^&/, "\\qquad "));
  const flow = (element) => {
    element.replaceChildren(...lines(sources.get(element)).map((line) => {
      const row = document.createElement("span");
      row.className = "flow";
      row.innerHTML = html(`\\displaystyle ${line}`, false);
      return row;
    }));
  };
  const fit = () => {
    const flowing = displayed.filter((element) => element.querySelector(".flow"));
    for (const element of flowing) element.innerHTML = html(sources.get(element), true);
    for (const element of root.querySelectorAll(".katex[style], .scroll > table[style]")) element.style.removeProperty("font-size");
    displayed.filter((element) => element.offsetParent && element.scrollWidth > element.clientWidth + 1).forEach(flow);
    // one that a cell cannot break, and that makes its table wider than the page
    for (let turn = 0; turn < 3; turn++) {
      const found = new Map();
      const shrink = (base, width) => {
        const formula = base.closest(".katex"), share = Math.max(0.2, width / base.offsetWidth);
        found.set(formula, Math.min(found.get(formula) ?? 1, share));
      };
      for (const box of root.querySelectorAll(".scroll:has(> table)")) {
        const over = box.scrollWidth - box.clientWidth;
        if (over < 2) continue;
        const bases = [...box.querySelectorAll(".katex-base")], widest = Math.max(...bases.map((base) => base.offsetWidth), 0);
        for (const base of bases) if (base.offsetWidth > widest - over && base.offsetWidth > 120) shrink(base, Math.max(110, widest - over));
      }
      for (const base of root.querySelectorAll(".tex .katex-base")) {
        const box = base.closest("td, th, .tex.display, p, li, dd, h3, .hint"), phone = innerWidth < 769 && box?.tagName === "TD";
        const room = (box?.clientWidth ?? Infinity) * (phone ? 0.69 : 1) - (base.closest(".flow") ? 44 : box?.matches("td, th") ? 24 : 2);
        if (base.offsetWidth > room) shrink(base, room);
      }
      if (!found.size) break;
      for (const [formula, share] of found) formula.style.fontSize = `${Math.max(0.18, (parseFloat(formula.style.fontSize) || 1.06) * share)}em`;
    }
    // a table that is still wider, such as one of many long numbers, is set smaller as a whole
    for (let turn = 0; turn < 4; turn++) {
      for (const table of root.querySelectorAll(".scroll > table")) {
        const box = table.parentElement, share = box.clientWidth / box.scrollWidth;
        if (share < 1) table.style.fontSize = `${Math.max(9, 0.99 * share * parseFloat(getComputedStyle(table).fontSize))}px`;
      }
    }
  };
  // what an address names comes into view again once formulas and figures have their height, unless somebody scrolls
  let left = !location.hash;
  for (const event of ["wheel", "touchstart", "keydown", "mousedown"]) addEventListener(event, () => { left = true; }, { once: true, passive: true });
  const land = () => { if (!left) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView({ behavior: "instant" }); };
  globalThis.symflopsLand = land;
  const done = () => {
    fit();
    land();
    document.fonts.ready.then(land);
    root.dataset.math = "set";
  };
  const work = (until) => {
    while (waiting.length && performance.now() < until) set(waiting.shift());
    if (!waiting.length && !root.dataset.math) done();
  };
  const slice = () => {
    work(performance.now() + 24);
    if (waiting.length) setTimeout(slice, 0);
  };
  if (typeof katex === "undefined" || !waiting.length) root.dataset.math = "set";
  else slice();
  let width = innerWidth, later;
  addEventListener("resize", () => {
    if (innerWidth === width || !sources.size) return;
    width = innerWidth;
    clearTimeout(later);
    later = setTimeout(fit, 120);
  });
  addEventListener("beforeprint", () => {
    work(Infinity);
    for (const details of document.querySelectorAll("details:not([open])")) details.open = details.dataset.printed = true;
  });
  addEventListener("afterprint", () => {
    for (const details of document.querySelectorAll("details[data-printed]")) { details.open = false; delete details.dataset.printed; }
  });

  // on a phone a cell stands beside the title of its column
  const label = (table) => {
    const titles = [...table.querySelectorAll("thead th")].map((title) => title.textContent);
    for (const row of table.tBodies ? [...table.tBodies].flatMap((body) => [...body.rows]) : []) {
      [...row.cells].forEach((cell, place) => {
        if ((cell.tagName !== "TD" && !cell.classList.contains("n")) || !titles[place]) return;
        cell.dataset.of = titles[place];
        if (cell.childNodes.length > 1) { const whole = document.createElement("span"); whole.append(...cell.childNodes); cell.append(whole); }  // words stay together
      });
    }
  };
  document.querySelectorAll("table").forEach(label);
  globalThis.symflopsLabel = label;
  globalThis.symflopsSource = (element) => sources.get(element) ?? element.textContent;

  // a picture that is wider than the page is seen from its middle, where values come in
  for (const box of document.querySelectorAll(".drawing")) box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;

  // a level of a picture opens below it
  for (const box of document.querySelectorAll("[data-opens]")) {
    const level = document.getElementById(box.dataset.opens);
    const open = () => {
      for (const other of document.querySelectorAll("details.level")) other.open = other === level && !level.open;
      if (!level.open) return;
      const inside = level.querySelector(".drawing");
      inside.scrollLeft = (inside.scrollWidth - inside.clientWidth) / 2;
      level.scrollIntoView({ block: "nearest" });
    };
    box.addEventListener("click", open);
    box.addEventListener("keydown", (event) => { if (["Enter", " "].includes(event.key)) { event.preventDefault(); open(); } });
  }

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
