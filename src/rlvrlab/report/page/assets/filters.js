// Which answers are shown: by side, skill, verdict, reward, step, error, flag and words.

const VERDICTS = { right: 1, wrong: 0, unjudged: -1 };

class Rollouts {
  constructor(data) {
    Object.assign(this, data.columns);
    this.texts = data.texts;
    this.cut = data.cut || {};
    this.notes = data.notes || [];
    this.size = this.id.length;
    this.places = new Map(this.id.map((id, i) => [id, i]));
    this.byProblem = Map.groupBy(this.id.keys(), (i) => this.asked(i));
    this.flips = this.turned();
    this.lower = [];
    const steps = this.step.filter(known);
    this.steps = steps.length ? bounds(steps) : null;
  }

  text(index) {
    return index >= 0 ? this.texts[index] : "";
  }

  // In the order in which they come; `side` tells its own, from before training to after the last phase.
  names(column) {
    const found = [...new Set(this[column])].filter((index) => index >= 0).map((index) => this.texts[index]);
    return column === "side" ? found : found.sort();
  }

  flagNames() {
    return [...new Set(this.flags.flat())].sort();
  }

  // A problem is one, however it was asked: a second try has another prompt than the first one.
  asked(i) {
    return this.problem[i] >= 0 ? this.problem[i] : `p${this.prompt[i]}`;
  }

  // The answer that this one is read against: of the policy before, or the try that failed; undefined where it is not here.
  before(i) {
    const found = this.previous[i] >= 0 ? this.places.get(this.texts[this.previous[i]]) : undefined;
    return found !== i && found !== undefined && this.asked(found) === this.asked(i) ? found : undefined;
  }

  alike(i) {
    return this.byProblem.get(this.asked(i));
  }

  // 1 for answers to a problem that was solved here and not there: by another side, at another step or by another try.
  turned() {
    const turned = new Uint8Array(this.size);
    for (const rows of this.byProblem.values()) {
      const right = rows.some((i) => this.correct[i] === 1),
        wrong = rows.some((i) => this.correct[i] === 0);
      if (!right || !wrong) continue;
      const first = rows[0],
        moved = ["side", "step", "turn"].some((column) => rows.some((i) => this[column][i] !== this[column][first]));
      if (moved) for (const i of rows) turned[i] = 1;
    }
    return turned;
  }

  // What is worth reading first: wrong answers to prompts that flipped, their right ones, failures, unjudged, right.
  rank(i) {
    if (this.correct[i] === 0) return this.flips[i] ? 0 : 2;
    if (this.flips[i] && this.correct[i] === 1) return 1;
    return this.correct[i] < 0 ? 3 : 4;
  }

  // Equal answers to one prompt by one side, with one verdict and reward, become one row; `kept` stands for its own.
  grouped(found, kept) {
    const groups = new Map();
    for (const i of found) {
      const key = `${this.prompt[i]},${this.problem[i]},${this.completion[i]},${this.correct[i]},${this.reward[i]},${this.side[i]},${this.error[i]},${this.flags[i]},${this.turn[i]},${this.change[i]}`;
      const group = groups.get(key);
      if (!group) groups.set(key, { rows: [i], shown: i });
      else {
        group.rows.push(i);
        if (i === kept) group.shown = i;
      }
    }
    return [...groups.values()];
  }

  lowered(index) {
    if (this.lower[index] === undefined) this.lower[index] = this.texts[index].toLowerCase();
    return this.lower[index];
  }

  // While the reader looks, so that the first search is as quick as the next.
  prepare(from = 0) {
    const idle = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 50));
    idle(() => {
      const to = Math.min(this.texts.length, from + 1000);
      for (let i = from; i < to; i += 1) this.lowered(i);
      if (to < this.texts.length) this.prepare(to);
    });
  }

  // Texts are shared by many answers, so words are looked for once in each text.
  find(words) {
    const hits = new Uint8Array(this.texts.length);
    for (let i = 0; i < this.texts.length; i += 1) hits[i] = this.lowered(i).includes(words) ? 1 : 0;
    return hits;
  }

  select(wanted) {
    // A text that no answer has is no answer's: -1 stands for none at all.
    const place = (text) => (this.texts.includes(text) ? this.texts.indexOf(text) : -2);
    const index = (column) => (wanted[column] ? place(wanted[column]) : null);
    const side = index("side"),
      skill = index("skill"),
      error = index("error"),
      problem = index("problem"),
      change = index("change");
    const verdict = wanted.verdict in VERDICTS ? VERDICTS[wanted.verdict] : null;
    const words = (wanted.words || "").toLowerCase();
    const hits = words ? this.find(words) : null;
    const from = wanted.from ? Number(wanted.from) : null,
      to = wanted.to ? Number(wanted.to) : null;
    const low = wanted.low !== undefined && wanted.low !== "" ? Number(wanted.low) : null;
    const high = wanted.high !== undefined && wanted.high !== "" ? Number(wanted.high) : null;
    const found = [];
    for (let i = 0; i < this.size; i += 1) {
      if (side !== null && this.side[i] !== side) continue;
      if (skill !== null && this.skill[i] !== skill) continue;
      if (error !== null && this.error[i] !== error) continue;
      if (problem !== null && this.problem[i] !== problem) continue;
      if (change !== null && this.change[i] !== change) continue;
      if (verdict !== null && this.correct[i] !== verdict) continue;
      if (from !== null && !(this.step[i] >= from)) continue;
      if (to !== null && !(this.step[i] <= to)) continue;
      if (low !== null && !(this.reward[i] >= low)) continue;
      if (high !== null && !(this.reward[i] <= high)) continue;
      if (wanted.flag && !this.flags[i].includes(wanted.flag)) continue;
      if (
        hits &&
        !(this.completion[i] >= 0 && hits[this.completion[i]]) &&
        !(this.prompt[i] >= 0 && hits[this.prompt[i]]) &&
        !(this.problem[i] >= 0 && hits[this.problem[i]]) &&
        !(this.detail[i] >= 0 && hits[this.detail[i]])
      )
        continue;
      found.push(i);
    }
    return found;
  }
}
