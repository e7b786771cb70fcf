// The plot over length: what each part of the model takes of forward and backward as one length grows, and where attention overtakes.
"use strict";
(() => {
  const box = document.getElementById("plot-box");
  if (!box || !globalThis.symflopsPage) return;
  const axis = document.getElementById("axis"), scale = document.getElementById("scale"), caption = document.getElementById("plot-caption");
  const STEPS = [1n, 2n, 4n, 8n, 14n, 16n, 28n, 32n, 48n, 56n, 64n, 96n, 112n, 128n, 192n, 224n];
  const POINTS = 72, WIDEST = 760, NARROWEST = 300, HEIGHT = 340, LEFT = 68, RIGHT = 14, TOP = 14, BOTTOM = 46;
  const COLOURS = ["linears", "convolutions", "experts", "head", "modulation", "first and last projections", "recurrence", "routing", "products of two values"];
  const colour = (part) => (part === "attention" ? part : Math.max(0, COLOURS.indexOf(part)));
  let last;

  const make = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const entryOf = (given, axes) => (Array.isArray(given) && given.length ? (axes.length > 1 ? given[0].map(BigInt) : [BigInt(given[0])]) : axes.map(() => 1n));

  // the parts of work of one item in which one length is x; undefined where the model does not divide so
  const worker = ({ found, estimator, batch }, [stream, place]) => {
    const base = {};
    for (const streams of Object.values(found.sets)) {
      for (const [name, axes] of streams) base[name] = axes.length ? entryOf(batch[name], axes) : 1;
    }
    const at = (x) => {
      const one = Object.fromEntries(Object.entries(base).map(([name, entry]) => {
        if (!Array.isArray(entry)) return [name, entry];
        const changed = entry.map((value, i) => (name === stream && i === place ? x : value));
        return [name, [changed.length > 1 ? changed : changed[0]]];
      }));
      try {
        return estimator.moments(one);
      } catch {
        return undefined;
      }
    };
    const work = (x) => {
      const moments = at(x);
      return moments && Object.fromEntries(Object.entries(estimator.byPart(moments)).map(([part, { forward, backward }]) => [part, forward + backward]));
    };
    return Object.assign(work, { tokens: (x) => { const moments = at(x); return (moments && estimator.tokens(moments)) || 1n; } });
  };
  const stepOf = (work) => STEPS.find((step) => [1n, 2n, 3n, 5n].every((times) => work(step * times))) ?? 1n;
  const overtakes = (parts) => {
    const attention = parts?.attention ?? 0n;
    return attention > 0n && attention >= Object.values(parts).reduce((a, b) => a + b, 0n) - attention;
  };
  // the smallest multiple of step from which on attention does more than the rest, by halving
  const crossing = (work, step) => {
    let high = 1n;
    while (high < 1n << 40n && !overtakes(work(step * high))) high *= 2n;
    if (high >= 1n << 40n) return undefined;
    let low = high / 2n;
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (overtakes(work(step * middle))) high = middle;
      else low = middle;
    }
    return step * high;
  };
  const nice = (value) => { const text = String(value); return text.length > 6 ? `${Number(value) / 1e6}M` : text.length > 3 && value % 1000n === 0n ? `${value / 1000n}k` : text.replace(/\B(?=(\d{3})+$)/g, ","); };

  const draw = () => {
    if (!last) return;
    const WIDTH = Math.min(WIDEST, Math.max(NARROWEST, box.clientWidth || WIDEST));
    const [stream, place] = axis.value.split("/").map((word, i) => (i ? Number(word) : word));
    const { found, batch, partName, digits, percent, rounded } = last;
    const work = worker(last, [stream, place]), step = stepOf(work), cross = crossing(work, step);
    const axes = Object.values(found.sets).flat().find(([name]) => name === stream)?.[1] ?? [];
    const now = entryOf(batch[stream], axes)[place] ?? 1n;
    const share = scale.value === "share", each = scale.value === "token", log = share || each;
    let most = now * 8n;
    if (cross && cross < now * 1024n) most = cross * 4n > most ? cross * 4n : most;
    if (most < 64n * step) most = 64n * step;
    const least = log ? (most / 4096n > step ? most / 4096n : step) : step;
    const xs = [];
    for (let i = 0; i < POINTS; i++) {
      const t = i / (POINTS - 1), ideal = log ? Number(least) * (Number(most) / Number(least)) ** t : Number(least) + (Number(most) - Number(least)) * t;
      const x = (BigInt(Math.round(ideal)) / step || 1n) * step;
      if (xs.at(-1) !== x) xs.push(x);
    }
    const divided = (found, tokens) => found && Object.fromEntries(Object.entries(found).map(([part, value]) => [part, value / tokens]));
    const rows = xs.map((x) => (each ? divided(work(x), work.tokens(x)) : work(x)));
    const good = xs.filter((_, i) => rows[i]), kept = rows.filter(Boolean);
    if (good.length < 2) { box.replaceChildren(); caption.textContent = "These sizes do not let one length grow."; return; }
    const parts = Object.keys(kept[0]).filter((part) => kept.some((found) => found[part] > 0n));
    parts.sort((a, b) => (a === "attention") - (b === "attention"));
    const sums = kept.map((found) => parts.reduce((sum, part) => sum + found[part], 0n));
    const top = sums.reduce((a, b) => (b > a ? b : a), 1n);
    const x0 = Math.log(Number(good[0])), x1 = Math.log(Number(good.at(-1)));
    const px = (x) => LEFT + (WIDTH - LEFT - RIGHT) * (log ? (Math.log(Number(x)) - x0) / (x1 - x0) : (Number(x) - Number(good[0])) / (Number(good.at(-1)) - Number(good[0])));
    const py = (part, i) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Number((part * 1000000n) / (share ? sums[i] || 1n : top)) / 1e6);
    const title = `${axes.length > 1 ? `${stream} ${axes[place]}` : stream}`;
    const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": "plot-caption" });
    for (let i = 0; i <= 4; i++) {
      const y = TOP + ((HEIGHT - TOP - BOTTOM) * i) / 4;
      const text = share ? `${100 - 25 * i} %` : rounded((top * BigInt(4 - i)) / 4n, "");
      svg.append(make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "grid" }), make("text", { x: LEFT - 8, y: y + 4, class: "tick end" }, text.replace(" ", "\u202f")));
    }
    const below = sums.map(() => 0n);
    parts.forEach((part) => {
      const low = good.map((x, i) => `${px(x).toFixed(1)},${py(below[i], i).toFixed(1)}`);
      kept.forEach((found, i) => { below[i] += found[part]; });
      const high = good.map((x, i) => `${px(x).toFixed(1)},${py(below[i], i).toFixed(1)}`);
      svg.append(make("path", { d: `M${high.join("L")}L${low.reverse().join("L")}Z`, class: `area part-${colour(part)}` }, make("title", {}, partName(part))));
    });
    const ticks = [];
    if (log) for (let power = 0; power < 60; power++) { const x = 1n << BigInt(power); if (x >= good[0] && x <= good.at(-1)) ticks.push(x); }
    else { const unit = 10n ** BigInt(String(most).length - 1), by = most / unit > 4n ? unit : unit / 2n || 1n; for (let x = by; x <= good.at(-1); x += by) if (x >= good[0]) ticks.push(x); }
    const every = Math.ceil(ticks.length / (WIDTH / 95));
    ticks.forEach((x, i) => {
      if (i % every) return;
      svg.append(make("line", { x1: px(x), x2: px(x), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5, class: "axis" }), make("text", { x: px(x), y: HEIGHT - BOTTOM + 19, class: "tick middle" }, nice(x)));
    });
    svg.append(make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, class: "axis" }), make("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, class: "tick middle" }, `length of ${title}`));
    const mark = (x, text, name, y) => {
      if (x < good[0] || x > good.at(-1)) return;
      const right = px(x) > WIDTH * 0.7;
      svg.append(make("line", { x1: px(x), x2: px(x), y1: TOP, y2: HEIGHT - BOTTOM, class: `mark ${name}` }),
        make("text", { x: px(x) + (right ? -7 : 7), y, class: `marked${right ? " end" : ""}` }, text));
    };
    mark(now, `here: ${digits(now)}`, "now", TOP + 36);
    if (cross) mark(cross, `crossover: ${digits(cross)}`, "cross", TOP + 18);
    const legend = document.createElement("ul");
    legend.className = "legend";
    legend.append(...parts.map((part) => {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = `swatch part-${colour(part)}`;
      const here = work(now) ?? {}, all = Object.values(here).reduce((a, b) => a + b, 0n);
      item.append(swatch, `${partName(part)}${all ? `, ${percent(here[part] ?? 0n, all)} here` : ""}`);
      return item;
    }));
    const frame = document.createElement("div");
    frame.className = "scroll";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Plot over length");
    frame.append(svg);
    box.replaceChildren(frame, legend);
    box.dataset.cross = cross ? String(cross) : "";
    const has = parts.includes("attention");
    caption.textContent = !has ? `No attention grows with the length of ${title}.`
      : cross ? `From ${title} = ${digits(cross)} on, attention does at least half of the work.` : `Attention stays below half of the work, however long ${title} is.`;
  };

  symflopsPage.listen((given) => {
    last = given;
    const options = Object.values(given.found.sets).flat().flatMap(([name, axes]) => axes.map((letter, place) => [`${name}/${place}`, axes.length > 1 ? `${name}, ${letter}` : name]));
    if (axis.options.length !== options.length) {
      axis.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
      document.getElementById("plotted").classList.toggle("nothing", options.length === 0);
    }
    if (options.length) draw();
  });
  for (const select of [axis, scale]) select.addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
})();
