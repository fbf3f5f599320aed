// Put the page together: unpack the document, draw every section, follow the address, keys, theme and news.

const VIEWS = {
  overview: viewOverview,
  answer: (told) => [answerBox(told)],
  phases: viewPhases,
  health: viewHealth,
  conflict: viewConflict,
  runs: viewRuns,
  verdict: viewVerdict,
  summary: viewSummary,
  curves: viewCurves,
  passk: viewPassk,
  signal: viewSignal,
  errors: viewErrors,
  cost: viewCost,
  hacks: viewHacks,
  paired: viewPaired,
  matrix: viewMatrix,
  forgetting: viewForgetting,
  pareto: viewPareto,
  rollouts: viewRollouts,
  credit: viewCredit,
  table: viewTable,
  grid: viewGrid,
  events: viewEvents,
  facts: viewFacts,
  chain: viewChain,
  decisions: viewDecisions,
  pairs: viewPairs,
};
const app = {
  doc: null,
  sections: {},
  keys: {},
  routes: {},
  popover: null,
  tip: null,
  answers: null,
  live: null,
  memory: {},
};

function route(name, params) {
  const told = new URLSearchParams(
    Object.entries(params || {}).filter(([, value]) => value !== undefined && value !== ""),
  );
  return `#${name}${[...told].length ? `?${told}` : ""}`;
}

function decoded(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const signs = atob(text),
    bytes = new Uint8Array(signs.length);
  for (let i = 0; i < signs.length; i += 1) bytes[i] = signs.charCodeAt(i);
  return bytes;
}

async function unpacked(id) {
  const bytes = decoded(document.getElementById(id).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

async function load() {
  const doc = JSON.parse(document.getElementById("document").textContent);
  await Promise.all(
    doc.sections.map(async (section) => {
      if (section.packed) section.data = await unpacked(section.packed);
    }),
  );
  return doc;
}

function pageHead(doc) {
  const theme = button("◐", turnTheme, { "aria-label": "Change between light and dark" });
  return el(
    "header.top",
    el("div.names", el("p.kind", doc.kind), el("h1", doc.title), doc.subtitle ? el("p.subtitle", doc.subtitle) : null),
    el(
      "div.state",
      doc.status ? h("span", { className: `status ${doc.tone || doc.status.split(" ")[0]}` }, doc.status) : null,
      el("span.made", `read ${doc.made.replace("T", " ").replace("Z", " UTC")}`),
      h("span", { id: "live", className: "made" }),
      theme,
    ),
  );
}

function drawHead() {
  document.querySelector("header.top").replaceWith(pageHead(app.doc));
}

function missingBox(missing) {
  if (!missing.length) return null;
  return h(
    "details",
    { className: "missing", open: missing.length <= 3 },
    el("summary", `${missing.length} ${missing.length === 1 ? "thing is" : "things are"} missing or left out`),
    el("ul", missing.map((one) => el("li", el("code", one.what), `: ${one.why}`))),
  );
}

function drawSection(section) {
  const node = h(
    "section",
    { id: section.id, className: `section view-${section.view}`, "aria-labelledby": `title-${section.id}` },
    el(
      "div.head",
      h("h2", { id: `title-${section.id}` }, section.title),
      section.source ? el("span.from", sourced(section.source, { file: section.source })) : null,
    ),
    section.note ? el("p.note", section.note) : null,
  );
  try {
    const view = VIEWS[section.view] || (() => el("p.empty", `This page has no view “${section.view}”.`));
    fill(node, {}, [view(section.data, section)]);
  } catch (error) {
    node.append(
      el("p.callout.alarm", `This part could not be drawn (${error.message}); the numbers are in ${section.source}.`),
    );
    app.failed = (app.failed || []).concat([`${section.id}: ${error.stack}`]);
  }
  return node;
}

function draw(doc) {
  app.doc = doc;
  app.sections = Object.fromEntries(doc.sections.map((section) => [section.id, section]));
  app.keys = {};
  app.routes = {};
  app.answers = null;
  app.failed = [];
  document.title = `${doc.title} · rlvr`;
  // Answers first: other parts link into them.
  const order = [...doc.sections].sort((a, b) => (b.view === "rollouts") - (a.view === "rollouts"));
  const drawn = new Map(order.map((section) => [section.id, drawSection(section)]));
  const nav = h(
    "nav",
    { "aria-label": "Parts of this page" },
    doc.sections.map((section) => h("a", { href: `#${section.id}` }, section.title)),
  );
  const body = h(
    "main",
    { id: "main", tabindex: "-1" },
    missingBox(doc.missing),
    doc.sections.length
      ? doc.sections.map((section) => drawn.get(section.id))
      : el("p.empty", "Nothing is recorded here yet."),
  );
  document
    .getElementById("page")
    .replaceChildren(
      h("a", { className: "skip", href: "#main" }, "Skip to the content"),
      pageHead(doc),
      el("div.columns", nav, body),
      el("footer", `Made by rlvr from ${doc.path}. Dotted numbers tell where they come from.`),
    );
  spy(nav, body);
}

function spy(nav, body) {
  const links = new Map([...nav.children].map((link) => [link.hash.slice(1), link]));
  app.spy?.disconnect();
  app.spy = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-10% 0px -75% 0px" },
  );
  for (const section of body.querySelectorAll("section")) app.spy.observe(section);
}

function go() {
  const [name, query] = location.hash.slice(1).split("?");
  if (!name || !app.sections[name]) return;
  if (query !== undefined) app.routes[name]?.(Object.fromEntries(new URLSearchParams(query)));
  document.getElementById(name)?.scrollIntoView({ block: "start" });
}

function pressed(event) {
  if (event.key === "Escape") {
    if (closePopover()) return;
    if (document.activeElement?.matches("input, select")) document.activeElement.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  for (const act of Object.values(app.keys)) if (act(event)) return;
}

function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  try {
    if (name) localStorage.setItem("rlvr-theme", name);
  } catch {
    /* a file opened from disk may have no storage */
  }
}

function turnTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}

async function start() {
  try {
    setTheme(localStorage.getItem("rlvr-theme"));
  } catch {
    /* see setTheme */
  }
  app.tip = h("div", { className: "tip", hidden: true, role: "presentation" });
  document.body.append(app.tip);
  document.addEventListener("keydown", pressed);
  document.addEventListener(
    "click",
    (event) => {
      if (app.popover && !app.popover.box.contains(event.target)) closePopover();
    },
    true,
  );
  addEventListener("hashchange", go);
  const live = document.getElementById("news");
  if (live) app.live = JSON.parse(live.textContent);
  const doc = await load();
  app.unpacked_ms = performance.now();
  draw(doc);
  app.drawn_ms = performance.now();
  go();
  if (app.live) listen(app.live);
  // Figures are drawn when their width is known, a frame later.
  requestAnimationFrame(() =>
    setTimeout(() => {
      document.documentElement.dataset.ready = String(Math.round(performance.now()));
    }),
  );
}

// What tests and a curious reader may look at.
globalThis.rlvr = app;
start().catch((error) => {
  document
    .getElementById("page")
    .replaceChildren(el("p.callout.alarm", `The page could not be drawn: ${error.message}`));
  throw error;
});
