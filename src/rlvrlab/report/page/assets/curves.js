// Metrics over steps: held-out accuracy large, skills as small multiples, every other metric on demand.

const isShare = (key) =>
  /(\/acc|acc_|rate|ratio$|zero_variance|clipfrac|suspicious)/.test(key) && !/\/ratio$/.test(key);

function viewCurves(data, section) {
  const marks = data.marks;
  const all = [
    ...data.main.series,
    ...data.skills.flatMap((panel) => panel.series),
    ...data.others.flatMap((panel) => panel.series),
  ];
  const xDomain = bounds(all.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]));
  const source = section.source;
  const small = (panel) => {
    const share =
      isShare(panel.series.length ? panel.series[0].key || panel.name : panel.name) &&
      panel.series.every((line) => line.y.every((v) => !known(v) || (v >= 0 && v <= 1)));
    return linePlot(panel.name, panel.series, {
      height: 132,
      small: true,
      marks,
      xDomain,
      source,
      y: share ? (v) => percent(v, 0) : number,
      domain: share ? shares(panel.series) : null,
    });
  };
  return [
    data.main.series.length
      ? linePlot("Accuracy", data.main.series, {
          height: 320,
          marks,
          xDomain,
          source,
          y: (v) => percent(v, 0),
          domain: shares(data.main.series),
          xTitle: "step",
        })
      : h("p", { className: "empty" }, "No accuracy is recorded yet."),
    data.skills.length
      ? [h("h3", {}, "By skill, held out"), h("div", { className: "multiples" }, data.skills.map(small))]
      : null,
    data.others.length ? metricsBrowser(data.others, small, (app.memory[section.id] ??= {})) : null,
  ];
}

function metricsBrowser(panels, draw, memory) {
  const grid = h("div", { className: "multiples" });
  const shown = 6;
  const more = h("button", {
    type: "button",
    className: "quiet",
    on: {
      click: () => {
        memory.open = !memory.open;
        update();
      },
    },
  });
  const find = h("input", {
    type: "search",
    placeholder: "find a metric",
    "aria-label": "Find a metric",
    on: {
      input: () => {
        memory.words = find.value;
        update();
      },
    },
  });
  find.value = memory.words || "";
  function update() {
    const { open } = memory,
      wanted = (memory.words || "").toLowerCase();
    const found = panels.filter((panel) => panel.name.toLowerCase().includes(wanted));
    const taken = open || wanted ? found : found.slice(0, shown);
    grid.replaceChildren(...taken.map(draw));
    more.hidden = Boolean(wanted) || panels.length <= shown;
    more.textContent = open ? "show fewer" : `show all ${panels.length} metrics`;
  }
  update();
  return [
    h("div", { className: "row spread" }, h("h3", {}, "Metrics"), h("span", { className: "row" }, find, more)),
    grid,
  ];
}
