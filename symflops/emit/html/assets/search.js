// The search over models: every word must stand in a model's name, classes, title or family.
"use strict";
(() => {
  const box = document.getElementById("search");
  if (!box) return;
  const items = [...document.querySelectorAll(".models > li")].map((element) => [element, element.dataset.words]);
  const status = document.getElementById("found"), radios = [...document.querySelectorAll('.filters input[type="radio"]')];
  const family = () => radios.find((radio) => radio.checked)?.value ?? "";
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean), group = family();
    let count = 0;
    for (const [element, text] of items) {
      const fits = (!group || element.dataset.family === group) && words.every((word) => text.includes(word));
      element.hidden = !fits;
      count += fits;
    }
    status.textContent = count === items.length ? `${count} models` : `${count} of ${items.length} models`;
    const said = new URLSearchParams();
    if (box.value.trim()) said.set("q", box.value.trim());
    if (group) said.set("family", group);
    try { history.replaceState(null, "", `${location.pathname}${said.size ? `?${said}` : ""}`); } catch { /* some browsers keep the address of a file as it is */ }
  };
  const said = new URLSearchParams(location.search);
  box.value = said.get("q") ?? "";
  for (const radio of radios) if (radio.value === said.get("family")) radio.checked = true;
  for (const input of [box, ...radios]) input.addEventListener("input", filter);
  box.form.addEventListener("submit", (event) => {
    event.preventDefault();
    items.find(([element]) => !element.hidden)?.[0].querySelector("a").click();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(input|select|textarea)$/i.test(document.activeElement.tagName)) { event.preventDefault(); box.focus(); }
  });
  filter();
})();
