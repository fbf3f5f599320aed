"use strict";
// Everything that comes from a run is put in as text (textContent) or as a number: nothing of it is ever read as HTML.
const COLUMNS = [
  ["", null], ["name", (r) => r.name], ["status", (r) => r.status], ["phase", (r) => r.phase || ""],
  ["step", (r) => -(r.step || 0)], ["test", (r) => (r.test ? -r.test.accuracy : 1)],
  ["dev", (r) => (devOf(r) ? -r.metric.accuracy : 1)], ["curve", null],
  ["tokens", (r) => -(r.tokens || 0)], ["age", (r) => -(Date.parse(r.started) || 0)], ["tags", (r) => r.tags.join(" ")],
];
const SIGNS = { running: "▶", finished: "✓", stale: "…", killed: "✗", failed: "✗", damaged: "✗" };
const NUMBERS = ["step", "tokens", "age"];
const EVERY_MS = 5000;
const state = { rows: [], ticked: new Set(), tags: new Set(), sort: "age", up: true, top: 1 };
const $ = (id) => document.getElementById(id);

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}

function short(number, exact) {
  if (number === null || number === undefined) return "";
  const units = ["", "k", "M", "G", "T"];
  let i = 0;
  while (number >= 1000 && i < units.length - 1) { number /= 1000; i += 1; }
  return (exact ? "" : "≈") + number.toFixed(i === 0 || number >= 100 ? 0 : 1) + units[i];
}

function age(started) {
  const seconds = (Date.now() - Date.parse(started)) / 1000;
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 100) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86400)} d`;
}

function percent(metric) {
  if (!metric) return "";
  const of = (value) => (100 * value).toFixed(1);
  const bounds = metric.low === null || metric.high === null ? "" : ` [${of(metric.low)}, ${of(metric.high)}]`;
  return of(metric.accuracy) + bounds;
}

// An evaluation on test problems has its one number in the column of test results.
function devOf(run) {
  return run.kind === "evaluation" && run.test ? null : run.metric;
}

function curve(values, high) {
  const cell = element("td", "", { "data-label": "curve" });
  if (values.length < 2) return cell;
  const [width, height] = [90, 24];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const x = (i) => 3 + (i * (width - 6)) / (values.length - 1);
  const y = (v) => height - 3 - (high > 0 ? (v * (height - 6)) / high : 0);
  const label = `accepted@1 on dev problems from ${(100 * values[0]).toFixed(1)} to ${(100 * values.at(-1)).toFixed(1)} per cent`;
  for (const [key, value] of Object.entries({ width, height, role: "img", "aria-label": label })) svg.setAttribute(key, value);
  const line = document.createElementNS(svg.namespaceURI, "polyline");
  line.setAttribute("class", "line");
  line.setAttribute("points", values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" "));
  const dot = document.createElementNS(svg.namespaceURI, "circle");
  for (const [key, value] of Object.entries({ class: "dot", cx: x(values.length - 1), cy: y(values.at(-1)), r: 2.5 })) dot.setAttribute(key, value);
  const rail = document.createElementNS(svg.namespaceURI, "line");
  for (const [key, value] of Object.entries({ class: "rail", x1: 3, x2: width - 3, y1: height - 2.5, y2: height - 2.5 })) rail.setAttribute(key, value);
  svg.append(rail, line, dot);
  cell.append(svg);
  return cell;
}

function rowOf(run) {
  const row = element("tr", undefined, { "data-run": run.name });
  const box = element("input", undefined, { type: "checkbox", "aria-label": `tick ${run.name}` });
  box.checked = state.ticked.has(run.name);
  row.classList.toggle("ticked", box.checked);
  box.addEventListener("change", () => {
    if (box.checked) state.ticked.add(run.name); else state.ticked.delete(run.name);
    row.classList.toggle("ticked", box.checked);
    showCompare();
  });
  const tick = element("td");
  tick.append(box);
  const name = element("td", undefined, { class: "name" });
  name.append(element("a", run.name, { href: "/run/" + run.name.split("/").map(encodeURIComponent).join("/") }));
  if (run.about || run.note) name.append(element("small", run.note || run.about));
  const status = element("td", undefined, { "data-label": "status" });
  const known = Object.hasOwn(SIGNS, run.status) ? run.status : "other";
  status.append(element("span", `${SIGNS[run.status] || "•"} ${run.status}`, { class: `status ${known}` }));
  const steps = run.step === null ? "" : run.steps ? `${run.step}/${run.steps}` : `${run.step}`;
  const tags = element("td", undefined, { class: "tags", "data-label": "tags" });
  for (const tag of run.tags) tags.append(element("span", tag));
  const plain = (text, label, number) => element("td", text, { "data-label": label, class: number ? "number" : "" });
  row.append(tick, name, status, plain(run.phase || (run.kind === "run" ? "" : run.kind), "phase"), plain(steps, "step", true),
    plain(percent(run.test), "test"), plain(percent(devOf(run)), "dev"), curve(run.curve, state.top), plain(short(run.tokens, run.tokens_exact), "tokens", true),
    plain(age(run.started), "age", true), tags);
  return row;
}

function chosen() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [status, kind] = [$("status").value, $("kind").value];
  return state.rows.filter((run) => {
    const text = [run.name, run.kind, run.status, run.phase, run.about, ...run.tags].join(" ").toLowerCase();
    return words.every((word) => text.includes(word)) && (!status || run.status === status)
      && (!kind || run.kind === kind) && [...state.tags].every((tag) => run.tags.includes(tag));
  });
}

function show() {
  const of = COLUMNS.find(([name]) => name === state.sort)[1];
  const compare = (a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : a.name < b.name ? -1 : 1);
  const rows = chosen().sort((a, b) => (state.up ? compare(a, b) : compare(b, a)));
  const focused = document.activeElement && document.activeElement.closest("[data-run]");
  const place = focused && [focused.dataset.run, document.activeElement.tagName];
  document.querySelector("#runs tbody").replaceChildren(...rows.map(rowOf));
  if (place) {
    const again = [...document.querySelectorAll("[data-run]")].find((row) => row.dataset.run === place[0]);
    if (again) again.querySelector(place[1]).focus();
  }
  $("count").textContent = `${rows.length} of ${state.rows.length}`;
  $("runs").hidden = rows.length === 0;
  $("empty").hidden = rows.length > 0;
  $("empty").textContent = state.rows.length ? "No run fits the search." : "No runs here yet: `rlvr train RECIPE` makes one.";
  showCompare();
}

function showCompare() {
  const ticked = state.rows.filter((run) => state.ticked.has(run.name));
  const kinds = new Set(ticked.map((run) => run.kind));
  const possible = ticked.length >= 2 && kinds.size === 1;
  $("compare").disabled = !possible;
  $("compare").textContent = possible ? `Compare ${ticked.length}` : kinds.size > 1 ? "Compare: tick two of a kind" : "Compare: tick two";
}

function headings() {
  document.querySelector("#runs thead tr").replaceChildren(...COLUMNS.map(([name, of]) => {
    const head = element("th", of ? undefined : name, { scope: "col", class: NUMBERS.includes(name) ? "number" : "" });
    if (of) {
      const button = element("button", name + (state.sort === name ? (state.up ? " ▾" : " ▴") : ""), { type: "button" });
      button.addEventListener("click", () => {
        state.up = state.sort === name ? !state.up : true;
        state.sort = name;
        headings();
        show();
        [...document.querySelectorAll("th button")].find((b) => b.textContent.startsWith(name)).focus();
      });
      head.append(button);
      if (state.sort === name) head.setAttribute("aria-sort", state.up ? "ascending" : "descending");
    }
    return head;
  }));
}

function choices(id, values) {
  const before = $(id).value;
  const options = [...new Set(values)].sort().map((value) => element("option", value, { value }));
  $(id).replaceChildren(element("option", "all", { value: "" }), ...options);
  $(id).value = options.some((option) => option.value === before) ? before : "";
}

function showTags() {
  const all = [...new Set(state.rows.flatMap((run) => run.tags))].sort();
  $("tags").replaceChildren(...all.map((tag) => {
    const button = element("button", tag, { type: "button", "aria-pressed": String(state.tags.has(tag)) });
    button.addEventListener("click", () => {
      if (state.tags.has(tag)) state.tags.delete(tag); else state.tags.add(tag);
      button.setAttribute("aria-pressed", String(state.tags.has(tag)));
      show();
    });
    return button;
  }));
}

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/runs.json", { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const text = await answer.text();
    if (text === refresh.last) return;
    refresh.last = text;
    state.rows = JSON.parse(text);
    state.top = Math.max(0, ...state.rows.flatMap((run) => run.curve));
    choices("status", state.rows.map((run) => run.status));
    choices("kind", state.rows.map((run) => run.kind));
    showTags();
    show();
  } catch (error) {
    $("count").textContent = `no news: ${error.message}`;
  }
}

$("tools").addEventListener("submit", (event) => {
  event.preventDefault();
  const names = state.rows.filter((run) => state.ticked.has(run.name)).map((run) => run.name).sort();
  if (!$("compare").disabled) location.assign("/compare?" + names.map((name) => `run=${encodeURIComponent(name)}`).join("&"));
});
for (const id of ["search", "status", "kind"]) $(id).addEventListener("input", show);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== $("search")) { event.preventDefault(); $("search").focus(); }
});
document.addEventListener("visibilitychange", refresh);
headings();
refresh();
setInterval(refresh, EVERY_MS);
