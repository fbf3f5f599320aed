// One answer in full, and another answer to the same problem beside it.

function others(all, i) {
  return all.alike(i).filter((one) => one !== i);
}

// The one to compare with: what the policy before answered, or the try that failed; else another side's or step's.
function firstOther(all, i) {
  const found = others(all, i);
  return (
    all.before(i) ??
    found.find((one) => all.side[one] !== all.side[i]) ??
    found.find((one) => all.step[one] !== all.step[i]) ??
    found.find((one) => all.completion[one] !== all.completion[i]) ??
    found[0] ??
    null
  );
}

function nextOther(all, state) {
  const i = state.found[state.at],
    found = others(all, i);
  if (found.length) state.other = found[(found.indexOf(state.other ?? firstOther(all, i)) + 1) % found.length];
}

function answerDetail(all, state, redraw) {
  const i = state.found[state.at];
  const other = state.comparing ? (state.other ?? firstOther(all, i)) : null;
  const alike = others(all, i);
  const turn = () => {
    state.comparing = !state.comparing;
    redraw();
  };
  const words = alike.length
    ? `${state.comparing ? "hide the other" : "compare"} (${number(alike.length)} more to this problem)`
    : "no other answer to this problem";
  const toggle = button(words, turn, { "aria-pressed": String(state.comparing), disabled: !alike.length });
  const marks =
    other === null ? [null, null] : differences(all.text(all.completion[other]), all.text(all.completion[i]));
  return [
    el("div.row.spread", el("code.id", all.id[i]), toggle),
    el("h4", "Prompt"),
    block(all, all.prompt[i]),
    all.previous[i] >= 0 && all.before(i) === undefined
      ? el("p.note", "Follows an answer that is not on this page: ", el("code", all.text(all.previous[i])))
      : null,
    h(
      "div",
      { className: other === null ? "" : "sides" },
      other === null ? null : oneAnswer(all, other, marks[0], chooser(all, state, alike, other, redraw)),
      oneAnswer(all, i, marks[1], other === null ? null : el("b.which", sideName(all, i))),
    ),
    all.reference[i] >= 0 ? el("details", el("summary", "Reference"), block(all, all.reference[i])) : null,
  ];
}

const CHANGES = {
  "became right": "wrong before this phase, right after it",
  "became wrong": "right before this phase, wrong after it",
  mended: "the first try failed; this one was told what went wrong",
  "mended blind": "the first try failed; this one was told nothing, as the control",
};

function changePill(change) {
  return h("span", { className: "pill", title: CHANGES[change] || "" }, `⇄ ${change}`);
}

const sideName = (all, i) =>
  dotted(all.text(all.side[i]), known(all.step[i]) ? `step ${all.step[i]}` : "") || "this answer";

function chooser(all, state, alike, other, redraw) {
  const named = (one) =>
    `${SIGN[all.correct[one]][0]} ${sideName(all, one)} · ${all.text(all.completion[one]).slice(0, 40)}`;
  const options = alike.slice(0, 200).map((one) => [one, named(one)]);
  return selection({ "aria-label": "Compare with" }, options, other, (value) => {
    state.other = Number(value);
    redraw();
  });
}

function oneAnswer(all, i, marks, head) {
  const [sign, word] = SIGN[all.correct[i]];
  const parts = all.parts[i] >= 0 ? JSON.parse(all.text(all.parts[i])) : {};
  const from = { file: all.text(all.file[i]), line: all.line[i], step: all.step[i] };
  const pills = [
    h("span", { className: `pill ${word}` }, `${sign} ${word}`),
    known(all.reward[i]) ? el("span.pill", "reward ", sourced(number(all.reward[i]), from)) : null,
    all.error[i] >= 0 && all.text(all.error[i]) !== "none"
      ? el("span.pill", all.text(all.error[i]))
      : null,
    all.finish[i] >= 0 ? el("span.pill", `ended: ${all.text(all.finish[i])}`) : null,
    known(all.tokens[i]) ? el("span.pill", `${number(all.tokens[i])} tokens`) : null,
    all.flags[i].map((flag) => el("span.pill.flag", `⚑ ${flag}`)),
    all.turn[i] ? el("span.pill", all.turn[i] < 0 ? "blind second try" : `try ${all.turn[i] + 1}`) : null,
    all.change[i] >= 0 ? changePill(all.text(all.change[i])) : null,
  ];
  return el(
    "div.answer",
    head,
    el("div.pills", pills),
    block(all, all.completion[i], marks),
    all.detail[i] >= 0 ? el("p.note", all.text(all.detail[i])) : null,
    Object.keys(parts).length
      ? el(
          "p.parts",
          Object.entries(parts)
            .map(([name, value]) => `${name} ${known(value) ? number(value) : value}`)
            .join(" · "),
        )
      : null,
  );
}

function block(all, index, marks) {
  const text = all.text(index);
  const body = marks && text
    ? marks.map(([line, same]) => h("span", { className: same ? "same" : "differs" }, `${line}\n`))
    : text || "(empty)";
  return el(
    "div",
    h("pre", { dir: "ltr", tabindex: "0" }, body),
    all.cut[index]
      ? el("p.note", `Cut: the whole has ${number(all.cut[index])} characters, see its file.`)
      : null,
  );
}

// Lines that only one side has: the longest common subsequence of lines, where both are short enough for it.
function differences(left, right) {
  const a = left.split("\n"),
    b = right.split("\n");
  if (a.length * b.length > 250000) return [a.map((line) => [line, true]), b.map((line) => [line, true])];
  const long = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      long[i][j] = a[i] === b[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
  const one = a.map((line) => [line, false]),
    two = b.map((line) => [line, false]);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      one[i][1] = true;
      two[j][1] = true;
      i += 1;
      j += 1;
    } else if (long[i + 1][j] >= long[i][j + 1]) i += 1;
    else j += 1;
  }
  return [one, two];
}
