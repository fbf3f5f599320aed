// Lines over steps with bands and marks, what moves with the pointer, and legends.

function drawMarks(svg, marks, toX, box, small) {
  let last = -Infinity,
    low = 0;
  for (const mark of [...(marks || [])].sort((a, b) => a.x - b.x)) {
    const x = toX(mark.x);
    svg.append(s("line", { className: "mark", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    if (small) continue;
    low = x - last < 44 ? low + 1 : 0;
    if (low < 3) svg.append(s("text", { className: "mark-name", x: x + 4, y: box.top + 10 + 13 * low }, mark.name));
    last = x;
  }
}

function drawLine(svg, line, index, toX, toY) {
  const stroke = line.colour || colour(index);
  if (line.low && line.high) {
    const upper = line.x.map((x, i) => [toX(x), toY(line.high[i])]);
    const lower = line.x.map((x, i) => [toX(x), toY(line.low[i])]).reverse();
    const whole = [...upper, ...lower].filter((point) => known(point[0]) && known(point[1]));
    if (whole.length > 3) svg.append(s("path", { className: "band", d: `${path(whole)}Z`, style: { fill: stroke } }));
  }
  const calm = smoothed(line);
  const draw = (values, className) =>
    svg.append(
      s("path", {
        className,
        d: path(line.x.map((x, i) => [toX(x), toY(values[i])])),
        style: { stroke, "stroke-dasharray": dash(index) },
      }),
    );
  draw(line.y, calm ? "line raw" : line.faint ? "line faint" : "line");
  if (calm) draw(calm, "line");
  if (line.points && line.x.length <= 60) {
    line.x.forEach(
      (x, i) =>
        known(line.y[i]) &&
        svg.append(s("circle", { className: "dot", cx: toX(x), cy: toY(line.y[i]), r: 3, style: { fill: stroke } })),
    );
  }
}

// Noise is shown pale, its running mean strong: a centred window of a thirtieth of the points.
function smoothed(line) {
  const n = line.y.length,
    half = Math.round(n / 60);
  if (n < 60 || line.low || line.points || !line.y.every(known)) return null;
  const sums = [0];
  for (const value of line.y) sums.push(sums[sums.length - 1] + value);
  return line.y.map((_, i) => {
    const from = Math.max(0, i - half),
      to = Math.min(n, i + half + 1);
    return (sums[to] - sums[from]) / (to - from);
  });
}

function legend(lines) {
  if (lines.length < 2) return null;
  return h(
    "span",
    { className: "legend" },
    lines.map((line, i) =>
      h(
        "span",
        { className: "key" },
        h("i", { className: "swatch", style: { background: line.colour || colour(i) } }),
        line.name,
        line.seeds > 1 ? ` (${line.seeds} seeds)` : "",
      ),
    ),
  );
}

// Lines over steps, with bands, phase marks, a crosshair, and a click that tells the source of the nearest point.
function linePlot(title, lines, options = {}) {
  const drawn = lines.filter((line) => line.x.length);
  const show = options.y || number;
  const label = `${title}: ${drawn.map((line) => `${line.name} from ${show(line.y[0])} to ${show(line.y[line.y.length - 1])}`).join("; ")}`;
  return figure(
    title,
    options.height || 260,
    (svg, width, height) => {
      const x = options.xDomain || bounds(drawn.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]));
      const wide = drawn.flatMap((line) =>
        options.tight || line.binned ? line.y : [...line.y, ...(line.low || []), ...(line.high || [])],
      );
      const y = options.domain || padded(bounds(wide));
      const scale = axes(svg, width, height, x, y, { ...options, y: show });
      drawMarks(svg, options.marks, scale.toX, scale.box, options.small);
      drawn.forEach((line, i) => drawLine(svg, line, i, scale.toX, scale.toY));
      if (options.over) options.over(svg, scale);
      follow(svg, drawn, scale, show, options);
    },
    { legend: options.small ? null : legend(drawn), label, className: options.small ? "small" : "" },
  );
}

// Shares start at 0; the top is 100 % unless everything is far below it.
function shares(lines) {
  const [, high] = bounds(lines.flatMap((line) => [...line.y, ...(line.high || [])]));
  return [0, high < 0.45 ? Math.max(0.02, high * 1.15) : 1];
}

const padded = ([low, high]) => {
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
};

function follow(svg, lines, { toX, toY, box }, show, options) {
  const cross = s("line", { className: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const area = s("rect", {
    className: "area",
    x: box.left,
    y: box.top,
    width: Math.max(0, box.right - box.left),
    height: Math.max(0, box.bottom - box.top),
  });
  const find = (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    return lines
      .map((line) => {
        let best = 0;
        for (let i = 1; i < line.x.length; i += 1)
          if (Math.abs(toX(line.x[i]) - at) < Math.abs(toX(line.x[best]) - at)) best = i;
        return { line, i: best, far: Math.abs(toX(line.x[best]) - at) };
      })
      .sort((a, b) => a.far - b.far);
  };
  area.addEventListener("pointermove", (event) => {
    const found = find(event);
    const x = found[0].line.x[found[0].i];
    cross.setAttribute("x1", toX(x));
    cross.setAttribute("x2", toX(x));
    cross.setAttribute("visibility", "visible");
    const named = (value) => `${options.xName || "step"} ${(options.x || number)(value)}`;
    const near = [...found].sort((a, b) => lines.indexOf(a.line) - lines.indexOf(b.line));
    tip(
      event,
      named(x),
      near.map(({ line, i }) => {
        const bounds = line.low && known(line.low[i]) ? `  (${show(line.low[i])} … ${show(line.high[i])})` : "";
        const elsewhere = line.x[i] === x ? "" : `  at ${named(line.x[i])}`;
        return [line.colour || colour(lines.indexOf(line)), line.name, `${show(line.y[i])}${bounds}${elsewhere}`];
      }),
    );
  });
  area.addEventListener("pointerleave", () => {
    cross.setAttribute("visibility", "hidden");
    untip();
  });
  area.addEventListener("click", (event) => {
    const { line, i } = find(event)[0];
    untip();
    tellSource(
      line.from || {
        file: line.file || options.source || "logs/metrics.jsonl",
        line: line.line && line.line[i],
        step: options.xName ? undefined : line.x[i],
        key: line.key,
      },
      { getBoundingClientRect: () => ({ left: event.clientX, top: event.clientY, bottom: event.clientY }) },
    );
  });
  svg.append(cross, area);
}

function tip(event, head, rows) {
  const box = app.tip;
  box.replaceChildren(
    h("b", {}, head),
    ...rows.map(([paint, name, value]) =>
      h(
        "div",
        {},
        paint ? h("i", { className: "swatch", style: { background: paint } }) : null,
        h("span", {}, name),
        h("span", { className: "value" }, value),
      ),
    ),
  );
  box.hidden = false;
  const right = event.clientX + 16 + box.offsetWidth > innerWidth;
  box.style.left = `${right ? Math.max(4, event.clientX - box.offsetWidth - 12) : event.clientX + 14}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 6)}px`;
}

function untip() {
  app.tip.hidden = true;
}
