// A page that keeps itself up to date: new lines are added to what is drawn, the whole is fetched again when the server
// says that it is worth it.

const REDRAW_MS = 1000;

function listen(live) {
  const news = new EventSource(live.events);
  const tell = (text) => {
    document.getElementById("live").textContent = text;
  };
  const on = (kind, act) => news.addEventListener(kind, (event) => act(event.data ? JSON.parse(event.data) : {}));
  let asking = false;
  async function renew() {
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch(live.document, { cache: "no-store" });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      keepPlace(await answer.json());
      tell("● live");
    } catch (error) {
      tell(`○ ${error.message}`);
    }
    asking = false;
  }
  news.addEventListener("open", () => tell("● live"));
  news.addEventListener("error", () => tell("○ waiting for the server"));
  on("message", renew);
  on("change", renew);
  on("metrics", ({ rows = [], rewound }) => {
    if (rewound) renew();
    else addMetrics(rows);
  });
  on("events", ({ rows = [] }) => addEvents(rows));
  on("status", ({ status }) => {
    if (status && status !== app.doc.status) {
      app.doc.status = status;
      drawHead();
      tell("● live");
    }
  });
}

// New points at the end of every curve that has their metric.
function addMetrics(rows) {
  const { curves, overview } = app.sections;
  if (!rows.length || !overview?.data.progress) return;
  const lines = curves
    ? [curves.data.main, ...curves.data.skills, ...curves.data.others].flatMap((panel) => panel.series)
    : [];
  for (const row of rows) {
    for (const line of lines)
      if (known(row[line.key]) && row.step > (line.x[line.x.length - 1] ?? -1)) addPoint(line, row);
    overview.data.progress.step = row.step ?? overview.data.progress.step;
    overview.data.progress.phase = row.phase ?? overview.data.progress.phase;
    overview.data.progress.spent_s += row["time/step_s"] || 0;
  }
  app.stale = new Set([...(app.stale || []), "overview", "curves"]);
  app.waiting ??= setTimeout(redrawStale, REDRAW_MS);
}

function addPoint(line, row) {
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
  const { events, overview } = app.sections;
  const told = rows.map((row) => ({
    time: String(row.time ?? ""),
    kind: String(row.kind ?? ""),
    text: String(row.text ?? ""),
    from: { file: "logs/events.jsonl", step: row.step },
  }));
  events?.data.push(...told);
  overview?.data.warnings?.push(...told.filter((row) => row.kind === "warning"));
  app.stale = new Set([...(app.stale || []), "overview", "events"]);
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
