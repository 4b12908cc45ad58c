"use strict";
// The table of people (search, sorting, pages) and the view of one person. All texts are set as text, never as markup.
(() => {
  const PAGE = 25;
  const ON_PAPER = 200;
  const SHORT = 13; // collapsed tables of up to this many rows are expanded for printing
  const NAMED = 3;
  const DIRECTION = "Direction";
  const DOES = "What it does";
  const SVG = document.querySelector("svg").namespaceURI;
  const $ = (/** @type {string} */ id) => document.getElementById(id);
  const data = JSON.parse($("people-data").textContent);
  const table = $("people-table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const stride = data.steps ? 5 : 3;
  const count = data.ids.length;
  const compare = new Intl.Collator("en", { numeric: true }).compare;

  let order = [...data.ids.keys()];
  let shown = order;
  let page = 0;
  let sortKey = "";
  let isUp = true;
  let open = -1;

  /** An element with attributes and children; a string becomes text. */
  function make(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function draw(tag, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const isolated = (text) => make("bdi", {}, text);
  const small = (...parts) => make("small", {}, ...parts);
  const minus = (text) => text.replace("-", "−");

  const raised = (n) => [...String(n)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

  function power(x) {
    const [digits, exponent] = x.toExponential(1).split("e");
    return `${minus(digits.replace(".0", ""))} × 10${raised(Number(exponent))}`;
  }

  /** Thousands separators; no minus sign if the number was rounded to 0. */
  function grouped(text) {
    const [whole, rest] = text.split(".");
    const shown = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
    return minus(/[1-9]/.test(shown) ? shown : shown.replace("-", ""));
  }

  /** A fixed number of decimals, formatted as in the tables of the page. */
  function fixed(x, decimals) {
    if (x === null) return "–";
    if (Math.abs(x) >= 1e15) return power(x);
    return grouped(x.toFixed(decimals));
  }

  function brief(x, digits = 4) {
    if (x === null) return "–";
    if (x === 0) return "0";
    if (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e15) return power(x);
    const text = grouped(x.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x))))));
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  function percent(share) {
    if (share === null || share < 0) return "–";
    if (share === 0 || share >= 1) return share ? "100%" : "0%";
    if (share < 0.001) return "<0.1%";
    return share > 0.999 ? ">99.9%" : `${fixed(100 * share, 1)}%`;
  }

  /** [before, after, change], with more decimals if the feature's usual number would hide the change. */
  function wording(change) {
    const own = data.features[change.feature][2];
    const needed = Math.max(own, -Math.floor(Math.log10(Math.abs(change.by))));
    const sign = change.by > 0 ? "+" : "";
    if (needed > own + 3) return [fixed(change.before, own), fixed(change.after, own), sign + power(change.by)];
    return [fixed(change.before, needed), fixed(change.after, needed), sign + fixed(change.by, needed)];
  }

  function changesOf(person) {
    const flat = data.changes[person];
    const found = [];
    for (let i = 0; i < flat.length; i += stride) {
      const [step, time] = data.steps ? [flat[i + 1], flat[i + 2]] : [null, null];
      const [before, by] = [flat[i + stride - 2], flat[i + stride - 1]];
      found.push({ feature: flat[i], step, time, before, by, after: before + by });
    }
    return found;
  }

  /** Values that follow from the changes: what changesOf gives, without times. */
  function followsOf(person) {
    const flat = data.follows ? data.follows[person] : [];
    const width = data.steps ? 4 : 3;
    const found = [];
    for (let i = 0; i < flat.length; i += width) {
      const [before, after] = [flat[i + width - 2], flat[i + width - 1]];
      found.push({ feature: flat[i], step: data.steps ? flat[i + 1] : null, before, after, by: after - before });
    }
    return found;
  }

  function place(change) {
    if (!data.steps) return "";
    return [`step ${change.step}`, ...(data.times ? [`time ${brief(change.time, 6)}`] : [])].join(", ");
  }

  function sentence(change) {
    const [name, unit, , , action] = data.features[change.feature];
    if (action !== null) return make("li", {}, isolated(name));
    const [before, after, by] = wording(change);
    const where = data.steps ? `, ${place(change)}` : "";
    const amount = make("i", {}, `(${by}`, ...(unit ? [" ", isolated(unit)] : []), ")");
    return make("li", {}, isolated(name), `${where} ${before} → ${after} `, amount);
  }

  function following(value) {
    const [before, after] = wording(value);
    const where = data.steps ? `, step ${value.step}` : "";
    return make("li", { class: "soft" }, "follows: ", isolated(data.features[value.feature][0]), `${where} ${before} → ${after}`);
  }

  // The table

  const CELLS = {
    before: (p) => [fixed(data.before[p], 3)],
    after: (p) => [fixed(data.after[p], 3)],
    ahead: (p) => [brief(data.ahead[p], 2)],
    cost: (p) => [percent(data.cost[p]), ...(data.cost[p] < 0 ? [] : [small(isolated(data.budgets[data.of[p]]))])],
    worth: (p) => [brief(data.worth[p])],
  };

  function row(person) {
    const made = make("tr");
    for (const head of heads) {
      const key = head.dataset.key;
      if (key === "ids") {
        const button = make("button", { type: "button", class: "link", "aria-haspopup": "dialog" }, isolated(data.ids[person]));
        button.addEventListener("click", () => show(person));
        made.append(make("th", { scope: "row" }, button));
      } else if (key) {
        made.append(make("td", { class: head.className }, ...CELLS[key](person)));
      } else {
        const changes = changesOf(person);
        const rest = changes.length - NAMED + data.more[person];
        const list = make("ul", { class: "changes" }, ...changes.slice(0, NAMED).map(sentence));
        if (rest > 0) list.append(make("li", { class: "soft" }, `and ${rest.toLocaleString("en")} more`));
        list.append(...followsOf(person).slice(0, NAMED).map(following));
        made.append(make("td", { class: "what" }, list));
      }
    }
    return made;
  }

  function fill(people) {
    body.replaceChildren(...people.map(row));
  }

  function list() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    page = Math.min(page, pages - 1);
    fill(shown.slice(page * PAGE, (page + 1) * PAGE));
    $("people-page").textContent = `Page ${(page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
    $("people-back").disabled = page === 0;
    $("people-next").disabled = page === pages - 1;
    $("people-pager").hidden = pages === 1;
  }

  function search() {
    const wanted = $("people-search").value.trim().toLowerCase();
    const features = new Set(data.features.flatMap(([name], i) => (name.toLowerCase().includes(wanted) ? [i] : [])));
    const follows = (p) => followsOf(p).some((value) => features.has(value.feature));
    const fits = (p) => data.ids[p].toLowerCase().includes(wanted) || data.changes[p].some((v, i) => i % stride === 0 && features.has(v)) || follows(p);
    shown = wanted ? order.filter(fits) : order;
    page = 0;
    const people = count === 1 ? "person" : "people";
    $("people-found").textContent = wanted ? `${shown.length.toLocaleString("en")} of ${count.toLocaleString("en")} ${people} found` : `${count.toLocaleString("en")} ${people}`;
    list();
  }

  function sort(key) {
    isUp = sortKey === key ? !isUp : true;
    sortKey = key;
    const values = data[key];
    const by = key === "ids" ? (a, b) => compare(values[a], values[b]) : (a, b) => (values[a] ?? -Infinity) - (values[b] ?? -Infinity);
    order = [...data.ids.keys()].sort((a, b) => (isUp ? by(a, b) : by(b, a)) || a - b);
    for (const head of heads) {
      if (head.dataset.key) head.setAttribute("aria-sort", head.dataset.key !== key ? "none" : isUp ? "ascending" : "descending");
    }
    search();
  }

  // One person

  function show(person) {
    open = person;
    const at = shown.indexOf(person);
    $("person-name").replaceChildren(isolated(data.ids[person]));
    $("person-back").disabled = at <= 0;
    $("person-next").disabled = at === shown.length - 1;
    $("person-body").replaceChildren(...summary(person), ...(data.steps ? overTime(person) : asBars(person)), ...implied(person), ...draws(person));
    if (!$("person").open) $("person").showModal();
    $("person").scrollTop = 0;
    $("person-name").focus();
  }

  function summary(person) {
    const required = data.asked === null ? "" : ` (${brief(data.asked)} required)`;
    const line = `Confidence: ${fixed(data.before[person], 3)} → ${fixed(data.after[person], 3)}${required}.`;
    return [make("p", {}, data.worth ? `${line} Worth ${brief(data.worth[person])}.` : line)];
  }

  function headed(caption, names, rows) {
    const look = (i) => (i === 0 ? "" : names[i] === DIRECTION ? "way" : names[i] === DOES ? "" : "n");
    const top = make("tr", {}, ...names.map((name, i) => make("th", { scope: "col", class: look(i) }, name)));
    return make("table", {}, make("caption", {}, caption), make("thead", {}, top), make("tbody", {}, ...rows));
  }

  /** A bar to the left for a decrease, to the right for an increase; full length is the largest change of the feature. */
  function swing(change) {
    const size = 50 * Math.min(1, Math.abs(change.by) / (data.features[change.feature][3] || 1));
    const bar = draw("rect", { class: change.by < 0 ? "lowered" : "raised", x: `${change.by < 0 ? 50 - size : 50}%`, y: "20%", width: `${Math.max(size, 0.8)}%`, height: "60%" });
    return draw("svg", { class: "swing", "aria-hidden": "true" }, draw("line", { class: "zero", x1: "50%", x2: "50%", y1: "0", y2: "100%" }), bar);
  }

  function asBars(person) {
    const changes = changesOf(person);
    const amounts = changes.some((change) => data.features[change.feature][4] === null);
    const rows = changes.map((change) => {
      const [name, unit, , , action] = data.features[change.feature];
      if (action !== null) return make("tr", {}, make("th", { scope: "row" }, isolated(name)), make("td", amounts ? { colspan: 4 } : {}, action));
      const [before, after, by] = wording(change);
      const cells = [before, after, by].map((text) => make("td", { class: "n" }, text));
      return make("tr", {}, make("th", { scope: "row" }, isolated(name), ...(unit ? [small(isolated(unit))] : [])), make("td", { class: "way" }, swing(change)), ...cells);
    });
    if (!amounts && rows.length) return [headed("What is done", ["Action", DOES], rows), ...rest(person)];
    return [headed("What changes. A full-length bar is the largest change of that feature among all people picked.", ["Feature", DIRECTION, "Before", "After", "Change"], rows), ...rest(person)];
  }

  function implied(person) {
    const rows = followsOf(person).map((value) => {
      const [name, unit] = data.features[value.feature];
      const beside = data.steps ? `step ${value.step}` : unit;
      const cells = wording(value).map((text) => make("td", { class: "n" }, text));
      return make("tr", {}, make("th", { scope: "row" }, isolated(name), ...(beside ? [small(isolated(beside))] : [])), ...cells);
    });
    return rows.length ? [headed("What follows from these changes", ["Feature", "Before", "After", "Change"], rows)] : [];
  }

  function rest(person) {
    const more = data.more[person];
    return more ? [make("p", { class: "soft" }, `${more.toLocaleString("en")} more ${more === 1 ? "change is" : "changes are"} in plan.parquet.`)] : [];
  }

  function overTime(person) {
    const byFeature = new Map();
    for (const change of changesOf(person)) byFeature.set(change.feature, [...(byFeature.get(change.feature) ?? []), change]);
    const when = (change) => (data.times ? change.time : change.step);
    const all = changesOf(person).map(when);
    const ends = [Math.min(...all), Math.max(...all)];
    const charts = [...byFeature].map(([feature, changes]) => {
      changes.sort((a, b) => when(a) - when(b));
      return make("figure", {}, curve(feature, changes, when, ends));
    });
    const rows = [...byFeature].flatMap(([feature, changes]) =>
      changes.map((change) => make("tr", {}, make("th", { scope: "row" }, isolated(data.features[feature][0]), small(place(change))), ...wording(change).map((text) => make("td", { class: "n" }, text)))),
    );
    const numbers = make("details", { class: "numbers" }, make("summary", {}, "The same in numbers"), headed("What changes", ["Feature", "Before", "After", "Change"], rows));
    const axis = data.times ? "time" : "step";
    const span = ends[0] === ends[1] ? `at ${axis} ${brief(ends[0])}` : `over ${axis} ${brief(ends[0])} to ${brief(ends[1])}`;
    const legend = `Measurements that change, ${span}. Hollow points: before. Filled points: after.`;
    return [make("p", { class: "soft" }, legend), make("div", { class: "multiples" }, ...charts), numbers, ...rest(person)];
  }

  function curve(feature, changes, when, ends) {
    const [name, unit] = data.features[feature];
    const values = changes.flatMap((c) => [c.before, c.after]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (c) => 50 + (182 * (when(c) - ends[0])) / (ends[1] - ends[0] || 1);
    const y = (v) => 78 - (50 * (v - low)) / (high - low || 1);
    const path = (of) => changes.map((c, i) => `${i ? "L" : "M"}${x(c).toFixed(1)} ${y(of(c)).toFixed(1)}`).join("");
    const decimals = data.features[feature][2];
    const label = (v) => draw("text", { class: "end", x: "42", y: String(y(v) + 4) }, fixed(v, decimals));
    const first = changes[0];
    const title = `${name}${unit ? `, ${unit}` : ""}`;
    const told = `${changes.length === 1 ? "one change," : `${changes.length} changes, the first`} from ${wording(first)[0]} to ${wording(first)[1]}`;
    const dots = changes.flatMap((c) => [
      draw("line", { class: "move", x1: x(c), x2: x(c), y1: y(c.before), y2: y(c.after) }),
      draw("circle", { class: "was", cx: x(c), cy: y(c.before), r: 3.5 }),
      draw("circle", { class: "is", cx: x(c), cy: y(c.after), r: 3.5 }),
    ]);
    return draw(
      "svg",
      { viewBox: "0 0 240 92", class: "multiple", role: "img" },
      draw("title", {}, `${title}: ${told}`),
      draw("text", { class: "named", x: "0", y: "13" }, title),
      label(high),
      ...(high > low ? [label(low)] : []),
      draw("path", { class: "was", d: path((c) => c.before) }),
      draw("path", { class: "is", d: path((c) => c.after) }),
      ...dots,
    );
  }

  function draws(person) {
    if (!data.drawn) return [];
    const rows = data.budgets.flatMap((name, r) => {
      const share = data.drawn[person][r];
      return share === 0 ? [] : [make("tr", {}, make("th", { scope: "row" }, isolated(name)), make("td", { class: "n" }, percent(share)))];
    });
    return [headed("Share of each budget that this person uses", ["Budget", "Share"], rows)];
  }

  function step(by) {
    const next = shown[shown.indexOf(open) + by];
    if (next !== undefined) show(next);
  }

  const sorters = [];
  for (const head of heads) {
    const key = head.dataset.key;
    if (!key) continue;
    const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
    button.addEventListener("click", () => sort(key));
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    sorters.push([head, button]);
  }
  $("people-search").addEventListener("input", search);
  $("people-back").addEventListener("click", () => ((page -= 1), list()));
  $("people-next").addEventListener("click", () => ((page += 1), list()));
  $("person-back").addEventListener("click", () => step(-1));
  $("person-next").addEventListener("click", () => step(1));
  $("person-close").addEventListener("click", () => $("person").close());
  $("person").addEventListener("click", (event) => event.target === $("person") && $("person").close());
  addEventListener("beforeprint", () => {
    // Chromium repeats a table head on every printed page, but not the buttons in it.
    const listed = shown.slice(0, ON_PAPER);
    fill(listed);
    table.caption.querySelector(".unscripted").textContent = `${grouped(String(listed.length))} of ${grouped(String(count))}. `;
    for (const [head, button] of sorters) head.textContent = button.textContent;
    for (const closed of document.querySelectorAll("details:not([open])")) {
      if (closed.querySelectorAll("tr").length <= SHORT) closed.open = closed.dataset.paper = "open";
    }
  });
  addEventListener("afterprint", () => {
    list();
    for (const [head, button] of sorters) head.replaceChildren(button);
    for (const opened of document.querySelectorAll("details[data-paper]")) {
      opened.open = false;
      delete opened.dataset.paper;
    }
  });
  document.documentElement.classList.add("scripted");
  $("people-tools").hidden = false;
  search();
})();
