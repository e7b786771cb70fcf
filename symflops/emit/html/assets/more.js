// What surrounds a calculation: a config.json to read, MFU, the formula and the measured record behind each figure, and copies.
"use strict";
(() => {
  const page = globalThis.symflopsPage;
  if (!page) return;
  const { model, digits, rounded, ratio } = page, at = (id) => document.getElementById(id);
  const part = (text) => document.createTextNode(text);
  const link = (address, text) => Object.assign(document.createElement("a"), { href: address, textContent: text });
  let last;

  // a config.json: its fields fill the form, or what is wrong is told
  const paste = at("config");
  const take = async () => {
    const text = paste.value.trim();
    at("config-told").textContent = "";
    page.tell(paste, "");
    if (!text) return;
    try {
      let config;
      try { config = JSON.parse(text); } catch (error) { throw new RangeError(`not JSON: ${error.message}`); }
      const read = symflopsReading.read(model, config), [found, sizes] = await page.estimatorsFor(read);
      if (!found.fits(sizes)) throw new RangeError("its structure is none of this page's: symflops render derives it with --config");
      found.check(sizes);
      page.fill(read, Object.fromEntries([...document.querySelectorAll("[data-stream]")].map((input) => [input.dataset.stream, page.entriesOf(input)]).filter(([, given]) => given !== undefined)));
      at("preset").value = "";
      const many = found.fields.filter(([, , keys]) => keys.some((key) => key.split(".").reduce((place, word) => place?.[word], read) !== undefined)).length;
      at("config-told").textContent = `${many} of ${found.fields.length} sizes read, the others have their defaults.`;
      page.update();
    } catch (error) {
      page.tell(paste, error.message);
    }
  };
  paste?.addEventListener("input", take);

  // model FLOPs utilisation
  const types = [...new Set(symflopsPeaks.flatMap(([, , rates]) => Object.keys(rates)))].sort((a, b) => (b === "bf16") - (a === "bf16"));
  at("dtype").replaceChildren(...types.map((type) => new Option(type, type)));
  at("peaks").replaceChildren(...symflopsPeaks.map(([name]) => new Option(name, name)));
  const number = (input, what, whole) => {
    const text = input.value.trim().replaceAll(",", "");
    if (!(whole ? /^\d{1,9}$/ : /^\d*\.?\d+(e[-+]?\d+)?$/i).test(text) || !(Number(text) > 0)) throw Object.assign(new RangeError(what), { input });
    return Number(text);
  };
  const matches = (alias, name) => new RegExp(`^${alias.toLowerCase().replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", "[0-9]+")}$`).test(name);
  const peakOf = (input) => {
    const text = input.value.trim(), name = text.toLowerCase(), type = at("dtype").value;
    const wrong = (words) => { throw Object.assign(new RangeError(words), { input }); };
    if (/^[\d.,]+$/.test(text)) return [number(input, "TFLOP/s above 0, such as 989"), "as given"];
    const exact = symflopsPeaks.filter(([own, aliases]) => [own, ...aliases].some((alias) => matches(alias, name)));
    const near = exact.length ? exact : symflopsPeaks.filter(([own, aliases]) => [own, ...aliases].some((alias) => alias.toLowerCase().includes(name)));
    if (!near.length) wrong(`no device '${text}' in the table: type its TFLOP/s`);
    if (near.length > 1) wrong(`'${text}' is ${near.slice(0, 8).map(([own]) => own).join(", ")}${near.length > 8 ? " ..." : ""}`);
    const [[own, , rates]] = near;
    if (!(type in rates)) wrong(`${own} has no ${type} rate, only ${Object.keys(rates).join(", ")}`);
    return [rates[type], `${own}, ${type}, dense`];
  };
  const utilised = () => {
    const seconds = at("seconds"), devices = at("devices"), peak = at("peak"), row = document.querySelector(".mfu");
    for (const input of [seconds, devices, peak]) page.tell(input, "");
    at("peak-told").textContent = at("out-rate").textContent = "";
    at("out-mfu").value = "";
    row.hidden = true;
    if (!last) return;
    try {
      const rate = peak.value.trim() && peakOf(peak);
      if (rate) at("peak-told").textContent = `${rate[0]} TFLOP/s, ${rate[1]}`;
      if (!seconds.value.trim()) return;
      const time = number(seconds, "seconds above 0"), count = devices.value.trim() ? number(devices, "a whole number above 0", true) : 1;
      const speed = Number(last.forward + last.backward) / time / count / 1e12;
      row.hidden = false;
      at("out-rate").textContent = `${speed.toPrecision(4)} T${model.units[last.estimator.convention]}/s per device`;
      if (!rate) { at("out-mfu").value = "name a device"; return; }
      at("out-mfu").value = `${((100 * speed) / rate[0]).toFixed(2)} %`;
      if (last.again) at("out-rate").textContent += `; HFU ${((100 * Number(last.forward + last.backward + last.again)) / time / count / 1e12 / rate[0]).toFixed(2)} %`;
    } catch (error) {
      page.tell(error.input, error.message);
    }
  };

  // the equations of the page, by regime and convention: {forward: "eq-1", ...}
  const equations = new Map();
  for (const heading of document.querySelectorAll("#forms h3")) {
    const [regime, ...conventions] = [...heading.querySelectorAll("code")].map((code) => code.textContent), forms = {};
    for (let next = heading.nextElementSibling; next && next.tagName !== "H3"; next = next.nextElementSibling) {
      const same = next.querySelector('a[href^="#eq-"]');
      const name = next.id ? /\\mathrm\{(\w+)\}/.exec(symflopsSource(next.querySelector(".tex")))?.[1] : /^The (\w+)/.exec(next.textContent)?.[1];
      if (name && (next.id || same)) forms[name] = next.id || same.hash.slice(1);
    }
    for (const convention of conventions) equations.set(`${regime} ${convention}`, forms);
  }
  for (const told of document.querySelectorAll("#forms p")) { // "Regime forward: forward as in equation (1) by symflops; ..."
    const regime = told.firstElementChild;
    if (!told.textContent.startsWith("Regime ") || regime?.tagName !== "CODE") continue;
    let name, forms = {};
    for (const node of told.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (node.textContent.includes(";")) forms = {};
        name = /(\w+) as in/.exec(node.textContent)?.[1] ?? name;
      } else if (node.tagName === "A") forms = { ...forms, [name]: node.hash.slice(1) };
      else if (node !== regime) {
        const key = `${regime.textContent} ${node.textContent}`;
        equations.set(key, { ...equations.get(key), ...forms });
      }
    }
  }
  const formsOf = ({ estimator }) => equations.get(`${estimator.regime} ${estimator.convention}`) ?? {};
  const tableRows = (id, column, into) => {
    let group = "";
    for (const row of document.querySelectorAll(`#${id} tbody tr`)) {
      if (row.classList.contains("group")) { group = `${row.cells[0].textContent.replace(/^in /, "")}.`; continue; }
      if (!row.previousElementSibling) group = "";
      if (row.cells[column]) into(row, row.cells[column].textContent, group);
    }
  };
  const places = new Map();
  let count = 0;
  tableRows("passes", 1, (row, name, group) => { row.id ||= `module-${count++}`; places.set(group + name, row.id).set(name, places.get(name) ?? row.id); });
  tableRows("verified", 0, (row, name) => { const id = `record-${name.replace(/\s+/g, "-")}`; if (!at(id)) row.id ||= id; });

  // the figures at the head of the page lead to their formulas
  const formulas = [[/^Active/, "parameters"], [/^Parameters/, "result"], [/^Attention|more token/, "growth"], [/^Verified/, "verified"],
    [/^Forward/, [...equations.values()][0]?.forward ?? "eq-1"], [/^Backward/, [...equations.values()][0]?.backward ?? "eq-2"], [/per token/, "result"]];
  for (const name of document.querySelectorAll(".facts dt")) {
    const place = formulas.find(([pattern]) => pattern.test(name.textContent))?.[1];
    if (!place || !at(place)) continue;
    const whole = link(`#${place}`, "");
    whole.append(...name.childNodes);
    name.append(whole);
  }

  // a calculation that a measured record has, too, says so
  const prove = ({ found, sizes, batch }) => {
    const place = at("proof"), many = Object.keys(model.records).length;
    place.replaceChildren();
    if (!many) return;
    let known;
    if (found.regimes.includes("full") && found.conventions.includes("torch")) {
      try {
        const one = new found.Estimator(sizes, { regime: "full", convention: "torch" }), sums = one.moments(batch);
        const figures = [one.parameters, one.forward(sums), one.backward(sums)].join();
        known = Object.keys(model.records).find((name) => model.records[name].join() === figures);
      } catch { /* a batch that this convention does not take */ }
    }
    if (known) place.append(part("Measured: parameters, forward and backward of record "), link(`#record-${known.replace(/\s+/g, "-")}`, known), part(" are these under convention torch, 0 FLOPs apart."));
    else place.append(part("Proven by "), link("#verified", `${many} measured ${many === 1 ? "record" : "records"}`), part(" of other sizes or batches, each 0 FLOPs apart."));
  };

  page.listen((given) => {
    last = given;
    const { estimator, moments, forward, backward } = given, forms = formsOf(given), tokens = estimator.tokens(moments), unit = model.units[estimator.convention];
    for (const name of ["forward", "backward", "recomputed"]) at(`of-${name}`).href = `#${forms[name] ?? "forms"}`;
    const active = estimator.activeParameters;
    at("out-active").textContent = active === estimator.parameters ? "" : `${digits(active)} active per token`;
    document.querySelector(".per-token").hidden = tokens === 0n;
    const each = tokens && (2n * (forward + backward) + tokens) / (2n * tokens);
    Object.assign(at("out-token"), { value: tokens ? digits(each) : "" }).dataset.rounded = tokens ? rounded(each, unit) : "";
    at("out-token").dataset.exact = String(each);
    at("out-tokens").textContent = tokens ? `${digits(tokens)} tokens; ${ratio(forward + backward, tokens * active, 2)} × active parameters` : "";
    for (const cell of document.querySelectorAll("#by-module th")) {
      const name = cell.textContent;
      cell.replaceChildren(link(`#${places.get(name) ?? places.get(name.split(".*.").at(-1)) ?? "passes"}`, name));
    }
    prove(given);
    utilised();
  });

  // copies
  const copy = async (text, told) => {
    try {
      await navigator.clipboard.writeText(text);
      at("shared").textContent = told;
    } catch {
      at("shared").textContent = text;
    }
  };
  const python = (value) => {
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
    return typeof value === "object" ? `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`).join(", ")}}` : JSON.stringify(value);
  };
  const asPython = () => {
    const { estimator, batch } = last;
    const given = Object.entries(batch).map(([name, entries]) => `${JSON.stringify(name)}: ${python(entries)}`).join(", ");
    return `import symflops\n\nmodel = symflops.load(${JSON.stringify(model.name)})\nestimator = model.estimator(${python(page.configOf())}, ${JSON.stringify(estimator.regime)}, ${JSON.stringify(estimator.convention)})\n`
      + `m = estimator.moments(**{${given}})\nprint(estimator.parameters, estimator.forward(m), estimator.backward(m))\n`;
  };
  const grouped = (value) => digits(value).replaceAll(",", "{,}");
  const asLatex = () => {
    const { estimator, forward, backward, again, batch } = last, forms = formsOf(last);
    const said = Object.entries(batch).map(([name, entries]) => `${name} ${page.written(entries)}`).join("; ");
    const rows = [["forward", forward], ["backward", backward], ["recomputed", again]].filter(([name, value]) => value || name === "forward").map(([name, value]) => {
      const element = forms[name] && document.querySelector(`#${forms[name]} .tex`);
      const body = element ? `${symflopsSource(element).replace(/\\(begin|end)\{aligned\}\n?/g, "").trim().replace(/^\\mathrm\{\w+\}/, `\\mathrm{${name}}`)} \\\\\n&= ${grouped(value)}` : `\\mathrm{${name}} &= ${grouped(value)}`;
      return body;
    });
    const more = forms.forward ? "" : `% closed form: symflops render ${model.name} --regime ${estimator.regime} --convention ${estimator.convention} --format latex\n`;
    return `% ${model.name}: regime ${estimator.regime}, convention ${estimator.convention}; ${said}\n% ${page.link()}\n${more}\\begin{align*}\n${rows.join(" \\\\\n")}\n\\end{align*}\n`;
  };
  at("share").addEventListener("click", () => copy(page.link(), "The link to this calculation is copied."));
  at("copy-python").addEventListener("click", () => last && copy(asPython(), "The calculation is copied as Python."));
  at("copy-latex").addEventListener("click", () => last && copy(asLatex(), "The calculation is copied as LaTeX."));
})();
