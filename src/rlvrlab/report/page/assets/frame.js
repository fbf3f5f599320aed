// The frame of every picture, drawn by hand in SVG: figures that follow their width, axes and ticks.

const COLOURS = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)", "var(--s7)"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const colour = (index) => COLOURS[index % COLOURS.length];
const dash = (index) => DASHES[Math.floor(index / COLOURS.length) % DASHES.length];

// Words in a picture; `anchor` says where they are held: start, middle or end.
const lettering = (className, x, y, words, anchor) => s("text", { className, x, y, "text-anchor": anchor }, words);
const rectangle = (className, x, y, width, height, properties) =>
  s("rect", { className, x, y, width, height, ...properties });
const straight = (className, [x1, x2], [y1, y2], stroke) =>
  s("line", { className, x1, x2, y1, y2, style: stroke && { stroke } });

// A figure that draws itself again whenever its width changes.
function figure(title, height, draw, options = {}) {
  const svg = s("svg", { role: "img", "aria-label": options.label || title, height });
  const holder = h("div", { className: "canvas", style: { "min-height": `${height}px` } }, svg);
  const save = saveButtons(svg, title, options.rows);
  const caption = el("figcaption", el("span.caption", title), options.legend, save);
  const box = h("figure", { className: options.className }, caption, holder);
  let width = 0;
  const redraw = () => {
    if (!width) return;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width);
    draw(svg, width, height);
  };
  new ResizeObserver((entries) => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now && now !== width) {
      width = now;
      redraw();
    }
  }).observe(holder);
  return box;
}

function ticksBy(step, low, high) {
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step)
    found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

// Round numbers between low and high: about as many as wanted, and never fewer than three.
function ticks(low, high, wanted) {
  const span = high - low || 1;
  let rough = span / Math.max(1, wanted),
    found = [];
  for (let tries = 0; tries < 8 && found.length < 3; tries += 1, rough /= 2) {
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) || 10 * power;
    found = ticksBy(step, low, high);
  }
  return found;
}

// For an axis in decades: powers of ten, with 2 and 5 between them, or 1 to 9, while there are few.
function logTicks(low, high) {
  for (const factors of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const found = [];
    for (let power = Math.floor(low); power <= Math.ceil(high); power += 1)
      for (const factor of factors) found.push(power + Math.log10(factor));
    const inside = found.filter((at) => at >= low - 1e-9 && at <= high + 1e-9);
    if (inside.length >= 3) return inside.length > 8 ? inside.filter((_, i) => i % Math.ceil(inside.length / 6) === 0) : inside;
  }
  return ticks(low, high, 4);
}

const bounds = (values) => {
  let low = Infinity,
    high = -Infinity;
  for (const value of values)
    if (known(value)) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return low > high ? [0, 1] : [low, high];
};

// Axes and grid; returns the two scales. `box` is the plotting area.
function axes(svg, width, height, x, y, options = {}) {
  const told = options.y || number;
  const show = options.log ? (value) => told(Number((10 ** value).toPrecision(2))) : told;
  const yTicks = options.log ? logTicks(y[0], y[1]) : ticks(y[0], y[1], options.small ? 3 : 4);
  const widest = Math.max(...yTicks.map((tick) => show(tick).length), 2);
  const box = {
    left: Math.min(86, 12 + 6.6 * widest + (options.yTitle ? 16 : 0)),
    right: width - (options.right || 12),
    top: options.top || 10,
    bottom: height - (options.xTitle ? 40 : 22),
  };
  const toX = (value) => box.left + ((value - x[0]) / (x[1] - x[0] || 1)) * (box.right - box.left);
  const upTo = (value) => box.bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * (box.bottom - box.top);
  const toY = options.log ? (value) => (value > 0 ? upTo(Math.log10(value)) : NaN) : upTo;
  for (const tick of yTicks) {
    const at = upTo(tick);
    svg.append(straight("grid", [box.left, box.right], [at, at]));
    svg.append(lettering("tick", box.left - 6, at + 4, show(tick), "end"));
  }
  const xTicks = options.xTicks || ticks(x[0], x[1], Math.max(2, Math.floor((box.right - box.left) / 90)));
  for (const tick of xTicks)
    svg.append(lettering("tick", toX(tick), box.bottom + 15, (options.x || number)(tick), "middle"));
  svg.append(straight("axis", [box.left, box.right], [box.bottom, box.bottom]));
  if (options.xTitle)
    svg.append(lettering("title", (box.left + box.right) / 2, height - 6, options.xTitle, "middle"));
  if (options.yTitle) {
    const transform = `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`;
    svg.append(s("text", { className: "title", transform, "text-anchor": "middle" }, options.yTitle));
  }
  return { toX, toY, box };
}

function path(points) {
  let text = "",
    open = false;
  for (const [x, y] of points) {
    if (!known(x) || !known(y)) {
      open = false;
      continue;
    }
    text += `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    open = true;
  }
  return text;
}
