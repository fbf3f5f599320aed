// The browser of answers: filters above, a list that holds only what is seen, the answer beside it.

const ROW = 46;
const FILTERS = ["words", "side", "skill", "verdict", "change", "error", "flag", "low", "high", "from", "to", "problem", "order"];
const SIGN = { 1: ["✓", "right"], 0: ["✕", "wrong"], "-1": ["?", "unjudged"] };
const KEYS = [
  ["j or ↓", "next answer"],
  ["k or ↑", "previous answer"],
  ["/", "search"],
  ["c", "compare with another answer to the same problem"],
  ["n", "the next one to compare with"],
  ["x", "clear all filters"],
  ["g, G", "first, last answer"],
  ["?", "these keys"],
  ["Esc", "close"],
];

function viewRollouts(data, section) {
  const all = new Rollouts(data);
  const state = { wanted: {}, found: [], sizes: new Map(), at: 0, other: null, comparing: all.names("side").length > 1 };
  const told = { className: "list", role: "listbox", tabindex: "0", "aria-label": "Answers" };
  const list = h("div", told, el("div.strip"));
  const detail = h("div", { className: "detail", "aria-live": "polite" });
  const count = h("span", { className: "count", role: "status" });
  const bar = filterBar(all, state, () => apply());

  function apply(keep) {
    const before = keep ?? (state.found.length ? state.found[state.at] : null);
    const began = performance.now();
    const chosen = all.select(state.wanted);
    const groups = all.grouped(chosen, before);
    if (state.wanted.order !== "recorded") groups.sort((a, b) => all.rank(a.shown) - all.rank(b.shown));
    state.found = groups.map((group) => group.shown);
    state.sizes = new Map(groups.map((group) => [group.shown, group.rows]));
    state.at = Math.max(0, state.found.indexOf(before));
    const different = groups.length < chosen.length ? `, ${number(groups.length)} different` : "";
    count.textContent = `${number(chosen.length)} of ${number(all.size)} answers${different}`;
    list.firstChild.style.height = `${state.found.length * ROW}px`;
    list.scrollTop = Math.max(0, state.at * ROW - list.clientHeight / 2);
    drawList();
    drawDetail();
    app.filter_ms = performance.now() - began;
  }

  function drawList() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4),
      last = Math.min(state.found.length, first + Math.ceil((list.clientHeight || 600) / ROW) + 8);
    const rows = [];
    for (let place = first; place < last; place += 1)
      rows.push(listRow(all, state.found[place], state.sizes.get(state.found[place]), place, place === state.at, () => pick(place)));
    list.firstChild.replaceChildren(...rows);
    list.setAttribute("aria-activedescendant", `answer-${state.at}`);
  }

  function pick(place, quiet) {
    state.at = Math.max(0, Math.min(state.found.length - 1, place));
    state.other = null;
    const top = state.at * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    drawList();
    drawDetail();
    if (!quiet) remember();
  }

  function drawDetail() {
    if (!state.found.length) {
      detail.replaceChildren(el("p.empty", "No answer fits these filters. x clears them."));
      return;
    }
    refill(detail, answerDetail(all, state, drawDetail));
    detail.scrollTop = 0;
  }

  function remember() {
    const told = Object.fromEntries(
      FILTERS.filter((name) => state.wanted[name]).map((name) => [name, state.wanted[name]]),
    );
    if (state.found.length) told.id = all.id[state.found[state.at]];
    history.replaceState(null, "", route("rollouts", told));
  }

  list.addEventListener("scroll", drawList);
  new ResizeObserver(drawList).observe(list);
  const act = {
    j: () => pick(state.at + 1),
    k: () => pick(state.at - 1),
    ArrowDown: () => pick(state.at + 1),
    ArrowUp: () => pick(state.at - 1),
    g: () => pick(0),
    G: () => pick(state.found.length - 1),
    c: () => {
      state.comparing = !state.comparing;
      drawDetail();
    },
    n: () => {
      state.comparing = true;
      nextOther(all, state);
      drawDetail();
    },
    x: () => {
      state.wanted = {};
      bar.show(state.wanted);
      apply();
      remember();
    },
    "/": () => bar.words.focus(),
    "?": () => help(list),
  };
  app.keys.rollouts = (event) => {
    if (event.key.startsWith("Arrow") && !list.contains(document.activeElement)) return false;
    const found = act[event.key];
    if (found) {
      found();
      event.preventDefault();
    }
    return Boolean(found);
  };
  app.routes.rollouts = (params) => {
    state.wanted = Object.fromEntries(FILTERS.filter((name) => params[name]).map((name) => [name, params[name]]));
    bar.show(state.wanted);
    const place = params.id !== undefined ? all.places.get(params.id) : undefined;
    apply(place);
  };
  bar.changed = remember;
  apply();
  app.answers = all;
  all.prepare();
  return [
    all.notes.map((note) => el("p.note", note)),
    bar.node,
    el("div.row.spread", count, button("keys", (event) => help(event.currentTarget))),
    el("div.browser", list, detail),
  ];
}

function help(near) {
  popover(near, el("dl.source", KEYS.map(([key, what]) => [el("dt", el("kbd", key)), el("dd", what)])));
}

function stepsTold(all, rows) {
  const [low, high] = bounds(rows.map((i) => all.step[i]));
  return low === high ? `step ${low}` : `steps ${low}–${high}`;
}

function listRow(all, i, rows, place, chosen, pick) {
  const [sign, word] = SIGN[all.correct[i]];
  const facts = dotted(
    all.change[i] >= 0 ? `⇄ ${all.text(all.change[i])}` : "",
    known(all.step[i]) ? stepsTold(all, rows) : all.text(all.side[i]),
    rows.length > 1 ? `× ${rows.length}` : "",
    all.flips[i] && all.change[i] < 0 ? "⇄ flipped" : "",
    all.text(all.skill[i]),
    all.flags[i].length ? `⚑ ${all.flags[i].join(", ")}` : "",
  );
  return h(
    "div",
    {
      className: `item ${chosen ? "chosen" : ""}`,
      role: "option",
      id: `answer-${place}`,
      "aria-selected": chosen ? "true" : "false",
      style: { top: `${place * ROW}px` },
      on: { click: pick },
    },
    h("span", { className: `sign ${word}`, title: word }, sign),
    el(
      "span.lines",
      el("span.first", all.text(all.completion[i]).slice(0, 160) || "(empty)"),
      el("span.second", facts),
    ),
    el("span.reward", known(all.reward[i]) ? number(all.reward[i]) : "–"),
  );
}

function filterBar(all, state, apply) {
  const inputs = {};
  const act = { changed: () => {} };
  const set = (name, value) => {
    state.wanted[name] = value;
    apply();
    act.changed();
  };
  const choice = (name, label, values, none = "any") => {
    if (values.length < (["flag", "order", "change"].includes(name) ? 1 : 2)) return null;
    const options = [["", none], ...values.map((value) => [value, value])];
    inputs[name] = selection({}, options, null, (value) => set(name, value));
    return el("label", el("span", label), inputs[name]);
  };
  const amount = (name, label, [low, high], step) => {
    inputs[name] = h("input", {
      type: "number",
      min: low,
      max: high,
      step,
      "aria-label": label,
      placeholder: number(name === "low" || name === "from" ? low : high),
      on: { input: () => set(name, inputs[name].value) },
    });
    return inputs[name];
  };
  const span = (name, low, high) =>
    h(
      "div",
      { className: "span", role: "group", "aria-label": name },
      el("span", name),
      el("span.ends", low, "–", high),
    );
  inputs.words = h("input", {
    type: "search",
    placeholder: "words in prompt, answer or detail",
    on: { input: () => set("words", inputs.words.value) },
  });
  const rewards = bounds(all.reward);
  const node = h(
    "div",
    { className: "filters", role: "search", "aria-label": "Filter answers" },
    el("label.wide", el("span", "search"), inputs.words),
    choice("side", "from", all.names("side")),
    choice("skill", "skill", all.names("skill")),
    choice("verdict", "verdict", Object.keys(VERDICTS)),
    choice("change", "change", all.names("change")),
    choice("error", "error", all.names("error")),
    choice("flag", "flag", all.flagNames()),
    span("reward", amount("low", "lowest reward", rewards, "any"), amount("high", "highest reward", rewards, "any")),
    all.steps
      ? span("step", amount("from", "first step", all.steps, 1), amount("to", "last step", all.steps, 1))
      : null,
    choice("order", "order", ["recorded"], "worth reading first"),
  );
  return Object.assign(act, {
    node,
    words: inputs.words,
    show: (wanted) => {
      for (const [name, input] of Object.entries(inputs)) input.value = wanted[name] || "";
    },
  });
}
