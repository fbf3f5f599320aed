// The frame of every picture, drawn by hand in SVG: figures that follow their width, axes, ticks, saving.

const COLOURS = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)", "var(--s7)"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const colour = (index) => COLOURS[index % COLOURS.length];
const dash = (index) => DASHES[Math.floor(index / COLOURS.length) % DASHES.length];

// A figure that draws itself again whenever its width changes.
function figure(title, height, draw, options = {}) {
  const svg = s("svg", { role: "img", "aria-label": options.label || title, height });
  const holder = h("div", { className: "canvas", style: { "min-height": `${height}px` } }, svg);
  const save = h(
    "button",
    {
      type: "button",
      className: "quiet save",
      title: "Save this figure as SVG",
      "aria-label": `Save ${title} as SVG`,
      on: { click: () => saveSvg(svg, title) },
    },
    "SVG",
  );
  const caption = h("figcaption", {}, h("span", { className: "caption" }, title), options.legend, save);
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

function saveSvg(svg, title) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")],
    to = [copy, ...copy.querySelectorAll("*")];
  const kept = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "opacity",
    "fill-opacity",
    "font-size",
    "font-family",
    "font-weight",
    "text-anchor",
  ];
  from.forEach((node, i) => {
    const found = getComputedStyle(node);
    for (const name of kept) to[i].setAttribute(name, found.getPropertyValue(name));
    to[i].removeAttribute("class");
    to[i].removeAttribute("style");
  });
  copy.setAttribute("xmlns", SVG);
  const text = new XMLSerializer().serializeToString(copy);
  const link = h("a", {
    href: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })),
    download: `${slug(title)}.svg`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_|_$/g, "") || "figure";

function ticks(low, high, wanted) {
  const span = high - low || 1;
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || 10 * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step)
    found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
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
  const show = options.y || number;
  const yTicks = ticks(y[0], y[1], options.small ? 2 : 4);
  const widest = Math.max(...yTicks.map((tick) => show(tick).length), 2);
  const box = {
    left: Math.min(86, 12 + 6.6 * widest + (options.yTitle ? 16 : 0)),
    right: width - (options.right || 12),
    top: options.top || 10,
    bottom: height - (options.xTitle ? 40 : 22),
  };
  const toX = (value) => box.left + ((value - x[0]) / (x[1] - x[0] || 1)) * (box.right - box.left);
  const toY = (value) => box.bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * (box.bottom - box.top);
  for (const tick of yTicks) {
    svg.append(
      s("line", { className: "grid", x1: box.left, x2: box.right, y1: toY(tick), y2: toY(tick) }),
      s("text", { className: "tick", x: box.left - 6, y: toY(tick) + 4, "text-anchor": "end" }, show(tick)),
    );
  }
  const xTicks = options.xTicks || ticks(x[0], x[1], Math.max(2, Math.floor((box.right - box.left) / 90)));
  for (const tick of xTicks) {
    svg.append(
      s(
        "text",
        { className: "tick", x: toX(tick), y: box.bottom + 15, "text-anchor": "middle" },
        (options.x || number)(tick),
      ),
    );
  }
  svg.append(s("line", { className: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  if (options.xTitle)
    svg.append(
      s(
        "text",
        { className: "title", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" },
        options.xTitle,
      ),
    );
  if (options.yTitle) {
    const middle = (box.top + box.bottom) / 2;
    svg.append(
      s(
        "text",
        { className: "title", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" },
        options.yTitle,
      ),
    );
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
