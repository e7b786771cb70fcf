// The calculator of a model's page: sizes and lengths in, exact integers out; what is said stands in the address, to be shared.
"use strict";
(() => {
  const holder = document.getElementById("model");
  if (!holder) return;
  const model = JSON.parse(holder.textContent);
  const at = (id) => document.getElementById(id);
  const form = at("calculator-form");
  const sizeInputs = [...form.querySelectorAll("[data-size]")], streamInputs = [...form.querySelectorAll("[data-stream]")];
  const rateInputs = ["seconds", "devices", "peak", "dtype"].map(at);
  const regime = at("regime"), convention = at("convention"), preset = at("preset");
  const partName = (part) => capital(part);

  // numbers for people: all digits in groups of three, and a rounded one beside them
  const digits = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  const UNITS = ["", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q"];
  const rounded = (value, unit) => {
    const text = String(value), power = Math.min(Math.floor((text.length - 1) / 3), UNITS.length - 1);
    if (power === 0) return `${text} ${unit}`;
    const scale = 10n ** BigInt(3 * power), parts = (value * 200n + scale) / (scale * 2n);
    return `${digits(parts / 100n)}.${String(parts % 100n).padStart(2, "0")} ${UNITS[power]}${unit}`;
  };
  const ratio = (top, bottom, places = 4) => {
    if (bottom === 0n) return "";
    const scale = 10n ** BigInt(places), value = (top * scale * 2n + bottom) / (bottom * 2n);
    return `${value / scale}.${String(value % scale).padStart(places, "0")}`;
  };
  const percent = (top, bottom) => (bottom === 0n ? "" : `${ratio(top * 100n, bottom, 2)} %`);

  // what a person writes, as values of a config and of a batch
  class Wrong extends Error {
    constructor(input, text) { super(text); this.input = input; }
  }
  const valueOf = (input) => {
    const kind = input.dataset.kind, text = input.value.trim();
    if (input.type === "checkbox") return input.checked;
    if (text === "") return undefined;
    const nullable = model.fields[input.dataset.size][2];
    if (nullable && ["null", "none"].includes(text.toLowerCase())) return null;
    if (kind === "text") return text;
    if (kind === "flag") {
      if (text === "true" || text === "false") return text === "true";
      throw new Wrong(input, "true or false");
    }
    if (kind === "number" || kind === "count" || kind === "entries" || kind === "position") {
      const plain = text.replace(/[_ ]|,(?=\d{3}(\D|$))/g, "");
      if (!(kind === "position" ? /^-?\d+$/ : /^\d+$/).test(plain) || plain.length > 15) throw new Wrong(input, `a whole number${kind === "count" ? ", at most 100,000" : ""}`);
      if (kind === "count" && Number(plain) > 100000) throw new Wrong(input, "at most 100,000");
      return Number(plain);
    }
    if (kind === "rational") {
      if (!/^\d+(\.\d+)?$/.test(text)) throw new Wrong(input, "a number such as 4 or 2.5");
      return Number(text);
    }
    try {
      return JSON.parse(text);
    } catch {
      if ((kind === "any" && /^[\w-]+$/.test(text)) || (kind.endsWith("same or valid") && ["same", "valid"].includes(text))) return text;
      throw new Wrong(input, "a list such as [320, 640]");
    }
  };
  const shown = (value) => (value === null ? "null" : typeof value === "string" ? value : JSON.stringify(value, (_, item) => (typeof item === "bigint" ? Number(item) : item)));
  const configOf = () => {
    const config = {};
    for (const input of sizeInputs) {
      const value = valueOf(input);
      if (value === undefined) continue;
      const words = model.fields[input.dataset.size][0].split("."), last = words.pop();
      words.reduce((place, word) => (place[word] ??= {}), config)[last] = value;
    }
    return config;
  };
  const LONGEST = 100000;
  const entriesOf = (input) => {
    const name = input.dataset.stream, [axes, counts, optional] = model.streams[name], text = input.value.trim();
    if (text === "") {
      if (optional) return undefined;
      if (!counts) return [];
    }
    if (counts) {
      if (!/^\d{1,6}$/.test(text)) throw new Wrong(input, "a number of items");
      return Number(text);
    }
    const items = [];
    for (const part of text.split(/[,;]/)) {
      const found = /^\s*([\d\s_x×]+?)\s*(?:\*\s*(\d{1,6}))?\s*$/i.exec(part);
      const entry = (found?.[1] ?? "").trim().split(/\s*[x×]\s*|\s+/i).map((word) => word.replaceAll("_", ""));
      if (!found || entry.some((word) => !/^\d{1,12}$/.test(word))) throw new Wrong(input, `'${part.trim()}' is no ${axes.length > 1 ? `entry such as ${axes.map(() => 32).join("x")}` : "length"}`);
      if (entry.length !== axes.length) throw new Wrong(input, `an entry has ${axes.length} ${axes.length > 1 ? `numbers (${axes.join(" x ")})` : "number"}, '${part.trim()}' has ${entry.length}`);
      const times = Number(found[2] ?? 1);
      if (items.length + times > LONGEST) throw new Wrong(input, `at most ${digits(LONGEST)} items`);
      const numbers = entry.map(Number);
      for (let i = 0; i < times; i++) items.push(axes.length > 1 ? numbers : numbers[0]);
    }
    return items;
  };
  const batchOf = () => Object.fromEntries(streamInputs.map((input) => [input.dataset.stream, entriesOf(input)]).filter(([, given]) => given !== undefined));
  const written = (given) => {
    if (given === undefined || given === null) return "";
    if (!Array.isArray(given)) return String(given);
    const texts = given.map((entry) => (Array.isArray(entry) ? entry.join("x") : String(entry))), found = [];
    for (const text of texts) {
      const last = found.at(-1);
      if (last?.[0] === text) last[1] += 1;
      else found.push([text, 1]);
    }
    return found.map(([text, times]) => (times > 1 ? `${text}*${times}` : text)).join(", ");
  };

  // estimators: that of the page is there, those of other structures are loaded when they are asked for
  const loaded = new Map();
  const load = ([key, address]) => {
    if (!loaded.has(key)) {
      loaded.set(key, new Promise((resolve, reject) => {
        if (globalThis.symflops?.[key]) return resolve(globalThis.symflops[key]);
        const script = document.createElement("script");
        script.src = address;
        script.onload = () => resolve(globalThis.symflops[key]);
        script.onerror = () => reject(new Error(`${address} cannot be loaded`));
        document.head.append(script);
        return undefined;
      }));
    }
    return loaded.get(key);
  };
  const estimatorsFor = async (config) => {
    let first;
    for (const estimator of model.estimators) {
      const found = await load(estimator), sizes = found.sizes(config);
      first ??= [found, sizes];
      if (found.fits(sizes)) return [found, sizes];
    }
    return first;
  };

  // errors stand beside their field
  const tell = (input, text) => {
    const place = at(`${input.id}-error`);
    if (place && place.textContent !== text) place.textContent = text;
    text ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid");
  };
  const clear = () => { for (const input of [...sizeInputs, ...streamInputs]) tell(input, ""); at("wrong").textContent = ""; };
  const complain = (error) => {
    const input = error.input ?? (error.field && at(`size-${error.field}`)) ?? (error.stream && at(`stream-${error.stream}`));
    if (input) {
      const folded = input.closest("details:not([open])");
      if (folded) folded.open = true;
      tell(input, error.message);
    }
    else at("wrong").textContent = capital(error.message);
    form.classList.add("stale");
  };
  const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

  const row = (name, cells, isCode) => {
    const line = document.createElement("tr"), head = document.createElement("th");
    head.scope = "row";
    const label = isCode ? document.createElement("code") : head;
    label.textContent = name;
    if (isCode) head.append(label);
    line.append(head, ...cells.map(([text, kind]) => {
      const cell = document.createElement("td");
      cell.className = kind ?? "n";
      cell.textContent = text;
      return cell;
    }));
    return line;
  };
  const worked = (names, found, total) => Object.entries(found).map(([name, { forward, backward, recomputed }]) =>
    row(names(name), [[digits(forward)], [digits(backward)], [digits(recomputed), "n again"], [percent(forward + backward, total)]], names !== partName));

  const listeners = [];
  const show = ([found, sizes], batch) => {
    const estimator = new found.Estimator(sizes, { regime: regime.value, convention: convention.value });
    const moments = estimator.moments(batch);
    const forward = estimator.forward(moments), backward = estimator.backward(moments), again = estimator.recomputed(moments), total = forward + backward;
    const put = (id, value, unit) => {
      const place = at(`out-${id}`);
      place.value = digits(value);
      place.dataset.exact = String(value);
      place.dataset.rounded = unit ? rounded(value, unit) : "";
    };
    const unit = model.units[convention.value];
    put("parameters", estimator.parameters, "");
    put("forward", forward, unit);
    put("backward", backward, unit);
    put("recomputed", again, unit);
    put("total", total, unit);
    at("out-trainable").textContent = estimator.trainableParameters === estimator.parameters ? "all train" : `${digits(estimator.trainableParameters)} train`;
    at("out-ratio").textContent = forward && backward ? `${ratio(backward, forward)} × forward` : "";
    at("out-executed").textContent = again ? `${digits(total + again)} with what is computed again` : "";
    form.classList.toggle("recomputes", again !== 0n);
    form.classList.remove("stale");
    at("by-part").replaceChildren(...worked(partName, estimator.byPart(moments), total));
    at("by-module").replaceChildren(...worked((name) => name, estimator.byModule(moments), total));
    at("by-tensor").replaceChildren(...estimator.counts.map(([name, elements]) => row(name, [[digits(elements)]], true)));
    at("said").textContent = `${digits(estimator.parameters)} parameters. Forward ${rounded(forward, unit)}, backward ${rounded(backward, unit)}.`;
    for (const input of sizeInputs) {
      if (input.type === "checkbox") continue;
      const value = sizes[input.dataset.size];
      input.placeholder = input.dataset.kind === "rational" ? (value[1] === 1n ? String(value[0]) : String(Number(value[0]) / Number(value[1]))) : shown(value);
    }
    at("by-regime").replaceChildren(...found.regimes.flatMap((name) => found.conventions.map((counted) => {
      const one = new found.Estimator(sizes, { regime: name, convention: counted }), sums = one.moments(batch);
      const full = new found.Estimator(sizes, { regime: found.regimes[0], convention: counted });
      const cost = one.total(sums) + one.recomputed(sums);
      const same = new Set(found.conventions.map((one) => model.units[one])).size === 1;
      const line = row(name, [[same ? counted : `${counted}, ${model.units[counted]}`, "word"], [digits(one.trainableParameters)], [digits(one.forward(sums))], [digits(one.backward(sums))],
        [digits(one.recomputed(sums))], [ratio(cost, full.total(sums) + full.recomputed(sums), 3) + (cost ? " ×" : "")]], true);
      if (name === regime.value && counted === convention.value) line.classList.add("chosen");
      return line;
    })));
    at("regimes-batch").textContent = streamInputs.map((input) => `${input.dataset.stream} ${written(batch[input.dataset.stream]) || "none"}`).join("; ");
    for (const table of form.querySelectorAll("table")) symflopsLabel(table);
    symflopsLabel(at("by-regime").closest("table"));
    for (const listener of listeners) listener({ found, sizes, estimator, moments, batch, forward, backward, again, partName, digits, rounded, percent });
  };

  // the address
  const initial = new Map();
  const state = () => {
    const said = new URLSearchParams();
    for (const input of sizeInputs) {
      const value = input.type === "checkbox" ? String(input.checked) : input.value.trim();
      if (value !== initial.get(input.id)) said.set(`size.${input.dataset.size}`, value);
    }
    for (const input of streamInputs) if (input.value.trim() !== initial.get(input.id)) said.set(input.dataset.stream, input.value.replace(/\s+/g, ""));
    for (const select of [regime, convention]) if (select.value !== select.options[0].value) said.set(select.id, select.value);
    for (const input of rateInputs) if (input.value.trim() && input.value !== input.options?.[0]?.value) said.set(input.id, input.value.trim());
    return said;
  };
  const address = () => {
    const text = state().toString();
    return `${location.pathname}${text ? `?${text}` : ""}${location.hash}`;
  };
  const restore = () => {
    const said = new URLSearchParams(location.search);
    for (const input of sizeInputs) {
      const value = said.get(`size.${input.dataset.size}`);
      if (value === null) continue;
      if (input.type === "checkbox") input.checked = value === "true";
      else input.value = value;
    }
    for (const input of streamInputs) if (said.has(input.dataset.stream)) input.value = said.get(input.dataset.stream).replaceAll(",", ", ");
    for (const select of [regime, convention]) if ([...select.options].some((option) => option.value === said.get(select.id))) select.value = said.get(select.id);
    for (const input of rateInputs) if (said.has(input.id)) input.value = said.get(input.id);
  };

  let turn = 0;
  const update = async () => {
    const mine = ++turn;
    clear();
    at("regime-doc").textContent = capital(model.regimes[regime.value] ?? "");
    at("convention-doc").textContent = capital(model.conventions[convention.value] ?? "");
    at("preset-source").textContent = model.presets[Number(preset.value || -1)]?.source ?? "";
    try { history.replaceState(null, "", address()); } catch { /* some browsers keep the address of a file as it is */ }
    try {
      const config = configOf(), batch = batchOf();
      const chosen = await estimatorsFor(config);
      if (mine === turn) show(chosen, batch);
    } catch (error) {
      if (mine === turn) complain(error);
    }
    if (mine === turn) form.dataset.turn = String(mine);
  };

  const fieldKeys = new Map();
  const fill = (config, batch) => {
    for (const input of sizeInputs) {
      const found = fieldKeys.get(input.dataset.size).map((key) => key.split(".").reduce((place, word) => place?.[word], config));
      const value = found.find((one) => one !== undefined && one !== null) ?? found.find((one) => one === null);
      if (input.type === "checkbox") input.checked = value ?? standard.get(input.dataset.size) ?? false;
      else input.value = value === undefined ? "" : shown(value);
    }
    for (const input of streamInputs) input.value = written(batch[input.dataset.stream]);
  };
  const standard = new Map();
  const begin = async () => {
    const found = await load(model.estimators[0]);
    for (const [attribute, , keys] of found.fields) fieldKeys.set(attribute, keys);
    for (const [attribute, kind, , , value] of found.fields) if (kind === "flag" && typeof value === "boolean") standard.set(attribute, value);
    const needs = found.fields.some(([, , , , value]) => value === undefined);
    const first = needs && preset ? 0 : -1;
    if (first >= 0) preset.value = "0";
    fill(first < 0 ? {} : model.presets[first].config, model.batch);
    for (const input of sizeInputs) initial.set(input.id, input.type === "checkbox" ? String(input.checked) : input.value.trim());
    for (const input of streamInputs) initial.set(input.id, input.value.trim());
    restore();
    await update();
    symflopsLand();
    form.dataset.ready = "true";
  };
  if (sizeInputs.length > 6 && matchMedia("(max-width: 60rem)").matches) at("sizes").open = false; // what comes out stands below
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => { if (event.target !== preset && event.target.id !== "config") update(); });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const input of sizeInputs) input.type === "checkbox" ? (input.checked = initial.get(input.id) === "true") : (input.value = initial.get(input.id));
    for (const input of streamInputs) input.value = initial.get(input.id);
    for (const input of rateInputs) input.options ? (input.selectedIndex = 0) : (input.value = "");
    for (const select of [regime, convention]) select.selectedIndex = 0;
    if (preset) preset.value = preset.querySelector('[value="0"]') && sizeInputs.some((input) => initial.get(input.id) && input.type !== "checkbox") ? "0" : "";
    update();
  });
  preset?.addEventListener("change", () => {
    const chosen = preset.value === "" ? null : model.presets[Number(preset.value)];
    fill(chosen?.config ?? {}, chosen && Object.keys(chosen.batch).length ? chosen.batch : model.batch);
    update();
  });
  globalThis.symflopsPage = {
    model, listen: (listener) => listeners.push(listener), valueOf, entriesOf, configOf, fill, update, tell, digits, rounded, ratio, written,
    first: () => load(model.estimators[0]), estimatorsFor, link: () => new URL(address(), location.href).href,
  };
  document.addEventListener("DOMContentLoaded", begin, { once: true });
  if (document.readyState !== "loading") begin();
})();
