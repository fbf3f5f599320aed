// What moves with the pointer: a cross through all charts of one axis, a tip beside it, a click that tells the source.

function follow(svg, lines, { toX, toY, box }, show, options) {
  const cross = s("line", { className: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const [wide, tall] = [Math.max(0, box.right - box.left), Math.max(0, box.bottom - box.top)];
  const area = rectangle("area", box.left, box.top, wide, tall);
  const find = (event) => nearest(event.clientX - svg.getBoundingClientRect().left);
  const nearest = (at) =>
    lines
      .map((line) => {
        let best = 0;
        for (let i = 1; i < line.x.length; i += 1)
          if (Math.abs(toX(line.x[i]) - at) < Math.abs(toX(line.x[best]) - at)) best = i;
        return { line, i: best, far: Math.abs(toX(line.x[best]) - at) };
      })
      .sort((a, b) => a.far - b.far);
  // A pointer over one chart marks the same place in all charts over the same axis.
  const value = s("text", { className: "here-value", y: box.top + 10, visibility: "hidden" });
  svg.crossAt = (x, own) => {
    const inside = x !== null && toX(x) >= box.left - 1 && toX(x) <= box.right + 1;
    for (const node of [cross, value]) node.setAttribute("visibility", inside ? "visible" : "hidden");
    if (!inside) return;
    cross.setAttribute("x1", toX(x));
    cross.setAttribute("x2", toX(x));
    const { line, i } = nearest(toX(x))[0];
    const left = toX(x) > (box.left + box.right) / 2;
    value.textContent = own ? "" : show(line.y[i]);
    value.setAttribute("x", toX(x) + (left ? -4 : 4));
    value.setAttribute("text-anchor", left ? "end" : "start");
  };
  svg.dataset.axis = options.xName || "step";
  const everywhere = (x) => {
    for (const other of document.querySelectorAll(`svg[data-axis="${svg.dataset.axis}"]`)) other.crossAt?.(x, other === svg);
  };
  area.addEventListener("pointermove", (event) => {
    const found = find(event);
    const x = found[0].line.x[found[0].i];
    everywhere(x);
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
    everywhere(null);
    untip();
  });
  area.addEventListener("click", (event) => {
    const { line, i } = find(event)[0];
    untip();
    tellSource(
      line.from || {
        file: line.file || options.source || "logs/metrics.jsonl",
        line: line.line && line.line[i],
        step: line.steps ? line.steps[i] : options.xName ? undefined : line.x[i],
        key: line.key,
      },
      { getBoundingClientRect: () => ({ left: event.clientX, top: event.clientY, bottom: event.clientY }) },
    );
  });
  svg.append(cross, value, area);
}

function tip(event, head, rows) {
  const box = app.tip;
  box.replaceChildren(
    el("b", head),
    ...rows.map(([paint, name, value]) =>
      el("div", paint ? swatch(paint) : null, el("span", name), el("span.value", value)),
    ),
  );
  box.hidden = false;
  const right = event.clientX + 16 + box.offsetWidth > innerWidth;
  box.style.left = `${right ? Math.max(4, event.clientX - box.offsetWidth - 12) : event.clientX + 14}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 6)}px`;
}

// What a mark does under the pointer: its tip, and at a click what `act` does with the mark.
const pointed = (head, rows, act) => ({
  pointermove: (event) => tip(event, head, rows),
  pointerleave: untip,
  click: (event) => {
    untip();
    act(event.currentTarget);
  },
});

function untip() {
  app.tip.hidden = true;
}
