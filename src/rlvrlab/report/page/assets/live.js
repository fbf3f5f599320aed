// A page that keeps itself up to date: new lines are added to what is drawn, the whole is fetched again when the server
// says that it is worth it.

const REDRAW_MS = 1000;

function listen(live) {
  const news = new EventSource(live.events);
  const tell = (text) => {
    document.getElementById("live").textContent = text;
  };
  const on = (kind, act) => news.addEventListener(kind, (event) => act(event.data ? JSON.parse(event.data) : {}));
  let asking = false,
    changedMeanwhile = false; // since the document was asked for: what comes may not know of it
  async function renew() {
    changedMeanwhile = asking;
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch(live.document, { cache: "no-store" });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      keepPlace(withNews(await answer.json()));
      replay();
      tell("● live");
    } catch (error) {
      tell(`○ ${error.message}`);
    } finally {
      asking = false;
    }
    if (changedMeanwhile) renew();
  }
  news.addEventListener("open", () => tell("● live"));
  news.addEventListener("error", () => tell("○ waiting for the server"));
  on("message", renew);
  on("change", renew);
  on("metrics", ({ rows = [], rewound }) => {
    if (rewound) {
      app.rows = [];
      renew();
    } else {
      app.rows = [...(app.rows || []), ...rows].slice(-KEPT_ROWS);
      addMetrics(rows);
    }
  });
  on("events", ({ rows = [] }) => addEvents(rows));
  on("status", ({ status, time = "" }) => {
    if (status) app.told = { status, time };
    if (status && status !== app.doc.status) {
      app.doc.status = status;
      app.doc.tone = undefined; // the next document tells how it ended
      drawHead();
      tell("● live");
      renew();
    }
  });
}

// The server may hand out a document that it gathered a while ago. What the page was told since then stays: the page
// never goes back from finished to running, nor loses steps that it has shown.
const KEPT_ROWS = 500;

function withNews(doc) {
  const { told } = app,
    overview = doc.sections.find((one) => one.id === "overview");
  if (told && doc.made <= told.time && doc.status !== told.status) {
    doc.status = told.status;
    doc.tone = undefined;
    if (overview) overview.data.status = told.status;
  }
  return doc;
}

function replay() {
  const step = app.sections.overview?.data.progress?.step ?? Infinity;
  addMetrics((app.rows || []).filter((row) => row.step > step));
}

// New points at the end of every curve that has their metric.
function addMetrics(rows) {
  const { curves, overview } = app.sections;
  if (!rows.length || !overview?.data.progress) return;
  const lines = curves
    ? [curves.data.main, ...curves.data.skills, ...curves.data.others].flatMap((panel) => panel.series)
    : [];
  for (const row of rows) {
    if (curves?.data.clock) tick(curves.data.clock, row);
    for (const line of lines)
      if (!line.branch && known(row[line.key]) && row.step > (line.x[line.x.length - 1] ?? -1)) addPoint(line, row);
    overview.data.progress.step = row.step ?? overview.data.progress.step;
    overview.data.progress.phase = row.phase ?? overview.data.progress.phase;
    overview.data.progress.spent_s += wholeSeconds(row);
  }
  app.stale = new Set([...(app.stale || []), "overview", "curves"]);
  app.waiting ??= setTimeout(redrawStale, REDRAW_MS);
}

// The other axes of the charts grow with the steps.
function tick(clock, row) {
  const last = clock.step.length - 1;
  if (last >= 0 && row.step <= clock.step[last]) return;
  const answers = (clock.n || 0) * (row["groups/collected"] || 0);
  clock.step.push(row.step);
  clock.answers.push((clock.answers[last] || 0) + answers);
  clock.tokens.push((clock.tokens[last] || 0) + answers * (row["response_length/mean"] || 0));
  clock.seconds.push((clock.seconds[last] || 0) + wholeSeconds(row));
}

// What a step took, with what was recorded after it (record/profile.py).
const wholeSeconds = (row) => (known(row["time/step_s"]) ? row["time/step_s"] + (row["time/record_s"] || 0) : 0);

function addPoint(line, row) {
  if (line.phase && row.phase && row.phase !== line.phase) {
    (line.breaks ??= []).push(line.x.length);
    line.phase = row.phase;
  }
  line.x.push(row.step);
  line.y.push(row[line.key]);
  line.line?.push(null);
  const low = row[`${line.key}_low`] ?? row[line.key],
    high = row[`${line.key}_high`] ?? row[line.key];
  if (line.low) {
    line.low.push(low);
    line.high.push(high);
  }
}

function addEvents(rows) {
  const { events, health } = app.sections;
  const told = rows.map((row) => ({
    time: String(row.time ?? ""),
    kind: String(row.kind ?? ""),
    text: String(row.text ?? ""),
    subject: String(row.subject ?? ""),
    from: { file: "logs/events.jsonl", step: row.step },
  }));
  events?.data.push(...told);
  for (const row of health ? told : []) {
    if (["warning", "error", "failed"].includes(row.kind)) health.data.warnings.push(row);
    if (row.kind === "withdrawn")
      health.data.warnings = health.data.warnings.filter((one) => one.subject !== row.subject);
  }
  app.stale = new Set([...(app.stale || []), "health", "events"]);
  app.waiting ??= setTimeout(redrawStale, REDRAW_MS);
}

function redrawStale() {
  app.waiting = null;
  const y = scrollY;
  for (const id of app.stale) {
    const before = document.getElementById(id);
    if (app.sections[id] && before && !before.contains(document.activeElement))
      before.replaceWith(drawSection(app.sections[id]));
  }
  app.stale = new Set();
  scrollTo(0, y);
}

// Draw everything anew without losing the reader's place.
function keepPlace(doc) {
  const y = scrollY,
    [name, query] = location.hash.slice(1).split("?");
  closePopover();
  draw(doc);
  if (query !== undefined) app.routes[name]?.(Object.fromEntries(new URLSearchParams(query)));
  scrollTo(0, y);
}
