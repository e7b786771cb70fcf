// Reads a config.json by the rules of Python: as its own class reads it, refusing what the spec does not describe.
"use strict";
globalThis.symflopsReading = (() => {
  const LISTED = 6;
  const object = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const text = (value) => JSON.stringify(value);
  const refuse = (words) => { throw new RangeError(words); };
  const there = (value) => value !== undefined && value !== null;
  const same = (one, two) => JSON.stringify(one) === JSON.stringify(two);
  const listed = (names) => names.slice(0, LISTED).join(", ") + (names.length > LISTED ? ` and ${names.length - LISTED} more` : "");
  const className = (reference) => reference.replace(":", ".").split(".").at(-1);
  const namesOf = (config) => [...(Array.isArray(config.architectures) ? config.architectures : []), config._class_name].filter((name) => typeof name === "string");

  // the class and the model type of a config are those that the spec describes, and contradict each other nowhere
  const checkClass = (model, config) => {
    const classes = model.references.map(className), words = config.architectures, own = config._class_name, kind = config.model_type;
    if (there(words) && !(Array.isArray(words) && words.every((word) => typeof word === "string"))) refuse(`the config's 'architectures' is ${text(words)}, not a list of class names`);
    if (there(own) && typeof own !== "string") refuse(`the config's '_class_name' is ${text(own)}, not the name of a class`);
    if (there(kind) && typeof kind !== "string") refuse(`the config's 'model_type' is ${text(kind)}, not a text`);
    const named = [...new Set([...(words ?? []), own].filter(Boolean))], [other] = named.filter((name) => !classes.includes(name));
    if (other && classes.length && named.length > 1) refuse(`the config is of the classes ${named.join(" and ")}: which of them is it?`);
    if (other && classes.length) refuse(`the config is of the class ${other}, and this page describes ${listed(classes)}`);
    if (kind && model.types.length && !model.types.includes(kind) && !(named.length && "auto_map" in config)) refuse(`the config is of the model type '${kind}', and this page describes ${listed(model.types)}`);
    if (kind && !model.types.length && classes.includes(own)) refuse(`the config is of the model type '${kind}', and ${className(model.references[0])} has none`);
  };

  const oneName = (found, name, others, place) => {
    const present = Object.keys(others).filter((other) => other in found);
    if (!present.length || (present.length === 1 && present[0] === name)) return;
    const [chosen] = present, needed = others[chosen].filter((field) => !there(found[field]));
    if (chosen !== name && (needed.length || found[chosen] === null)) {
      refuse(`'${place}${chosen}' stands for '${place}${name}', which the class sets after other fields: ${needed.length ? `write '${place}${needed[0]}', too` : `write '${place}${name}'`}`);
    }
    const value = found[chosen];
    for (const other of present) delete found[other];
    found[name] = value;
  };
  const within = (table, found, name, place) => {
    let part = found[name];
    if (table.instead && there(found[table.instead])) { name = table.instead; part = found[name]; }
    if (!there(part)) return { ...table.whole, ...Object.fromEntries((table.flat ?? []).filter((key) => key in found).map((key) => [key, found[key]])) };
    if (!object(part)) refuse(`the config's '${place}${name}' is ${text(part)}, not an object`);
    const kind = "model_type" in part ? part.model_type : table.kinds?.[0];
    if (table.kinds && !table.kinds.includes(kind)) refuse(`the config's '${place}${name}.model_type' is ${text(kind)}: the spec describes ${table.kinds.join(", ")}`);
    return { ...table.partial, ...part };
  };
  const fieldsRead = (table, given, place = "") => {
    const found = { ...given };
    for (const [name, others] of Object.entries(table.names ?? {})) oneName(found, name, others, place);
    for (const name of table.absent ?? []) if (found[name] === null) delete found[name];
    for (const [name, unset] of Object.entries(table.unset ?? {})) if (name in found && same(found[name], unset)) delete found[name];
    for (const name of table.never ?? []) if (found[name] === null) refuse(`the config's '${place}${name}' is null, which its class refuses`);
    for (const [name, standard] of Object.entries(table.undescribed ?? {})) {
      if (there(found[name]) && !same(found[name], standard)) refuse(`the config's '${place}${name}' is ${text(found[name])}: the class makes other fields of it, ${there(standard) ? `the spec describes ${text(standard)} alone` : 'leave it out'}`);
    }
    for (const [name, [standard, lists]] of Object.entries(table.needed ?? {})) {
      const missing = lists.filter((other) => !there(found[other]));
      if (there(found[name]) && !same(found[name], standard) && missing.length) refuse(`the config's '${place}${name}' is ${text(found[name])}: the class makes '${place}${missing[0]}' of it, which the spec does not describe: write that, too`);
    }
    for (const [name, inner] of Object.entries(table.parts ?? {})) found[name] = fieldsRead(inner, within(inner, found, name, place), `${place}${name}.`);
    return found;
  };
  const asRead = (model, config) => {
    if (!object(config)) refuse("a config is a JSON object, such as {\"hidden_size\": 4096}");
    if (!model.reading) return config;
    const { tables, classes = {} } = model.reading, known = namesOf(config).map((name) => classes[name]).filter(Boolean);
    return fieldsRead(tables[known[0] ?? Object.keys(tables)[0]], config);
  };

  // the census: values of fields whose effect the spec does not describe are refused
  const valuesAt = (config, path) => {
    let found = config;
    for (const word of path.split(".")) {
      if (!object(found) || !(word in found)) return [];
      found = found[word];
    }
    return [found];
  };
  const kindOf = (value) => (value === null ? "null" : Array.isArray(value) ? "list" : { boolean: "flag", number: "number", string: "text" }[typeof value] ?? "mapping");
  const admitted = (value, known) => {
    const kind = kindOf(value);
    if (kind === "list" && ((known.lengths ?? []).includes(value.length) || value.length >= (known.shortest ?? Infinity))) return true;
    if ((known.kinds ?? []).includes(kind) || (kind === "number" && value >= (known.least ?? Infinity))) return true;
    return known.values.some((other) => kindOf(other) === kind && same(other, value));
  };
  const rest = (a, b) => ((a % b) + b) % b;
  const related = (value, known, config) => ["number", "list"].includes(kindOf(value)) && (known.related ?? []).some(([word, path, ...standard]) => {
    const others = valuesAt(config, path).filter((other) => ["number", "list"].includes(kindOf(other)));
    return (others.length ? others : standard).map((other) => (Array.isArray(other) ? other.length : other)).some((other) => {
      if (!Array.isArray(value)) return ({ multiple: rest(value, other || 1), part: rest(other, value || 1) }[word] ?? value - other) === 0 && Boolean(value && other);
      const rising = word === "indices" && value.every((item, i) => Number.isInteger(item) && (i === 0 || item > value[i - 1]));
      return rising ? value.every((item) => item < other) : word === "long" && value.length === other;
    });
  });
  const textsIn = (value) => (Array.isArray(value) ? value.flatMap(textsIn) : typeof value === "string" ? [value] : []);
  const checkCensus = (model, config) => {
    const census = model.census ?? {}, [named] = namesOf(config), entry = census[named] ?? Object.values(census)[0];
    const told = (path, value, known) => refuse(`the config's '${path}' is ${text(value)}, whose effect the spec does not describe${known.length ? ` (known: ${listed(known.map(text))})` : ""}`);
    for (const [path, known] of Object.entries(entry?.guarded ?? {})) {
      for (const value of valuesAt(config, path)) if (!admitted(value, known) && !related(value, known, config)) told(path, value, known.values);
    }
    for (const [path, words] of Object.entries(entry?.words ?? {})) {
      for (const word of textsIn(valuesAt(config, path))) if (!words.includes(word) && !(entry.unrun?.[path] ?? []).includes(word)) told(path, word, words);
    }
  };

  // the fields of a config under the names that the spec reads
  const read = (model, config) => {
    if (object(config)) checkClass(model, config);
    const found = asRead(model, config);
    checkCensus(model, found);
    return found;
  };
  return { read };
})();
