// What a study found: the winner, then a forest of its arms with every seed as a dot; what to be careful about is folded.

function cautions(data) {
  const fold = (list, name, word) =>
    list.length
      ? h(
          "details",
          { className: `cautions ${name}` },
          el("summary", `${list.length} ${word}${list.length === 1 ? "" : "s"}`),
          el("ul", list.map((text) => el("li", text))),
        )
      : null;
  return [fold(data.failures, "alarm", "failed trial"), fold(data.caveats, "caution", "caveat")];
}

function viewVerdict(data) {
  return [
    h(
      "div",
      { className: `answer-box ${data.tone}` },
      el("p.sentence", el("b", `${MARKS[data.tone] || ""} ${data.word}`), "."),
      data.sentence ? el("p", data.sentence) : null,
    ),
    data.forests.map(forestPlot),
    cautions(data),
  ];
}

// A name in one line or two, broken behind a sign where there is one; only what two lines cannot hold is cut.
function inLines(name, most) {
  if (name.length <= most) return [name];
  const signs = [...name.slice(0, most).matchAll(/[=_.,; ]/g)];
  const at = signs.length && signs.at(-1).index >= most / 3 ? signs.at(-1).index + 1 : most;
  const rest = name.slice(at);
  return [name.slice(0, at), rest.length > most ? `${rest.slice(0, most - 1)}…` : rest];
}

function forestPlot(stage) {
  const show = stage.share ? (v) => percent(v, 0) : number;
  const rows = stage.rows.filter((row) => known(row.value));
  const values = rows.flatMap((row) => [row.value, row.low, row.high, ...row.seeds.map((one) => one.value)]);
  const [low, high] = padded(bounds(values));
  const [each, widest] = [34, Math.max(4, ...rows.map((row) => row.name.length))];
  const title = `${stage.name}: ${stage.metric}`;
  return figure(
    title,
    rows.length * each + 44,
    (svg, width, height) => {
      const left = Math.min(width * 0.36, 20 + 6.8 * (widest + 2));
      const toX = (value) => left + ((value - low) / (high - low || 1)) * (width - left - 16);
      for (const tick of ticks(low, high, Math.max(3, Math.floor((width - left) / 110))))
        svg.append(
          straight("grid", [toX(tick), toX(tick)], [4, height - 24]),
          lettering("tick", toX(tick), height - 8, show(tick), "middle"),
        );
      rows.forEach((row, i) => {
        const y = 4 + each * (i + 0.5);
        const stroke = row.chosen ? colour(2) : colour(0);
        const named = `point-name ${row.chosen ? "chosen" : ""}`;
        const lines = inLines(`${row.chosen ? "★ " : ""}${row.name}`, Math.floor((left - 14) / 6.8));
        lines.forEach((text, k) =>
          svg.append(lettering(named, left - 10, y + 4 + 14 * (k - (lines.length - 1) / 2), text, "end")),
        );
        if (known(row.low) && known(row.high))
          svg.append(straight("error", [toX(row.low), toX(row.high)], [y, y], stroke));
        row.seeds.forEach((one, k) =>
          svg.append(
            s("circle", { className: "seed", cx: toX(one.value), cy: y + (k % 2 ? 7 : -7), r: 3.2, style: { fill: stroke } }),
          ),
        );
        svg.append(
          rectangle("mean", toX(row.value) - 4, y - 4, 8, 8, { style: { fill: stroke } }),
          rectangle("area", 0, y - each / 2, width, each, {
            on: {
              pointermove: (event) =>
                tip(event, row.name, [
                  [stroke, "mean", `${show(row.value)} ${range(row.low, row.high, show)}`],
                  ...row.seeds.map((one) => ["", `seed ${one.seed}`, stage.share ? percent(one.value) : number(one.value)]),
                ]),
              pointerleave: untip,
              click: (event) => tellSource(row.from, event.currentTarget),
            },
          }),
        );
      });
    },
    {
      rows: () => [
        ["arm", "seed", "value", "low", "high"],
        ...rows.flatMap((row) => [
          [row.name, "all", row.value, row.low, row.high],
          ...row.seeds.map((one) => [row.name, one.seed, one.value]),
        ]),
      ],
      label: `${title}: ${rows.map((row) => `${row.name} ${show(row.value)}`).join(", ")}`,
    },
  );
}
