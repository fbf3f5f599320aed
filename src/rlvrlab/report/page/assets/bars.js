// Stacked bars and sparklines.

// Bars stacked from named counts; `bars` are {x, counts, from}.
function stackPlot(title, bars, kinds, paint, options = {}) {
  const total = (bar) => kinds.reduce((sum, kind) => sum + (bar.counts[kind] || 0), 0);
  const lines = kinds.map((kind) => ({ name: kind, colour: paint(kind) }));
  const label = `${title}: ${bars.length} bars; the last: ${kinds.map((kind) => `${kind} ${bars.length ? bars[bars.length - 1].counts[kind] || 0 : 0}`).join(", ")}`;
  return figure(
    title,
    options.height || 230,
    (svg, width, height) => {
      const high = Math.max(1, ...bars.map(total));
      const { toX, toY, box } = axes(svg, width, height, [-0.5, bars.length - 0.5], [0, high], {
        ...options,
        xTicks: [],
        y: number,
      });
      const each = (box.right - box.left) / Math.max(1, bars.length);
      const every = Math.ceil(58 / each);
      bars.forEach((bar, i) => {
        let sum = 0;
        const stepped = typeof bar.x === "number";
        const size = Math.min(64, Math.max(1, each * 0.82));
        const x = toX(i) - size / 2;
        for (const kind of kinds) {
          const count = bar.counts[kind] || 0;
          if (!count) continue;
          const [top, bottom] = [toY(sum + count), toY(sum)];
          const look = { style: { fill: paint(kind) } };
          svg.append(rectangle(kind === "unjudged" ? kind : "", x, top, size, Math.max(0, bottom - top), look));
          sum += count;
        }
        if (i % every === 0)
          svg.append(lettering("tick", toX(i), box.bottom + 15, stepped ? number(bar.x) : bar.x, "middle"));
        const share = (kind) => `${number(bar.counts[kind])}  (${percent(bar.counts[kind] / total(bar))})`;
        const told = kinds.filter((kind) => bar.counts[kind]).map((kind) => [paint(kind), kind, share(kind)]);
        const on = pointed(stepped ? `step ${bar.x}` : bar.x, told, (mark) => tellSource(bar.from, mark));
        svg.append(rectangle("area", toX(i) - each / 2, box.top, each, box.bottom - box.top, { on }));
      });
    },
    { legend: legend(lines), label },
  );
}

function sparkline(values) {
  const [least, most] = bounds(values);
  const y = (value) => 19 - ((value - least) / (most - least || 1)) * 16;
  return s(
    "svg",
    {
      className: "spark",
      viewBox: "0 0 96 22",
      preserveAspectRatio: "none",
      width: 76,
      height: 22,
      "aria-hidden": "true",
    },
    s("path", { d: path(values.map((value, i) => [2 + (92 * i) / Math.max(1, values.length - 1), y(value)])) }),
  );
}
