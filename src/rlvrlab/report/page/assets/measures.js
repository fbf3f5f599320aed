// pass@k, signal, errors, cost, hack monitor, and the paired test.

function viewPassk(data) {
  const ks = data.curves[0].x;
  const lines = data.curves.map((curve) => ({ ...curve, x: curve.x.map((k) => Math.log2(k)) }));
  return [
    linePlot("pass@k", lines, {
      height: 300,
      y: (v) => percent(v, 0),
      domain: [0, 1],
      xTitle: "k, answers drawn",
      xName: "k =",
      xTicks: ks.map((k) => Math.log2(k)),
      x: (v) => number(Math.round(2 ** v)),
      right: 24,
    }),
    table(
      ["k", ...data.curves.flatMap((curve) => [curve.name, "95 % interval"])],
      ks.map((k, i) => [
        String(k),
        ...data.curves.flatMap((curve) => [
          sourced(percent(curve.y[i]), curve.from),
          range(curve.low[i], curve.high[i]),
        ]),
      ]),
    ),
  ];
}

function viewSignal(data, section) {
  const parts = [];
  if (data.points.length) parts.push(scatter(data, section));
  if (data.stack.length) {
    const names = {
      live: "with signal",
      all_right: "all right",
      all_wrong: "all wrong",
      same_reward: "same reward",
      unjudged: "unjudged",
    };
    const paint = {
      live: "var(--s1)",
      all_right: "var(--s3)",
      all_wrong: "var(--s2)",
      same_reward: "var(--s5)",
      unjudged: "var(--s7)",
    };
    parts.push(
      linePlot(
        "Groups per step",
        data.stack.map((line) => ({ ...line, name: names[line.name] || line.name, colour: paint[line.name] })),
        { height: 300, xTitle: "step", yTitle: "groups" },
      ),
    );
  }
  return h("div", { className: parts.length > 1 ? "pair" : "" }, parts);
}

function scatter(data, section) {
  const groups = [...new Set(data.points.map((point) => point.group))];
  const useful = data.points.filter((p) => p.x >= data.zone[0] && p.x <= data.zone[1] && p.y > data.variance).length;
  const places = Map.groupBy(data.points, (point) => `${point.x}|${point.y}|${point.group}`);
  const title = `Accuracy against variance, one dot per ${data.of}`;
  const box = figure(
    title,
    300,
    (svg, width, height) => {
      const high = Math.max(0.3, ...data.points.map((point) => point.y * 1.08));
      const { toX, toY } = axes(svg, width, height, [-0.05, 1.05], [-0.04 * high, high], {
        xTitle: `share of right answers of a ${data.of}`,
        yTitle: "variance of its rewards",
        x: (v) => percent(v, 0),
        xTicks: [0, 0.2, 0.4, 0.6, 0.8, 1],
      });
      const [left, right, top] = [toX(data.zone[0]), toX(data.zone[1]), toY(high)];
      svg.append(
        rectangle("zone", left, top, right - left, toY(data.variance) - top),
        lettering("zone-name", left + 6, top + 14, "useful zone"),
      );
      for (const points of places.values()) {
        const first = points[0];
        const told = [
          ["", "right", percent(first.x)],
          ["", "variance", number(first.y)],
          ["", "skill", first.group],
        ];
        const aside = 7 * (groups.indexOf(first.group) - (groups.length - 1) / 2);
        svg.append(
          s("circle", {
            className: "bubble",
            cx: toX(first.x) + aside,
            cy: toY(first.y),
            r: Math.min(17, 2.6 * Math.sqrt(points.length)),
            style: { fill: colour(groups.indexOf(first.group)) },
            on: pointed(points.length > 1 ? `${points.length} ${data.of}s here` : first.name, told, () => {
              if (first.row) location.hash = route("rollouts", { id: first.row });
            }),
          }),
        );
      }
    },
    {
      legend: legend(groups.map((name) => ({ name }))),
      label: `${title}: ${useful} of ${data.points.length} in the useful zone`,
    },
  );
  const varied = data.points.filter((p) => p.y > data.variance).length;
  return el(
    "div",
    box,
    el(
      "p.note",
      el("b", `${varied} of ${data.points.length} ${data.of}s`),
      ` have variance enough to learn from; ${useful} of them are in the useful zone.`,
      section.source.startsWith("rollouts") ? " A click on a dot opens its answers." : "",
    ),
  );
}

const PAINT = {
  right: "var(--s3)",
  wrong_answer: "var(--s2)",
  format: "var(--s5)",
  syntax: "var(--s4)",
  runtime: "var(--s6)",
  rule: "var(--s1)",
  timeout: "var(--brown)",
  memory: "var(--olive)",
  output: "var(--teal)",
  tampered: "var(--ink)",
  unjudged: "var(--s7)",
};

function viewErrors(data) {
  const charts = data.groups.map((group) => {
    const kinds = [...Object.keys(PAINT), ...new Set(group.bars.flatMap((bar) => Object.keys(bar.counts)))].filter(
      (kind, i, list) => list.indexOf(kind) === i && group.bars.some((bar) => bar.counts[kind]),
    );
    return stackPlot(`${group.name}: ${group.unit}`, group.bars, kinds, (kind) => PAINT[kind] || "var(--s7)", {});
  });
  return h("div", { className: charts.length > 1 ? "pair" : "" }, charts);
}

function viewCost(data) {
  const how = data.rows.some((row) => row.how);
  const amount = (row) =>
    known(row.value)
      ? sourced(row.unit === "s" ? seconds(row.value) : number(row.value), row.from)
      : el("span.absent", "not recorded");
  return [
    table(
      how ? ["what", "amount", "how"] : ["what", "amount"],
      data.rows.map((row) => [row.name, amount(row), ...(how ? [row.how] : [])]),
    ),
    (data.advice || []).map((text) => el("p", `To save time: ${text}.`)),
    data.series && data.series.x.length > 1
      ? linePlot(data.series.name, [{ ...data.series, key: "time/step_s" }], {
          height: 150,
          small: true,
          y: (v) => `${number(v)} s`,
        })
      : null,
  ];
}

const seconds = (value) => (value >= 1 ? duration(value) : `${number(value)} s`);

function viewHacks(data) {
  const named = (name) => data.series.filter((line) => line.key === name && line.x.length);
  const patterns = data.series.filter((line) => line.key.startsWith("hack/pattern/"));
  const rest = data.series.filter((line) => !line.key.startsWith("hack/pattern/") && line.x.length > 1);
  return [
    data.findings.map((text) => el("p.callout.caution", text)),
    data.absent.map((text) => el("p.absent", text)),
    named("hack/proxy_gap").length
      ? linePlot("Proxy − hidden tests", named("hack/proxy_gap"), { height: 220, y: (v) => percent(v, 0) })
      : null,
    patterns.length
      ? linePlot(
          "Suspicious patterns, share of programs",
          patterns.map((line) => ({ ...line, name: line.key.slice(13) })),
          { height: 220, y: (v) => percent(v, 0) },
        )
      : null,
    el(
      "div.multiples",
      rest
        .filter((line) => line.key !== "hack/proxy_gap")
        .map((line) => linePlot(line.name, [line], { height: 120, small: true })),
    ),
    data.flags.length
      ? [
          el("h3", "Flagged answers"),
          el(
            "ul.chips",
            data.flags.map((one) =>
              el("li", h("a", { href: route("rollouts", { flag: one.flag }) }, `${one.flag} × ${number(one.count)}`)),
            ),
          ),
        ]
      : el("p.note", "No program among the answers shown has a suspicious pattern."),
  ];
}

function viewPaired(data) {
  const words = { higher: "higher", lower: "lower", "not shown": "no difference shown" };
  return [
    data.tables.map((one) => [
      one.title ? el("h3", one.title) : null,
      table(
        ["measure", data.names[0], data.names[1], "difference", "95 % interval", "p", "MDE", ""],
        one.rows.map((row) => {
          const plain = row.what === "gen_tokens" || row.what === "avg_entropy";
          const show = unit(plain);
          const change = plain ? signed : (value) => `${points(value)} points`;
          const gap = row.difference;
          return [
            row.what.replaceAll("_", " "),
            show(row.before),
            sourced(show(row.after), data.from),
            change(gap.mean),
            range(gap.low, gap.high, plain ? signed : points),
            chance(gap.p),
            change(gap.detectable).replace("+", ""),
            verdictMark(row.verdict, words[row.verdict] || row.verdict),
          ];
        }),
      ),
    ]),
    data.notes.map((text) => el("p.note", text)),
  ];
}
