// Many runs: a table with the columns one wants, seeds together or apart, and what changed drawn against the result.

const HIDDEN = ["low", "high"];

function viewRuns(data, section) {
  const memory = (app.memory[section.id] ??= { hidden: [], grouped: false, sort: "", down: true });
  const of = (row, name) => row[data.columns.indexOf(name)];
  const picture = runsPicture(data, of);
  const body = el("div");
  const pickers = data.columns
    .filter((name) => !HIDDEN.includes(name) && name !== "arm")
    .map((name) => {
      const box = tickBox(!memory.hidden.includes(name), { column: name }, (ticked) => {
        memory.hidden = ticked ? memory.hidden.filter((one) => one !== name) : [...memory.hidden, name];
        draw();
      });
      return el("label", box, name);
    });
  const group = tickBox(memory.grouped, { field: "grouped" }, (ticked) => {
    memory.grouped = ticked;
    draw();
  });
  function draw() {
    const rows = memory.grouped ? groupedRuns(data, of) : data.rows;
    const shown = data.columns.filter((name) => !HIDDEN.includes(name) && !memory.hidden.includes(name));
    const sorted = memory.sort ? [...rows].sort((a, b) => order(of(a, memory.sort), of(b, memory.sort), memory.down)) : rows;
    const sortBy = (name) => {
      memory.down = memory.sort === name ? !memory.down : true;
      memory.sort = name;
      draw();
    };
    const sign = (name) => (memory.sort === name ? (memory.down ? " ▾" : " ▴") : "");
    const head = shown.map((name) => button(`${name}${sign(name)}`, () => sortBy(name), { className: "sorter" }));
    body.replaceChildren(table(head, sorted.map((row) => shown.map((name) => runCell(row, name, of)))));
  }
  draw();
  return [
    picture,
    el(
      "div.chart-fields",
      el("label", group, "one row per arm"),
      el("details", el("summary", "columns"), el("div.pick-columns", pickers)),
    ),
    body,
  ];
}

function runCell(row, name, of) {
  const value = of(row, name);
  if (name === "result")
    return el(
      "span.measure",
      percent(value),
      known(of(row, "low")) ? el("span.range", range(of(row, "low"), of(row, "high"))) : null,
    );
  return known(value) ? number(value) : value === null || value === undefined ? "–" : String(value);
}

// Numbers by size, texts by name, what is unknown last.
function order(a, b, down) {
  if ((a === null) !== (b === null)) return a === null ? 1 : -1;
  const way = down ? -1 : 1;
  return known(a) && known(b) ? way * (a - b) : way * String(a).localeCompare(String(b));
}

// One row per arm: the mean over its seeds and their range. A seed counts once, however often it was run.
function groupedRuns(data, of) {
  const arms = Map.groupBy(data.rows, (row) => of(row, "arm"));
  return [...arms.values()].map((rows) => {
    const values = rows.map((row) => of(row, "result")).filter(known);
    const [low, high] = values.length > 1 ? bounds(values) : [of(rows[0], "low"), of(rows[0], "high")];
    const seeds = new Set(rows.map((row) => of(row, "seed"))).size;
    const told = {
      run: `${rows.length} run${rows.length > 1 ? "s" : ""}`,
      seed: `${seeds} seed${seeds > 1 ? "s" : ""}`,
      status: [...new Set(rows.map((row) => of(row, "status")))].join(", "),
      result: values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : null,
      low,
      high,
    };
    return data.columns.map((name) => (name in told ? told[name] : of(rows[0], name)));
  });
}

// One changed number: result against it. Several: parallel coordinates that end in the result.
function runsPicture(data, of) {
  const measured = data.rows.filter((row) => known(of(row, "result")));
  const numeric = data.keys.filter((key) => measured.every((row) => known(of(row, key))));
  const given = data.keys.filter((key) => measured.every((row) => of(row, key) !== null)); // a missing key has no place
  const axesOf = given.filter((key) => numeric.includes(key) || new Set(measured.map((row) => of(row, key))).size <= 8);
  if (measured.length < 2 || !axesOf.length) return null;
  return axesOf.length === 1 && numeric.length === 1
    ? runsScatter(measured, numeric[0], of)
    : runsCoordinates(measured, axesOf.slice(0, 6), numeric, of);
}

function csvOfRuns(rows, keys, of) {
  const names = ["arm", "run", "seed", ...keys, "result", "low", "high"];
  return [names, ...rows.map((row) => names.map((name) => of(row, name)))];
}

const armColour = (rows, row, of) => colour([...new Set(rows.map((one) => of(one, "arm")))].indexOf(of(row, "arm")));

function runTip(event, row, keys, of) {
  tip(event, `${of(row, "run")} · seed ${of(row, "seed")}`, [
    ["", "result", `${percent(of(row, "result"))} ${range(of(row, "low"), of(row, "high"))} on ${of(row, "measured on")}`],
    ...keys.map((key) => ["", key, known(of(row, key)) ? number(of(row, key)) : String(of(row, key))]),
  ]);
}

function runsScatter(rows, key, of) {
  return figure(
    `Result against ${key}`,
    280,
    (svg, width, height) => {
      const [low, high] = bounds(rows.map((row) => of(row, key)));
      const room = (high - low || 1) * 0.08;
      const { toX, toY } = axes(svg, width, height, [low - room, high + room], [0, 1], {
        xTitle: key,
        yTitle: "result",
        y: (v) => percent(v, 0),
      });
      for (const row of rows) {
        const stroke = armColour(rows, row, of);
        const point = { value: of(row, "result"), low: of(row, "low"), high: of(row, "high") };
        whiskers(svg, toX(of(row, key)), toY, point, stroke);
        const dot = svg.lastChild;
        dot.addEventListener("pointermove", (event) => runTip(event, row, [key], of));
        dot.addEventListener("pointerleave", untip);
      }
    },
    { rows: () => csvOfRuns(rows, [key], of) },
  );
}

function runsCoordinates(rows, keys, numeric, of) {
  const names = [...keys, "result"];
  const scales = names.map((name) => {
    const values = rows.map((row) => of(row, name));
    if (name === "result" || numeric.includes(name)) {
      const [low, high] = bounds(values);
      const shown = [low, high].map(name === "result" ? (v) => percent(v) : number);
      if (low === high) return { at: () => 0.5, ends: ["", shown[1]] };
      return { at: (v) => (v - low) / (high - low), ends: shown };
    }
    const kinds = [...new Set(values.map(String))].sort();
    return { at: (v) => kinds.indexOf(String(v)) / Math.max(1, kinds.length - 1), ends: [kinds[0], kinds[kinds.length - 1]] };
  });
  return figure(
    "What changed, and the result",
    280,
    (svg, width, height) => {
      const [left, right, top, bottom] = [56, width - 56, 34, height - 30];
      const x = (i) => left + (i * (right - left)) / (names.length - 1);
      const y = (i, row) => bottom - scales[i].at(of(row, names[i])) * (bottom - top);
      const most = Math.max(6, Math.floor((right - left) / (names.length - 1) / 7));
      names.forEach((name, i) => {
        const short = name.length > most ? `…${name.slice(1 - most)}` : name;
        svg.append(
          straight("axis", [x(i), x(i)], [top, bottom]),
          lettering("title", x(i), 12, short, "middle"),
          lettering("tick", x(i), top - 6, scales[i].ends[1].slice(0, 14), "middle"),
          lettering("tick", x(i), bottom + 16, scales[i].ends[0].slice(0, 14), "middle"),
        );
      });
      for (const row of rows)
        svg.append(
          s("path", {
            className: "coordinate",
            d: path(names.map((_, i) => [x(i), y(i, row)])),
            style: { stroke: armColour(rows, row, of) },
            on: { pointermove: (event) => runTip(event, row, keys, of), pointerleave: untip },
          }),
        );
    },
    { rows: () => csvOfRuns(rows, keys, of) },
  );
}
