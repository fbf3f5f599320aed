// Skills against each other: the matrix of who changes whom, forgetting, and the trade-off.

function viewMatrix(data) {
  const most = Math.max(1e-9, ...data.cells.flat().map((cell) => Math.abs(cell.value || 0)));
  const cell = (one, row, column) => {
    const sure = known(one.low) && known(one.high) && (one.low > 0 || one.high < 0);
    const share = Math.round((78 * Math.abs(one.value || 0)) / most);
    const paint =
      data.certain && !sure
        ? "var(--grey-cell)"
        : `color-mix(in srgb, var(${one.value < 0 ? "--neg" : "--pos"}) ${share}%, var(--card))`;
    const told = `${data.row_title} ${row}, ${data.column_title} ${column}: ${signed(one.value)}${known(one.low) ? `, 95 % interval ${signed(one.low)} to ${signed(one.high)}` : ", no interval recorded"}`;
    const open = `answers on ${column}`;
    const answers = { className: "to", href: route("rollouts", one.link), title: open, "aria-label": open };
    return h(
      "td",
      {
        className: `cell ${data.certain && !sure ? "unsure" : ""}`,
        style: { background: paint },
        "aria-label": told,
        title: told,
      },
      sourced(signed(one.value), one.from),
      known(one.low) ? el("span.range", `${signed(one.low)} … ${signed(one.high)}`) : null,
      one.link && app.sections.rollouts ? h("a", answers, "answers") : null,
    );
  };
  return [
    grid(
      "table.matrix",
      [el("td", `${data.row_title} ↓  ·  ${data.column_title} →`), data.columns.map(columnHead)],
      data.rows.map((row, i) => [rowHead(row), data.cells[i].map((one, j) => cell(one, row, data.columns[j]))]),
    ),
    signScale("helps", data.certain ? [swatch("var(--grey-cell)"), "not significant"] : null),
  ];
}

function lostSince(lost) {
  const points = (value) => (100 * value).toFixed(1);
  if (lost.value === 0) return "nothing";
  if (lost.low === null) return `−${points(lost.value)} points`;
  const chance = lost.low > 0 ? "" : ", which may be chance";
  return `−${points(lost.value)} points [${points(lost.low)}, ${points(lost.high)}]${chance}`;
}

function viewForgetting(data) {
  const rings = (svg, { toX, toY, box }) =>
    data.curves.forEach((curve, i) => {
      const [cx, cy] = [toX(curve.peak[0]), toY(curve.peak[1])];
      svg.append(s("circle", { className: "ring", cx, cy, r: 8, style: { stroke: colour(i) } }));
      const lost = curve.lost.low > 0 ? `−${(100 * curve.lost.value).toFixed(0)}` : "";
      svg.append(lettering("point-name", box.right + 6, toY(curve.y.at(-1)) + 4, `${curve.name} ${lost}`));
    });
  const plot = linePlot("Success on dev problems, by skill", data.curves, {
    height: 300,
    marks: data.marks,
    y: (v) => percent(v, 0),
    domain: [0, 1],
    xTitle: "step",
    over: rings,
    right: 84,
  });
  return [
    plot,
    table(
      ["skill", "peak", "at step", "at the end", "lost since"],
      data.curves.map((curve) => [
        curve.name,
        percent(curve.peak[1]),
        number(curve.peak[0]),
        sourced(percent(curve.y.at(-1)), {
          file: "logs/metrics.jsonl",
          line: curve.line.at(-1),
          step: curve.x.at(-1),
          key: curve.key,
        }),
        lostSince(curve.lost),
      ]),
    ),
    data.numbers.length ? factList(data.numbers.map((one) => [one.name, number(one.value)])) : null,
  ];
}

function viewPareto(data) {
  const groups = [...new Set(data.points.map((point) => point.group))];
  const shapes = ["circle", "square", "diamond", "triangle"];
  const values = (axis) => data.points.map((point) => point[axis].value);
  const front = data.points.filter((point) => point.front);
  return [
    figure(
      "Learning against keeping",
      380,
      (svg, width, height) => {
        const scale = axes(svg, width, height, padded(bounds(values("x"))), padded(bounds(values("y"))), {
          xTitle: data.x_title,
          yTitle: data.y_title,
          x: (v) => percent(v, 0),
          y: (v) => percent(v, 0),
          right: 60,
        });
        const { toX, toY, box } = scale;
        const best = [...front].sort((a, b) => a.x.value - b.x.value);
        const line = path(best.map((point) => [toX(point.x.value), toY(point.y.value)]));
        svg.append(s("path", { className: "front", d: line }));
        const hold = (value, low, high) => Math.max(low, Math.min(high, value));
        const many = data.points.length > 8 ? "error many" : "error",
          taken = [];
        const free = (x, y, text) => {
          const spot = { x, y, right: x + 6.4 * text.length, top: y - 11 };
          const clear = taken.every(
            (one) => spot.right < one.x || spot.x > one.right || spot.y < one.top || spot.top > one.y,
          );
          if (clear) taken.push(spot);
          return clear;
        };
        for (const point of data.points) {
          const x = toX(point.x.value),
            y = toY(point.y.value),
            index = groups.indexOf(point.group),
            stroke = colour(index);
          const wide = [point.x.low, point.x.high].map((end) => hold(toX(end), box.left, box.right));
          const tall = [point.y.low, point.y.high].map((end) => hold(toY(end), box.top, box.bottom));
          if (known(point.x.low)) svg.append(straight(many, wide, [y, y], stroke));
          if (known(point.y.low)) svg.append(straight(many, [x, x], tall, stroke));
          const told = [
            ["", "learning", `${percent(point.x.value)} ${range(point.x.low, point.x.high)}`],
            ["", "kept", `${percent(point.y.value)} ${range(point.y.low, point.y.high)}`],
            ["", "seeds", number(point.x.n)],
          ];
          svg.append(
            symbol(shapes[index % shapes.length], x, y, point.front ? 6 : 4.5, {
              style: { fill: stroke },
              className: "point",
              on: pointed(point.name, told, (mark) => tellSource(point.from, mark)),
            }),
          );
          if ((point.front || data.points.length < 12) && free(x + 9, y - 6, point.name))
            svg.append(lettering("point-name", x + 9, y - 6, point.name));
        }
      },
      {
        legend: legend(groups.map((name) => ({ name }))),
        label: `Pareto: not dominated are ${front.map((point) => point.name).join(", ")}`,
      },
    ),
  ];
}

function symbol(shape, x, y, r, properties) {
  if (shape === "square") return s("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, ...properties });
  if (shape === "diamond")
    return s("path", {
      d: `M${x} ${y - r * 1.3}L${x + r * 1.3} ${y}L${x} ${y + r * 1.3}L${x - r * 1.3} ${y}Z`,
      ...properties,
    });
  if (shape === "triangle")
    return s("path", { d: `M${x} ${y - r * 1.2}L${x + r * 1.2} ${y + r}L${x - r * 1.2} ${y + r}Z`, ...properties });
  return s("circle", { cx: x, cy: y, r, ...properties });
}

// Conflict: the cosine of every pair, then how all of it went over the steps.
function viewConflict(data, section) {
  const signedAxis = (panel) => /cosine/i.test(panel.name);
  const fact = (one) => [one.name, sourced(number(one.value), { file: section.source, key: one.key })];
  const draw = (panel) =>
    linePlot(panel.name, panel.series, {
      height: 200,
      small: true,
      source: section.source,
      domain: signedAxis(panel) ? spread(panel.series) : null,
      y: /Share|success/.test(panel.name) ? (v) => percent(v, 0) : number,
    });
  return [
    data.absent.map((text) => el("p.absent", text)),
    data.matrix ? [el("h3", "Mean cosine of each pair, last fifth of the steps"), viewMatrix(data.matrix)] : null,
    el("div.pair", data.panels.map(draw)),
    data.numbers.length ? factList(data.numbers.map(fact)) : null,
  ];
}

// Cosines lie between −1 and 1; the axis always holds 0.
function spread(lines) {
  const [low, high] = bounds(lines.flatMap((line) => line.y));
  return [Math.max(-1, Math.min(-0.1, low * 1.1)), Math.min(1, Math.max(0.1, high * 1.1))];
}
