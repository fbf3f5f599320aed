// Which steps earned the reward: each stretch of the answer tinted by its credit, with what deleting it would cost.

function viewCredit(data, section) {
  const state = (app.memory[section.id] ??= { at: 0 });
  if (!data.answers[state.at]) state.at = 0;
  const body = el("div.credit");
  const trained = data.answers.some((one) => one.steps.some((step) => "advantage" in step));
  const words = ({ credit, examined }) => {
    if (examined === false) return "not examined";
    if (!known(credit)) return "unknown: without it the answer does not run, or was not judged";
    if (data.estimator === "leave_one_out") return `delete this step → success ${signed(-credit)}`;
    return `credit ${signed(credit)} (${data.estimator})`;
  };
  const judged = ({ correct }) => SIGN[correct ? 1 : correct === false ? 0 : -1];
  const named = data.answers.map((one, i) => [i, `${judged(one)[0]} ${one.id}`]);
  const select = selection({ "aria-label": "Answer" }, named, state.at, (value) => {
    state.at = Number(value);
    draw();
  });
  function draw() {
    const one = data.answers[state.at];
    const most = one.most || 1;
    const [sign, word] = judged(one);
    const said = h("p", { className: "said", "aria-live": "polite" }, "Point at a step, or walk with Tab.");
    const paint = (credit) =>
      known(credit)
        ? `color-mix(in srgb, var(${credit < 0 ? "--neg" : "--pos"}) ${Math.round((70 * Math.abs(credit)) / most)}%, transparent)`
        : "var(--hatch)";
    const rows = creditLines(one).map(({ parts, first }, i) =>
      el(
        "div.code-line",
        el("span.line-number", String(i + 1)),
        el("span.amount", first ? (known(first.credit) ? signed(first.credit) : "?") : ""),
        el(
          "span.gauge",
          first && known(first.credit)
            ? h("i", {
                style: {
                  width: `${Math.round((100 * Math.abs(first.credit)) / most)}%`,
                  background: `var(${first.credit < 0 ? "--neg" : "--pos"})`,
                },
              })
            : null,
        ),
        el(
          "span.text",
          parts.map(([text, step]) => {
            if (!step) return el("span", text);
            const share = known(step.advantage) ? ` · advantage ${signed(step.advantage)}` : "";
            const told = `${words(step)}${share}${step.kind ? ` · ${step.kind}` : ""}`;
            const tell = () => {
              said.textContent = told;
            };
            return h(
              "span",
              {
                className: `step ${known(step.credit) ? "" : "unknown"}`,
                tabindex: "0",
                title: told,
                "aria-label": `${text.trim()}: ${told}`,
                style: { background: paint(step.credit) },
                on: { pointerenter: tell, focus: tell },
              },
              text,
            );
          }),
        ),
      ),
    );
    const link =
      app.answers && app.answers.places.has(one.id)
        ? h("a", { href: route("rollouts", { id: one.id }) }, "open among the answers")
        : null;
    body.replaceChildren(
      el(
        "div.pills",
        h("span", { className: `pill ${word}` }, `${sign} ${word}`),
        el("span.pill", "reward ", sourced(number(one.reward), one.from)),
        link,
      ),
      el("div.heat", rows),
      said,
    );
  }
  draw();
  const method = `${data.estimator.replaceAll("_", " ")}${data.label ? `, ${data.label}` : ""}`;
  return [
    el("div.row", select, el("span.note", method)),
    body,
    signScale("earns", el("i.swatch.hatch"), trained ? "unknown, or not examined" : "unknown"),
    el(
      "p.note",
      trained
        ? "Advantage: the mean over the step's tokens as they were trained on, credit included; none where the group was not."
        : "Advantages of the steps are kept by training with [credit], not by rlvr credit.",
    ),
  ];
}

// The answer line by line; each line in stretches of one step, `first` the step that begins on it.
function creditLines(one) {
  const lines = [];
  let at = 0;
  const owner = (place) => one.steps.find((step) => step.start <= place && place < step.end) || null;
  for (const line of one.text.replace(/\n$/, "").split("\n")) {
    const parts = [];
    for (let from = at; from < at + line.length;) {
      const step = owner(from);
      const next = step
        ? step.end
        : one.steps
            .filter((other) => other.start > from)
            .reduce((least, other) => Math.min(least, other.start), Infinity);
      const to = Math.min(at + line.length, next);
      parts.push([one.text.slice(from, to), step]);
      from = to;
    }
    const begun = parts.map((part) => part[1]).find((step) => step && !lines.some((other) => other.first === step));
    lines.push({ parts, first: begun || null });
    at += line.length + 1;
  }
  return lines;
}
