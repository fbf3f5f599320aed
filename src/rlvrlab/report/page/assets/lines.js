// Lines over steps with bands and marks, smoothing, and legends.

function drawMarks(svg, marks, toX, box, small) {
  let last = -Infinity,
    low = 0;
  for (const mark of [...(marks || [])].sort((a, b) => a.x - b.x)) {
    const x = toX(mark.x);
    svg.append(straight("mark", [x, x], [box.top, box.bottom]));
    if (small) continue;
    low = x - last < 44 ? low + 1 : 0;
    if (low < 3) svg.append(lettering("mark-name", x + 4, box.top + 10 + 13 * low, mark.name));
    last = x;
  }
}

function drawLine(svg, line, index, toX, toY, smoothing) {
  const stroke = line.colour || colour(index);
  if (line.low && line.high) {
    for (const [from, to] of stretches(line)) {
      const points = (values) => line.x.slice(from, to).map((x, i) => [toX(x), toY(values[from + i])]);
      const whole = [...points(line.high), ...points(line.low).reverse()];
      const drawn = whole.filter((point) => known(point[0]) && known(point[1]));
      if (drawn.length > 3) svg.append(s("path", { className: "band", d: `${path(drawn)}Z`, style: { fill: stroke } }));
    }
  }
  const calm = smoothed(line, smoothing);
  const draw = (values, className) =>
    svg.append(
      s("path", {
        className,
        d: stretches(line)
          .map(([from, to]) => path(line.x.slice(from, to).map((x, i) => [toX(x), toY(values[from + i])])))
          .join(""),
        style: { stroke, "stroke-dasharray": line.branch ? "5 4" : dash(index) },
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

// A line's parts between its breaks, as [from, to): what a phase measured is not joined to what the next one did.
function stretches(line) {
  const ends = [0, ...(line.breaks || []), line.x.length];
  return ends.slice(1).map((to, i) => [ends[i], to]);
}

// Noise is shown pale, its running mean strong. The window is a share of the points: a thirtieth unless chosen.
const SMOOTHING = { none: 0, usual: null, strong: 0.1, "very strong": 0.25 };

function smoothed(line, share = null) {
  const n = line.y.length,
    half = Math.round((n * (share ?? 1 / 30)) / 2);
  if (share === null && (n < 60 || line.low || line.points)) return null;
  if (half < 1 || line.points || !line.y.every(known)) return null;
  const sums = [0];
  for (const value of line.y) sums.push(sums[sums.length - 1] + value);
  return stretches(line).flatMap(([first, end]) =>
    line.y.slice(first, end).map((_, i) => {
      const from = Math.max(first, first + i - half),
        to = Math.min(end, first + i + half + 1);
      return (sums[to] - sums[from]) / (to - from);
    }),
  );
}

function legend(lines) {
  if (lines.length < 2) return null;
  return el(
    "span.legend",
    lines.map((line, i) =>
      el("span.key", swatch(line.colour || colour(i)), line.name, line.seeds > 1 ? ` (${line.seeds} seeds)` : ""),
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
      const y = options.log ? decades(wide) : options.domain || padded(bounds(wide));
      const scale = axes(svg, width, height, x, y, { ...options, y: show });
      drawMarks(svg, options.marks, scale.toX, scale.box, options.small);
      drawn.forEach((line, i) => drawLine(svg, line, i, scale.toX, scale.toY, options.smoothing));
      if (options.over) options.over(svg, scale);
      follow(svg, drawn, scale, show, options);
    },
    {
      legend: options.small && drawn.length < 2 ? null : legend(drawn),
      label,
      className: options.small ? "small" : "",
      rows: () => lineRows(drawn, options),
    },
  );
}

function lineRows(lines, options) {
  const name = options.xName || "step";
  const mapped = lines.some((line) => line.steps); // x is answers, tokens or seconds: the step goes beside it
  const rows = lines.flatMap((line) =>
    line.x.map((x, i) => [line.name, ...(mapped ? [line.steps?.[i], x] : [x]), line.y[i], line.low?.[i], line.high?.[i]]),
  );
  return [["series", ...(mapped ? ["step", name] : [name]), "value", "low", "high"], ...rows];
}

// The range of a logarithmic axis, in powers of ten; what is not positive cannot be shown on it.
function decades(values) {
  const [low, high] = bounds(values.filter((value) => value > 0));
  const ends = [Math.log10(low || 0.1), Math.log10(high || 1)];
  const room = Math.max(0.05, (ends[1] - ends[0]) * 0.06);
  return [ends[0] - room, ends[1] + room];
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
