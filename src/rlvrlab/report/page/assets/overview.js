// Numbers with their intervals, health lights, events; the shares of an evaluation or a probe.

const LIGHTS = { good: ["✓", "well"], notice: ["!", "look"], alarm: ["✕", "act"], absent: ["–", "not recorded"] };

function headlineTile(name, point, note, plain) {
  const show = unit(plain);
  const value = el("div.value", sourced(show(point.value), point.from));
  return el(
    "div.tile",
    el("div.name", name),
    value,
    known(point.low) ? [intervalBar(point, plain), el("div.range", range(point.low, point.high, show))] : null,
    note ? el("div.note", note) : null,
  );
}

function intervalBar(point, plain) {
  if (plain && !(point.high <= 1)) return null;
  return s(
    "svg",
    { className: "whisker", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    straight("rail", [0, 100], [4, 4]),
    straight("span", [100 * point.low, 100 * point.high], [4, 4]),
    straight("here", [100 * point.value, 100 * point.value], [0, 8]),
  );
}

function viewLight(light) {
  const [sign, word] = LIGHTS[light.state] || LIGHTS.absent;
  const outside =
    light.outside && light.outside[0] && light.was
      ? `outside in ${number(light.outside[0])} of ${number(light.outside[1])} steps, last at step ${light.was.step}: ${number(light.was.value)}`
      : "";
  const well = light.state === "good";
  return h(
    "li",
    { className: `light ${light.state}` },
    h("span", { className: "sign", title: word, role: "img", "aria-label": word }, sign),
    el(
      "div.what",
      el(
        "div.reading",
        el("code", light.metric),
        light.history.length > 1 ? sparkline(light.history) : el("span"),
        el("span.now", light.state === "absent" ? "not recorded" : sourced(number(light.value), light.from)),
        light.range ? el("span.range", light.range) : null,
      ),
      well || light.state === "absent"
        ? null
        : el("p", `${light.meaning}.${outside ? ` (${outside})` : ""} `, el("b", "What to do: "), `${light.remedy}.`),
    ),
  );
}

function eventList(rows) {
  return el(
    "ol.events",
    rows.map((row) =>
      el(
        "li",
        el("span.time", row.time.replace("T", " ").replace("Z", "")),
        h("span", { className: `kind ${row.kind === "warning" ? "warn" : ""}` }, row.kind),
        el(
          "span.text",
          row.text,
          " ",
          row.from.line ? sourced(`line ${row.from.line}`, row.from, { className: "sourced tiny" }) : null,
        ),
      ),
    ),
  );
}

function viewSummary(data) {
  const problems = known(data.problems) ? `${number(data.problems)} problems` : "";
  const samples = known(data.samples) ? `${number(data.samples)} answers` : "";
  const counted = [problems, samples].filter(Boolean).join(", ");
  const unjudged = data.unjudged
    ? el(
        "p.callout.caution",
        `${number(data.unjudged)} answers could not be judged and are left out`,
        known(data.bounds[0])
          ? `; accepted@1 would be ${percent(data.bounds[0])} if all of them were wrong and ${percent(data.bounds[1])} if right.`
          : ".",
      )
    : null;
  const kinds = [...new Set(data.by.map((row) => row.kind))];
  return [
    data.findings.map((text) => el("p.callout", text)),
    unjudged,
    counted ? el("p.note", counted) : null,
    el("div.tiles", data.tiles.map((tile) => headlineTile(tile.name, tile, "", tile.plain))),
    kinds.map((kind) => [
      el("h3", `By ${kind}`),
      table(
        [kind, "problems", "accepted@1", "95 % interval"],
        data.by
          .filter((row) => row.kind === kind)
          .map((row) => [
            row.name,
            number(row.problems),
            percent(row.accepted_at_1),
            range(row.accepted_at_1_low, row.accepted_at_1_high),
          ]),
      ),
    ]),
  ];
}
