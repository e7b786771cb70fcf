// The search over models: every word must stand in a model's names, classes, title or family; dots, hyphens and underscores are alike.
"use strict";
(() => {
  const box = document.getElementById("search");
  if (!box) return;
  const plain = (text) => text.toLowerCase().replaceAll(/[._-]+/g, "-");
  const items = [...document.querySelectorAll("#models tbody tr")].map((element) => [element, plain(element.dataset.words)]);
  const table = document.getElementById("models"), heads = [...table.tHead.rows[0].cells];
  const status = document.getElementById("found"), radios = [...document.querySelectorAll('.filters input[type="radio"]')];
  const family = () => radios.find((radio) => radio.checked)?.value ?? "";
  const filter = () => {
    const words = plain(box.value).split(/\s+/).filter(Boolean), group = family();
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
    if (sorted) said.set("sort", `${heads.indexOf(sorted[0])}${sorted[1] ? "down" : ""}`);
    try { history.replaceState(null, "", `${location.pathname}${said.size ? `?${said}` : ""}`); } catch { /* some browsers keep the address of a file as it is */ }
  };
  // a click on the title of a column sorts by it, a second one the other way round; what has no figure stands last
  let sorted;
  const valueOf = (row, place, number) => (number ? row.cells[place].dataset.value : row.cells[place].textContent.trim().toLowerCase());
  const compare = (one, two, number) => (number ? (BigInt(one) < BigInt(two) ? -1 : BigInt(one) > BigInt(two) ? 1 : 0) : one.localeCompare(two));
  const sort = (head, down) => {
    const place = heads.indexOf(head), number = head.dataset.kind === "number";
    const rows = items.map(([row]) => [valueOf(row, place, number), row]);
    rows.sort(([one], [two]) => (one === "" || two === "" ? (one === "") - (two === "") : compare(one, two, number) * (down ? -1 : 1)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
    for (const other of heads) other === head ? other.setAttribute("aria-sort", down ? "descending" : "ascending") : other.removeAttribute("aria-sort");
    sorted = [head, down];
  };
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => { sort(head, sorted?.[0] === head ? !sorted[1] : head.dataset.kind === "number"); filter(); });
  }

  const said = new URLSearchParams(location.search);
  const asked = /^(\d)(down)?$/.exec(said.get("sort") ?? "");
  if (asked && heads[asked[1]]) sort(heads[asked[1]], Boolean(asked[2]));
  box.value = said.get("q") ?? "";
  for (const radio of radios) if (radio.value === said.get("family")) radio.checked = true;
  for (const input of [box, ...radios]) input.addEventListener("input", filter);
  box.form.addEventListener("submit", (event) => {
    event.preventDefault();
    [...table.tBodies[0].rows].find((row) => !row.hidden)?.querySelector("a").click();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(input|select|textarea)$/i.test(document.activeElement.tagName)) { event.preventDefault(); box.focus(); }
  });
  filter();
})();
