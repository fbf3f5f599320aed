// The first screen of a run: did it learn, in one sentence, beside its learning curve; then each phase, before and after.

const MARKS = { good: "✓", bad: "✕", unclear: "?", waiting: "…" };
const points = (value) => signed(100 * value, 1);
const toneOf = (verdict) => ({ higher: "good", lower: "bad" })[verdict] || "unclear";

function changeWords(told) {
  const { before, after, difference } = told;
  if (!after) return null;
  const bare = (point) => sourced((100 * point.value).toFixed(1), point.from);
  if (!before) return [`${told.role} `, sourced(percent(after.value), after.from), ` ${bracket(after, percent)}`];
  return [
    `${told.role} `,
    bare(before),
    " → ",
    bare(after),
    " % ",
    el("span.gain", `(${points(difference.mean)} points ${bracket(difference, points)})`),
  ];
}

const bracket = (one, show) => (known(one.low) && known(one.high) ? `[${show(one.low)}, ${show(one.high)}]` : "");

function answerBox(told) {
  return h(
    "div",
    { className: `answer-box ${told.tone}` },
    el(
      "p.sentence",
      el("b", h("span", { className: "mark-sign", "aria-hidden": "true" }, MARKS[told.tone] || ""), ` ${told.word}`),
      told.after ? ": " : ".",
      changeWords(told),
      told.about ? el("span.about", told.after ? `, ${told.about}` : told.about) : null,
    ),
    told.why.length
      ? el(
          "ul.reasons",
          told.why.map((one) =>
            el("li", sourced(one.why, one.from), one.try ? [el("br"), el("b", "Try: "), one.try] : null),
          ),
        )
      : null,
    told.phases.map((words) => el("p.note", words)),
    told.caution ? el("p.note", told.caution) : null,
  );
}

function viewOverview(data) {
  const main = app.sections.curves?.data.main.series.filter((line) => line.x.length) || [];
  const ended = { finished: "", running: "" }[data.status] ?? "caution";
  return [
    data.question ? el("p.question", data.question) : null,
    h(
      "div",
      { className: main.length ? "opening" : "" },
      el(
        "div",
        data.answer ? answerBox(data.answer) : null,
        data.why || data.go_on
          ? h("p", { className: `callout ${ended}` }, data.why, data.go_on ? [el("br"), data.go_on] : null)
          : null,
        progressBar(data.progress),
      ),
      main.length ? curvePlot(app.sections.curves, main, { title: "accepted@1 by step", height: 250 }) : null,
    ),
    resultTiles(data),
    el(
      "details",
      el("summary", "Facts"),
      factList(data.facts.map((fact) => [fact.name, sourced(fact.value, fact.from)])),
    ),
  ];
}

function progressBar(progress) {
  const done = progress.total ? Math.min(1, progress.step / progress.total) : null;
  return el(
    "div.progress",
    el(
      "div.row",
      el(
        "span",
        "step ",
        sourced(number(progress.step), progress.from),
        progress.total ? ` of ${number(progress.total)}` : "",
        progress.phase ? ` · ${progress.phase}` : "",
      ),
      el(
        "span",
        `${duration(progress.spent_s)} spent`,
        known(progress.left_s) ? el("b", ` · about ${duration(progress.left_s)} left`) : "",
      ),
    ),
    done === null ? null : h("progress", { max: 1, value: done, "aria-label": "steps done" }, percent(done)),
  );
}

function resultTiles(data) {
  const tiles = [];
  const tested = data.result.find((one) => one.role === "test");
  if (tested) {
    const note = `${tested.asked || "test problems"}, used for no decision; step ${tested.step}${tested.lacks}`;
    tiles.push(headlineTile("result · test", tested, note));
  }
  data.headline.forEach((one, i) => {
    const moved = one.last.from.line !== one.before.from.line;
    const note = [
      `${points(one.last.value - one.before.value)} points since ${percent(one.before.value)}${one.before.late ? ` at step ${one.before.from.step}` : ""}; best `,
      sourced(percent(one.best.value), one.best.from),
      ` at step ${one.best.from.step}`,
    ];
    const going = data.status === "running" && i === data.headline.length - 1;
    const when = !moved ? "before" : going ? "during" : "after";
    tiles.push(headlineTile(`dev · ${one.data} · ${when} ${one.phase}`, one.last, moved ? note : "not measured since"));
  });
  return tiles.length ? el("div.tiles", tiles) : null;
}

// What went wrong: what is out of range with what to do, warnings, and behind a fold what is well.
function viewHealth(data) {
  const on = data.lights.filter((light) => light.state === "alarm" || light.state === "notice");
  const rank = { alarm: 0, notice: 1 };
  on.sort((a, b) => rank[a.state] - rank[b.state]);
  const rest = data.lights.filter((light) => !on.includes(light));
  const well = rest.filter((light) => light.state === "good").length;
  return [
    on.length || data.warnings.length
      ? null
      : el("p.note", "Nothing that the record tells of: no warnings, every watched metric in its range."),
    on.length ? el("ul.lights", on.map(viewLight)) : null,
    data.warnings.length ? [el("h3", "Warnings"), eventList(data.warnings)] : null,
    rest.length
      ? el(
          "details",
          el("summary", `${well} in range, ${rest.length - well} not recorded`),
          el("ul.lights", rest.map(viewLight)),
        )
      : null,
  ];
}

// Phases as a chain from left to right; a control arm branches off below and leads nowhere.
function viewPhases(data) {
  const steps = data.steps.filter((one) => known(one.after.value));
  const drawn = steps.length ? [phaseFigure(steps), phaseTable(steps)] : [];
  return [
    ...drawn,
    (data.code || []).map((words) => el("p.callout.caution", words)),
    data.earlier.length
      ? [el("h3", "Before it was made longer"), data.earlier.map((words) => el("p", words))]
      : null,
    h("details", { open: !drawn.length }, el("summary", "Every measure by phase"), viewGrid(data)),
  ];
}

function phaseFigure(steps) {
  const line = [];
  const first = steps.find((one) => one.before);
  if (first) line.push({ name: first.origin, point: first.before });
  for (const one of steps) if (!one.control) line.push({ name: one.name, point: one.after });
  const place = new Map(line.map((one, i) => [one.name, i]));
  const branches = steps.filter((one) => one.control && place.has(one.origin));
  const [low, high] = bounds([...line.map((one) => one.point), ...branches.map((one) => one.after)].flatMap(
    (point) => [point.value, point.low, point.high],
  ));
  return figure(
    "Share of test problems solved, by phase",
    250,
    (svg, width, height) => {
      const { toX, toY } = axes(svg, width, height, [-0.4, line.length - 0.4], [Math.min(0, low), high < 0.5 ? high * 1.15 + 0.01 : 1], {
        xTicks: line.map((_, i) => i),
        x: (i) => line[i]?.name || "",
        y: (v) => percent(v, 0),
        yTitle: "right",
      });
      const stroke = colour(0);
      svg.append(s("path", { className: "line", d: path(line.map((one, i) => [toX(i), toY(one.point.value)])), style: { stroke } }));
      line.forEach((one, i) => whiskers(svg, toX(i), toY, one.point, stroke));
      for (const one of branches) {
        const from = place.get(one.origin);
        const [x, y] = [toX(from + 0.45), toY(one.after.value)];
        svg.append(
          s("path", {
            className: "line branch",
            d: path([[toX(from), toY(line[from].point.value)], [x, y]]),
            style: { stroke: colour(1), "stroke-dasharray": "5 4" },
          }),
          lettering("point-name", x + 10, y + 22, `${one.name} (control)`),
        );
        whiskers(svg, x, toY, one.after, colour(1));
      }
    },
    {
      rows: () => [
        ["phase", "control", "value", "low", "high"],
        ...line.map((one) => [one.name, "no", one.point.value, one.point.low, one.point.high]),
        ...branches.map((one) => [one.name, "yes", one.after.value, one.after.low, one.after.high]),
      ],
    },
  );
}

function whiskers(svg, x, toY, point, stroke) {
  if (known(point.low) && known(point.high))
    svg.append(straight("error", [x, x], [toY(point.low), toY(point.high)], stroke));
  svg.append(s("circle", { className: "dot", cx: x, cy: toY(point.value), r: 4.5, style: { fill: stroke } }));
}

function phaseTable(steps) {
  const words = { higher: "better", lower: "worse" };
  return table(
    ["phase", "started from", "before", "after", "difference, points [95 %]", "p", "", "became right / wrong"],
    steps.map((one) => {
      const gap = one.difference;
      return [
        `${one.name}${one.control ? " (control)" : ""}`,
        one.origin || "–",
        one.before ? sourced(percent(one.before.value), one.before.from) : "–",
        sourced(percent(one.after.value), one.after.from),
        gap ? `${points(gap.mean)} ${bracket(gap, points)}` : "–",
        gap ? chance(gap.p) : "",
        gap ? verdictMark(gap.verdict, words[gap.verdict] || "not shown") : "no pairs",
        one.became ? [turnedOnes(one.became, "became right"), " / ", turnedOnes(one.became, "became wrong")] : "–",
      ];
    }),
  );
}

// How many problems turned so, and where their answers can be read.
function turnedOnes(became, change) {
  const told = number(became[change]);
  if (!became.side || !became[change] || !app.sections.rollouts) return told;
  return h("a", { href: route("rollouts", { change, side: became.side }), title: `read what ${change}` }, told);
}
