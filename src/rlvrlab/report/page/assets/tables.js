// Tables, facts, events, the chain of a study with its decisions, and the pairs of an audit.

const viewTable = (data) => [
  data.command ? el("code.command", data.command) : null,
  data.rows.length
    ? table(
        data.columns,
        data.rows.map((row) => row.map((cell, i) => (i === 0 ? el("code", cell) : cell))),
      )
    : null,
];

function viewGrid(data) {
  const cell = (one) => {
    const show = unit(one.plain);
    return el(
      "span.measure",
      one.value === null || one.value === undefined ? "–" : sourced(show(one.value), one.from),
      known(one.low) ? el("span.range", range(one.low, one.high, show)) : null,
    );
  };
  return table(["", ...data.columns], data.rows.map((row, i) => [row, ...data.cells[i].map(cell)]));
}

const viewEvents = (data) => eventList([...data].reverse());

function viewFacts(data) {
  const draw = (value) => {
    if (value === null || typeof value !== "object") return el("span", value === null ? "–" : String(value));
    if (Array.isArray(value))
      return el("span", value.map((one) => (typeof one === "object" ? JSON.stringify(one) : String(one))).join(", "));
    return el("dl.facts.nested", Object.entries(value).map(([name, one]) => [el("dt", name), el("dd", draw(one))]));
  };
  return el("details", el("summary", "All facts"), draw(data));
}

function viewChain(data) {
  return [
    app.sections.verdict ? null : cautions(data),
    el(
      "ol.chain",
      data.stages.map((stage) =>
        h(
          "li",
          { className: `stage ${stage.status}` },
          el("div.row.spread", el("b", stage.name), el("span.pill", stage.status)),
          stage.question ? el("p", stage.question) : null,
          stage.needs.length ? el("p.note", `after ${stage.needs.join(", ")}`) : null,
          stage.inputs.map((text) => el("p.note", el("code", text))),
          el(
            "ul.arms",
            stage.arms.map((arm) =>
              h(
                "li",
                { className: arm.chosen ? "chosen" : arm.dropped ? "dropped" : "" },
                arm.chosen ? "★ " : "",
                arm.name,
                ` (${arm.trials})`,
                arm.dropped ? el("span.note", ` ${arm.dropped}`) : null,
              ),
            ),
          ),
          stage.decision ? el("p.decision", stage.decision) : null,
        ),
      ),
    ),
  ];
}

function viewDecisions(data) {
  return data.map((one) =>
    el(
      "article.decision-card",
      el(
        "div.row.spread",
        el("b", `${one.stage}: ${one.chosen}`),
        h(
          "span",
          { className: `pill ${one.outcome === "better" ? "right" : ""}` },
          one.by === "person" ? "a person's choice" : one.outcome,
        ),
      ),
      el("p", one.words),
      el(
        "p.note",
        dotted(
          one.time,
          one.kind,
          one.rule ? `rule ${one.rule}` : "",
          `by ${one.by}${one.who ? ` (${one.who})` : ""}`,
          one.recommended && one.recommended !== one.chosen ? `the rule recommends ${one.recommended}` : "",
        ),
      ),
      one.reason ? el("blockquote", one.reason) : null,
      one.comparisons.length
        ? table(
            ["metric", "leader", "versus", "difference", "simultaneous 95 %", "outcome", "p"],
            one.comparisons.map((row) => {
              const shown = row.share ? (value) => `${points(value)} points` : number;
              return [
                row.metric,
                row.arm,
                row.versus,
                sourced(shown(row.mean), one.from),
                range(row.low, row.high, shown),
                row.outcome,
                chance(row.p),
              ];
            }),
          )
        : null,
    ),
  );
}

function viewPairs(data) {
  let at = 0,
    kind = "";
  const body = el("div");
  const kinds = [...new Set(data.hits.map((hit) => hit.kind))];
  const shown = () => data.hits.filter((hit) => !kind || hit.kind === kind);
  const place = el("span.count");
  const move = (by) => {
    at = Math.max(0, Math.min(shown().length - 1, at + by));
    draw();
  };
  const choices = [["", "all kinds"], ...kinds.map((name) => [name, name])];
  const select = selection({ "aria-label": "Kind" }, choices, null, (value) => {
    kind = value;
    at = 0;
    draw();
  });
  function draw() {
    const hits = shown(),
      hit = hits[at];
    place.textContent = hits.length
      ? `${at + 1} of ${hits.length}${data.total > data.hits.length ? ` (of ${data.total} recorded)` : ""}`
      : "none";
    if (!hit) {
      body.replaceChildren(el("p.empty", "No two rows have anything in common."));
      return;
    }
    const marks = differences(hit.left.text, hit.right.text);
    const side = (one, lines) =>
      el(
        "div.answer",
        el("b.which", `${one.split} row ${one.row}`),
        el("p.note", [one.id, one.role ? `role ${one.role}` : "no role"].join(" · ")),
        h(
          "pre",
          { dir: "ltr", tabindex: "0" },
          lines.map(([line, same]) => h("span", { className: same ? "same" : "differs" }, `${line}\n`)),
        ),
      );
    body.replaceChildren(
      el(
        "div.pills",
        h(
          "span",
          { className: `pill ${hit.leak ? "wrong" : ""}` },
          hit.leak ? "✕ crosses roles" : hit.across ? "across splits" : "inside a split",
        ),
        el("span.pill", `${hit.kind} by ${hit.part}`),
        known(hit.jaccard) ? el("span.pill", `Jaccard ${hit.jaccard}`) : null,
        el("span.pill", sourced(`line ${hit.from.line}`, hit.from)),
        hit.passage ? el("span.note", `“${hit.passage}”`) : null,
      ),
      el("div.sides", side(hit.left, marks[0]), side(hit.right, marks[1])),
    );
  }
  app.keys.pairs = (event) => {
    const by = { j: 1, k: -1 }[event.key];
    if (by) move(by);
    return Boolean(by);
  };
  draw();
  return [
    el("div.row", select, button("← previous", () => move(-1)), button("next →", () => move(1)), place),
    body,
  ];
}
