// Saving a figure: as SVG, as PNG painted on a canvas (no image is loaded, so the policy stays closed), its numbers as CSV.

const KEPT = [
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
const PNG_SCALE = 2;

const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_|_$/g, "") || "figure";

function saveButtons(svg, title, rows) {
  const saver = (kind, act) => {
    const told = { title: `Save as ${kind}`, "aria-label": `Save ${title} as ${kind}`, data: { kind } };
    return button(kind, act, { className: "quiet save", ...told });
  };
  return el(
    "span.saves",
    saver("SVG", () => saveBlob(new Blob([svgText(svg)], { type: "image/svg+xml" }), `${slug(title)}.svg`)),
    saver("PNG", () => painted(svg).toBlob((blob) => saveBlob(blob, `${slug(title)}.png`))),
    rows ? saver("CSV", () => saveBlob(new Blob([csvText(rows())], { type: "text/csv" }), `${slug(title)}.csv`)) : null,
  );
}

function saveBlob(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function svgText(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")],
    to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, i) => {
    const found = getComputedStyle(node);
    for (const name of KEPT) to[i].setAttribute(name, found.getPropertyValue(name));
    to[i].removeAttribute("class");
    to[i].removeAttribute("style");
  });
  copy.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(copy);
}

// Text that a spreadsheet would take for a formula gets an apostrophe, as in the tables beside the report.
function csvText(rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

function painted(svg) {
  const width = svg.clientWidth,
    height = svg.clientHeight;
  const canvas = h("canvas", { width: width * PNG_SCALE, height: height * PNG_SCALE });
  const pen = canvas.getContext("2d");
  pen.scale(PNG_SCALE, PNG_SCALE);
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("color-scheme").includes("dark")
    ? getComputedStyle(document.querySelector(".section") || document.body).backgroundColor
    : "#fff";
  pen.fillRect(0, 0, width, height);
  for (const node of svg.querySelectorAll("line, path, rect, circle, text")) paintNode(pen, node);
  return canvas;
}

function paintNode(pen, node) {
  const style = getComputedStyle(node);
  if (style.visibility === "hidden" || style.display === "none") return;
  const of = (name) => Number(node.getAttribute(name)) || 0;
  pen.save();
  const turn = node.transform.baseVal.consolidate()?.matrix;
  if (turn) pen.transform(turn.a, turn.b, turn.c, turn.d, turn.e, turn.f);
  pen.globalAlpha = Number(style.opacity);
  pen.lineWidth = parseFloat(style.strokeWidth) || 1;
  pen.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
  const shape = new Path2D(node.tagName === "path" ? node.getAttribute("d") || "" : "");
  if (node.tagName === "line") {
    shape.moveTo(of("x1"), of("y1"));
    shape.lineTo(of("x2"), of("y2"));
  }
  if (node.tagName === "rect") shape.rect(of("x"), of("y"), of("width"), of("height"));
  if (node.tagName === "circle") shape.arc(of("cx"), of("cy"), of("r"), 0, 2 * Math.PI);
  const ink = (value) => value !== "none" && value !== "rgba(0, 0, 0, 0)";
  if (node.tagName === "text") {
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.textAlign = { middle: "center", end: "right" }[style.textAnchor] || "left";
    pen.fillStyle = style.fill;
    pen.fillText(node.textContent, of("x"), of("y"));
  } else {
    if (node.tagName !== "line" && ink(style.fill)) {
      pen.fillStyle = style.fill;
      pen.fill(shape);
    }
    if (ink(style.stroke)) {
      pen.strokeStyle = style.stroke;
      pen.stroke(shape);
    }
  }
  pen.restore();
}
