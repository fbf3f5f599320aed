// Elements, words and numbers. Text only ever enters the page as text nodes: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === "style") for (const [key, setting] of Object.entries(value)) node.style.setProperty(key, setting);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name === "className" ? "class" : name, value === true ? "" : visible(String(value)));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : visible(String(child)));
  }
  return node;
}

const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
// An element with classes and no other properties: el("p.note", "words").
function el(name, ...children) {
  const [tag, ...classes] = name.split(".");
  return h(tag, { className: classes.join(" ") || null }, children);
}
const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

// Other children in the place of those that a node has; what is null is left out.
function refill(node, ...children) {
  node.replaceChildren();
  fill(node, {}, children);
}

const button = (words, act, properties) =>
  h("button", { type: "button", className: "quiet", ...properties, on: { click: act } }, words);

// A box to tick; `act` is told whether it is ticked.
function tickBox(checked, data, act) {
  const box = h("input", { type: "checkbox", checked, data, on: { change: () => act(box.checked) } });
  return box;
}

// A list to choose from, of [value, words]; `act` is told the value that was chosen.
function selection(properties, options, chosen, act) {
  const select = h(
    "select",
    { ...properties, on: { change: () => act(select.value) } },
    options.map(([value, words]) => h("option", { value, selected: value === chosen }, words)),
  );
  return select;
}

const swatch = (paint) => h("i", { className: "swatch", style: { background: paint } });
const factList = (facts) =>
  el("dl.facts.wide", facts.map(([name, value]) => el("div", el("dt", name), el("dd", value))));

// Facts in one line; those that are not known are left out.
const dotted = (...facts) => facts.filter(Boolean).join(" · ");

// Control characters and signs that turn the direction of writing are shown, not obeyed.
const INVISIBLE =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const NAMES = {
  "\u202e": "RLO",
  "\u202d": "LRO",
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u200b": "ZWSP",
};

function visible(text) {
  return text.replace(INVISIBLE, (sign) => {
    const code = sign.charCodeAt(0);
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return `⟨${NAMES[sign] || `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}⟩`;
  });
}

const known = (value) => typeof value === "number" && Number.isFinite(value);

function number(value) {
  if (!known(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e9)
    return String(value)
      .replace(/\B(?=(\d{3})+$)/g, "\u2009")
      .replace("-", "−");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

const percent = (value, digits = 1) => (known(value) ? `${(100 * value).toFixed(digits).replace("-", "−")} %` : "–");
const signed = (value, digits = 2) =>
  known(value) ? (value > 0 ? "+" : "") + value.toFixed(digits).replace("-", "−") : "–";

const chance = (p) => (!known(p) ? "–" : p < 0.0001 ? "< 0.0001" : String(Number(p.toFixed(4))));

function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 90) return `${number(Number(seconds.toPrecision(2)))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

// A number that tells where it comes from: file, line, step and key, and the command that shows it.
function sourced(text, from, extra) {
  if (!from || !from.file) return h("span", extra, text);
  const tell = (event) => {
    event.stopPropagation();
    tellSource(from, event.currentTarget);
  };
  const told = { className: "sourced", title: describe(from), ...extra, "aria-label": `${text}, source` };
  return button(text, tell, told);
}

function describe(from) {
  const place = `${from.file}${from.line ? `:${from.line}` : ""}`;
  return dotted(place, known(from.step) ? `step ${from.step}` : "", from.key);
}

function tellSource(from, near) {
  const path = `${app.doc.path}/${from.file}`.replaceAll("//", "/");
  const quoted = `'${path.replaceAll("'", "'\\''")}'`; // it may be copied into a shell
  const shell = from.line ? `sed -n ${Number(from.line)}p ${quoted}` : `less ${quoted}`;
  const rows = [
    ["file", from.file],
    ["line", from.line],
    ["step", from.step],
    ["key", from.key],
  ].filter((row) => row[1] !== undefined && row[1] !== null);
  const whole = address(from) ? h("a", { href: address(from) }, "open the file") : null;
  popover(
    near,
    el("dl.source", rows.map(([name, value]) => [el("dt", name), el("dd", String(value))])),
    app.doc.path.includes(" ") ? null : el("code.command", shell),
    whole,
  );
}

// Beside a page on disk lies its record; a live page's server shows it.
function address(from) {
  if (app.live && app.live.files)
    return `${app.live.files}?path=${encodeURIComponent(from.file)}${from.line ? `&line=${from.line}` : ""}`;
  return app.doc.base ? encodeURI(`${app.doc.base}/${from.file}`) : "";
}

function popover(near, ...content) {
  closePopover();
  const box = h(
    "div",
    { className: "popover", role: "dialog", "aria-label": "Where this comes from", tabindex: "-1" },
    content,
  );
  document.body.append(box);
  const at = near.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 8));
  const below = at.bottom + 6 + box.offsetHeight < innerHeight;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(below ? at.bottom + 6 : Math.max(8, at.top - box.offsetHeight - 6)) + scrollY}px`;
  box.focus({ preventScroll: true });
  app.popover = { box, near };
}

function closePopover() {
  if (!app.popover) return false;
  const { box, near } = app.popover;
  box.remove();
  app.popover = null;
  if (near.focus && document.body.contains(near)) near.focus({ preventScroll: true });
  return true;
}

const FIGURES = /^[^a-z]{1,30}( points)?$/;

const columnHead = (name) => h("th", { scope: "col" }, name);
const rowHead = (name) => h("th", { scope: "row" }, name);

// A table of cells that are elements already; `name` is "table" with its classes.
const grid = (name, head, rows) =>
  el("div.scroll", el(name, el("thead", el("tr", head)), el("tbody", rows.map((cells) => el("tr", cells)))));

function table(head, rows) {
  const cell = (one) => h("td", FIGURES.test(one) ? { className: "whole" } : {}, one);
  return grid("table", head.map(columnHead), rows.map(([first, ...rest]) => [rowHead(first), rest.map(cell)]));
}

// What colours mean, above and below zero; `more` follows.
const signScale = (above, ...more) =>
  el("p.scale", swatch("var(--neg)"), "harms", swatch("var(--pos)"), above, more);
const verdictMark = (verdict, words) =>
  h("span", { className: `verdict ${verdict === "not shown" ? "unclear" : verdict}` }, words);

const range = (low, high, shown = percent) => (known(low) && known(high) ? `${shown(low)} … ${shown(high)}` : "");
const unit = (plain) => (plain ? number : percent);
