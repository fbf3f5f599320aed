// Metrics over steps: accepted@1 on dev problems large, skills as small multiples, every other metric on demand.

const isShare = (key) =>
  /(\/acc|acc_|rate|ratio$|zero_variance|clipfrac|suspicious)/.test(key) && !/\/ratio$/.test(key);

// What a metric is counted in; the first pattern that fits.
const UNITS = [
  [/^time\/.*_s$|seconds/, "s"],
  [/response_length\/(mean|max|min)|tokens/, "tokens"],
  [/entropy|\/kl|nll/, "nats"],
  [/^groups\/(collected|live|all_right|all_wrong|same_reward|unjudged)/, "groups"],
  [/rewards?\/|reward$/, "reward"],
  [/lr$|learning_rate/, "per step"],
];
const unitOf = (key) => UNITS.find(([pattern]) => pattern.test(key))?.[1] || "";
const AXES = {
  step: ["step", number],
  answers: ["answers sampled", (v) => number(Math.round(v))],
  tokens: ["tokens sampled", (v) => number(Math.round(v))],
  seconds: ["time", (v) => duration(v)],
};

// Where a step lies on another axis: straight between the two recorded steps around it.
function onClock(clock, axis, step) {
  const steps = clock.step,
    values = clock[axis];
  let low = 0,
    high = steps.length - 1;
  if (high < 0 || step <= steps[0]) return high < 0 ? step : values[0];
  if (step >= steps[high]) return values[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle;
    else high = middle;
  }
  return values[low] + ((step - steps[low]) / (steps[high] - steps[low] || 1)) * (values[high] - values[low]);
}

function curvePlot(section, series, { title, height, small, unit = "%" }) {
  const { data, source } = section,
    fields = chartFields(section);
  const clockOf = (line) => data.clocks?.[line.name] || data.clock;
  const moved = fields.axis !== "step";
  const place = (line, x) => (moved && clockOf(line) ? onClock(clockOf(line), fields.axis, x) : x);
  const lines = series.map((line) => (moved ? { ...line, steps: line.x, x: line.x.map((x) => place(line, x)) } : line));
  const every = [data.main, ...data.skills, ...data.others].flatMap((panel) => panel.series);
  const xDomain = bounds(every.flatMap((line) => [line.x[0], line.x[line.x.length - 1]].map((x) => place(line, x))));
  const show = unit === "%" ? (v) => percent(v, v && Math.abs(v) < 0.01 ? 2 : 0) : unit === "s" ? (v) => `${number(v)} s` : number;
  const [xTitle, x] = AXES[fields.axis];
  const share = unit === "%" && !fields.log;
  return linePlot(unit && unit !== "%" ? `${title} (${unit})` : title, lines, {
    height,
    small,
    marks: data.marks.map((mark) => ({ ...mark, x: place(series[0] || {}, mark.x) })),
    xDomain,
    source,
    y: show,
    domain: share ? shares(series) : null,
    log: fields.log,
    smoothing: SMOOTHING[fields.smoothing],
    x,
    xName: moved ? fields.axis : undefined,
    xTitle: small ? null : xTitle,
  });
}

// What the reader chose for the charts of a page; kept while the page redraws itself.
function chartFields(section) {
  return (app.memory[`charts ${section.id}`] ??= { axis: "step", smoothing: "usual", log: false });
}

function chartBar(section, redraw) {
  const fields = chartFields(section),
    clocks = [section.data.clock, ...Object.values(section.data.clocks || {})].filter(Boolean);
  const axes = Object.keys(AXES).filter(
    (axis) => axis === "step" || clocks.some((clock) => clock[axis]?.[clock[axis].length - 1] > 0),
  );
  const choice = (name, label, values) => {
    const options = values.map((value) => [value, value === "seconds" ? "time" : value]);
    const select = selection({ "aria-label": label, data: { field: name } }, options, fields[name], (value) => {
      fields[name] = value;
      redraw();
    });
    return el("label", label, select);
  };
  const log = tickBox(fields.log, { field: "log" }, (ticked) => {
    fields.log = ticked;
    redraw();
  });
  return h(
    "div",
    { className: "chart-fields", role: "group", "aria-label": "Charts" },
    axes.length > 1 ? choice("axis", "x axis", axes) : null,
    choice("smoothing", "smoothing", Object.keys(SMOOTHING)),
    el("label", log, "log scale"),
  );
}

function viewCurves(data, section) {
  const body = el("div");
  const small = (panel) => {
    const key = panel.series.length ? panel.series[0].key || panel.name : panel.name;
    const share = isShare(key) && panel.series.every((line) => line.y.every((v) => !known(v) || (v >= 0 && v <= 1)));
    return curvePlot(section, panel.series, { title: panel.name, height: 150, small: true, unit: share ? "%" : unitOf(key) });
  };
  const draw = () =>
    refill(
      body,
      data.main.series.length
        ? curvePlot(section, data.main.series, { title: "Accuracy", height: 320 })
        : el("p.empty", "No accepted@1 is recorded yet."),
      data.skills.length ? [el("h3", "By skill, on dev problems"), el("div.multiples", data.skills.map(small))] : null,
      data.others.length ? metricsBrowser(data.others, small, (app.memory[section.id] ??= {})) : null,
    );
  draw();
  return [chartBar(section, draw), body];
}

function metricsBrowser(panels, draw, memory) {
  const grid = el("div.multiples");
  const shown = 6;
  const more = button("", () => {
    memory.open = !memory.open;
    update();
  });
  const find = h("input", {
    type: "search",
    placeholder: "find a metric",
    "aria-label": "Find a metric",
    on: {
      input: () => {
        memory.words = find.value;
        update();
      },
    },
  });
  find.value = memory.words || "";
  function update() {
    const { open } = memory,
      wanted = (memory.words || "").toLowerCase();
    const found = panels.filter((panel) => panel.name.toLowerCase().includes(wanted));
    const taken = open || wanted ? found : found.slice(0, shown);
    grid.replaceChildren(...taken.map(draw));
    more.hidden = Boolean(wanted) || panels.length <= shown;
    more.textContent = open ? "show fewer" : `show all ${panels.length} metrics`;
  }
  update();
  return [el("div.row.spread", el("h3", "Metrics"), el("span.row", find, more)), grid];
}
