// The open task: target and prediction, what was retrieved, and the code around the hole.

/** As many lines of the left and right context as show at first. */
const CONTEXT_LINES = 40;
const RIGHT_LINES = 20;
/** As many fragments' code as show at first; that of others is made when it is opened. */
const OPEN_FRAGMENTS = 3;
const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/gu;

/** Grows with every task that is opened: an answer that comes late is not shown. */
let opening = 0;

async function drawTask() {
  const pane = document.getElementById("task");
  const browser = document.getElementById("panes");
  const task = state.task;
  browser.classList.toggle("with-task", task !== null);
  pane.hidden = task === null;
  opening += 1;
  if (task === null) return;
  const mine = opening;
  try {
    const texts = await textsOf(task);
    if (mine !== opening) return;
    pane.replaceChildren(taskHead(task), systemTabs(task), ...taskBody(task, texts));
  } catch (error) {
    if (mine === opening) pane.replaceChildren(taskHead(task), el("p", { class: "empty" }, `This task cannot be shown: ${error.message}.`));
  }
  if (pane.dataset.shown !== String(task)) pane.scrollTop = 0;
  pane.dataset.shown = task;
  if (list.tasks[list.at] === task) prepare(list.tasks[list.at + 1]);
}

/** Decodes a task's texts when there is nothing else to do, so that it opens at once. */
function prepare(task) {
  if (task === undefined) return;
  const later = window.requestIdleCallback ?? ((then) => setTimeout(then, 200));
  later(() => textsOf(task).catch(() => { /* told when it is opened */ }));
}

function taskHead(task) {
  const where = `${pathOf(task)}:${data.tasks.line_no[task] + 1}`;
  const step = (by, sign, title) => el("button", { type: "button", class: "quiet", "data-step": by, title, "aria-label": title }, sign);
  return el(
    "header", { class: "task-head" },
    el("div", {}, el("h3", { tabindex: "-1" }, el("bdi", {}, visible(data.tasks.id[task]))),
      el("p", {}, el("span", {}, visible(repositoryOf(task))), " · ", el("code", {}, el("bdi", {}, visible(where))), ` · ${data.tasks.length[task]} ${data.length_unit}`)),
    el("nav", { "aria-label": "Tasks" }, step(-1, "↑", "Previous task (k)"), step(1, "↓", "Next task (j)"), el("button", { type: "button", class: "quiet", "data-close": true, title: "Close (Esc)", "aria-label": "Close" }, "✕\ufe0e")),
  );
}

/** A tab a system, with its value and gain. */
function systemTabs(task) {
  const tabs = data.systems.map((system, at) => {
    const outcome = outcomeOf(at, task);
    const chosen = at === state.system;
    const gain = isCompared(at) ? el("small", { class: outcome?.name ?? "" }, `${signedPoints(system.gains[task])}`) : null;
    return el(
      "button",
      { type: "button", role: "tab", "aria-selected": String(chosen), tabindex: chosen ? "0" : "-1", "data-system": at, "aria-controls": "prediction" },
      el("span", { class: "tab-name" }, visible(system.name)),
      el("span", { class: "tab-values" }, el("b", {}, points(mainValue(at, task))), isExact(at, task) ? el("i", { class: "exact-sign", title: "exact" }, "✓\ufe0e") : null, gain),
    );
  });
  return el("div", { class: "tabs", role: "tablist", "aria-label": "Systems" }, tabs);
}

function taskBody(task, texts) {
  const outcome = texts.outcomes[state.system];
  const language = languageOf(task);
  const parts = [el("section", { id: "prediction", role: "tabpanel", "aria-label": "Target and prediction" }, ...predictionParts(task, texts, outcome, language))];
  if (outcome?.fragments.length) parts.push(fragmentsPart(texts.target, outcome.fragments, language));
  else if (outcome) parts.push(el("p", { class: "empty" }, "Nothing was retrieved."));
  parts.push(contextPart(task, texts, language));
  return parts;
}

function predictionParts(task, texts, outcome, language) {
  if (!outcome) {
    return [
      el("p", { class: "empty" }, `${visible(data.systems[state.system].name)} has no prediction for this task.`),
      el("h4", {}, "Target"), codeBlock(withoutIndent([trimmed(texts.target)])[0], { language }),
    ];
  }
  const [target, prediction] = withoutIndent([trimmed(texts.target), trimmed(outcome.prediction)]);
  const [targetShown, predictionShown] = [clip(target), clip(prediction)];
  const rows = diffLines(short(targetShown), short(predictionShown));
  // All of them, not what is shown of them.
  const agree = target.length === prediction.length && target.every((line, at) => line.trim() === prediction[at].trim());
  const sides = sideBySide(target);
  const change = agree ? null : el("button", { type: "button", class: "quiet", "data-view": sides ? "below" : "beside", title: "Change the view (v)" }, sides ? "one below the other" : "side by side");
  const parts = [
    el("div", { class: "part-head" }, el("h4", {}, "Target and prediction"), valuesLine(task), change),
    agree ? agreement(target, language) : (sides ? diffBeside : diffBelow)(targetShown, predictionShown, rows, language),
    agree ? null : linesCut(target, targetShown, " of the target"),
    agree ? null : linesCut(prediction, predictionShown, " of the prediction"),
  ];
  if (outcome.raw) parts.push(rawPart(outcome.raw, outcome.prediction, language));
  return parts;
}

/** Targets of several lines stand beside their predictions where there is room, unless the reader chose otherwise. */
function sideBySide(target) {
  if (state.view) return state.view === "beside";
  return target.length > 2 && document.getElementById("task").clientWidth > 900;
}

/** Without blank lines at either end: they are no part of what is measured. */
function trimmed(lines) {
  let [start, end] = [0, lines.length];
  while (start < end && lines[start].trim() === "") start += 1;
  while (end > start && lines[end - 1].trim() === "") end -= 1;
  return start < end ? lines.slice(start, end) : [""];
}

function valuesLine(task) {
  const several = new Set(data.measures.map(({ metric }) => metric)).size > 1;
  const values = data.measures.map(({ metric, label, title }, at) => {
    const value = data.systems[state.system].values[at][task];
    return el("span", { title: visible(`${metric}: ${title}`) }, el("small", {}, visible(several ? `${metric} ${label}` : label)), ` ${points(value)}`);
  });
  const status = statusOf(state.system, task);
  if (status) values.push(el("span", { class: "status" }, visible(status)));
  return el("p", { class: "values" }, values);
}

/** Texts without the white space that all their lines begin with. */
function withoutIndent(texts) {
  const lines = texts.flat().filter((line) => line.trim() !== "");
  let indent = /^[ \t]*/.exec(lines[0] ?? "")[0];
  for (const line of lines) {
    let shared = 0;
    while (shared < indent.length && line[shared] === indent[shared]) shared += 1;
    indent = indent.slice(0, shared);
  }
  return texts.map((text) => text.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line.trimStart())));
}

/** A prediction that is the target, but perhaps for white space around its lines. */
function agreement(target, language) {
  const block = codeBlock(target, { language });
  block.classList.add("agreement");
  return el("div", {}, block, el("p", { class: "verdict-line" }, el("i", { class: "exact-sign" }, "✓\ufe0e"), " The prediction is the target."));
}

const named = (marks, name) => marks.map(([start, end]) => [start, end, name]);

/** One below the other: lines that agree once, others as the target has them and as they were predicted. */
function diffBelow(target, prediction, rows, language) {
  const [tintA, tintB] = [tint(short(target), language), tint(short(prediction), language)];
  const block = el("div", { class: "diff below", tabindex: "0", role: "region", "aria-label": "Difference" });
  const add = (kind, label, line, ranges) => {
    const code = el("code");
    appendLine(code, line, ranges);
    block.append(el("div", { class: `line ${kind}` }, el("span", { class: "whose" }, label), code));
  };
  for (const { a, b, marksA, marksB } of rows) {
    const equal = a !== null && b !== null && marksA.length + marksB.length === 0;
    if (equal) add("both", "both", target[a], tintA[a]);
    else {
      if (a !== null) add("target", "target", target[a], [...tintA[a], ...named(marksA, "only-target")]);
      if (b !== null) add("predicted", "predicted", prediction[b], [...tintB[b], ...named(marksB, "only-predicted")]);
    }
  }
  if (prediction.join("").trim() === "") add("predicted", "predicted", "(nothing)", [[0, 9, "comment"]]);
  return block;
}

/** Side by side. */
function diffBeside(target, prediction, rows, language) {
  const [tintA, tintB] = [tint(short(target), language), tint(short(prediction), language)];
  const block = el("div", { class: "diff beside", tabindex: "0", role: "region", "aria-label": "Difference" }, el("b", {}, "Target"), el("b", {}, "Prediction"));
  const cell = (at, lines, tints, marks, kind, equal) => {
    const code = el("code");
    if (at !== null) appendLine(code, lines[at], [...tints[at], ...named(marks, `only-${kind}`)]);
    return el("div", { class: `line ${at === null ? "absent" : equal ? "both" : kind}` }, code);
  };
  for (const { a, b, marksA, marksB } of rows) {
    const equal = a !== null && b !== null && marksA.length + marksB.length === 0;
    block.append(cell(a, target, tintA, marksA, "target", equal), cell(b, prediction, tintB, marksB, "predicted", equal));
  }
  return block;
}

/** What the model wrote, with what post-processing cut struck through. */
function rawPart(raw, prediction, language) {
  const [rawText, text] = [raw.join("\n"), prediction.join("\n")];
  const kept = [text, text.trim()].find((piece) => rawText.includes(piece)) ?? "";
  const start = rawText.indexOf(kept);
  const spans = [];
  let from = 0;
  if (kept) {
    for (const line of raw) {
      const cuts = [[0, Math.min(line.length, start - from)], [Math.max(0, start + kept.length - from), line.length]];
      spans.push(cuts.filter(([low, high]) => high > low).map(([low, high]) => [low, high, "struck"]));
      from += line.length + 1;
    }
  } else {
    const known = new Set(prediction.map((line) => line.trim()));
    for (const line of raw) spans.push(known.has(line.trim()) ? [] : [[0, line.length, "struck"]]);
  }
  const block = codeBlock(raw, { language, marks: (_, at) => spans[at] });
  return el("details", { class: "raw" }, el("summary", {}, "As the model wrote it, before post-processing"), block);
}

/** What was retrieved, best first: lines that are the target's stand out, and so do its identifiers. */
function fragmentsPart(target, fragments, language) {
  const wantedLines = new Set(target.map((line) => line.trim()).filter((line) => /[\p{L}\p{N}]/u.test(line)));
  const wantedNames = identifiersOf(short(clip(target, 200)), language);
  // In nearly every line, and nothing that could be retrieved.
  for (const name of ["self", "cls"]) wantedNames.delete(name);
  const cards = fragments.map((fragment, at) => fragmentCard(fragment, at, wantedLines, wantedNames, language));
  return el("section", { class: "fragments", "aria-label": "Retrieved fragments" },
    el("div", { class: "part-head" }, el("h4", {}, `Retrieved fragments`), el("p", { class: "values" }, fragmentsKey())), cards);
}

function fragmentsKey() {
  return [el("span", {}, el("i", { class: "key-line" }), " line of the target"), el("span", {}, el("span", { class: "wanted-name" }, "name"), " of the target")];
}

function fragmentCard(fragment, at, wantedLines, wantedNames, language) {
  const shown = fragment.text.at(-1) === "" ? fragment.text.slice(0, -1) : fragment.text;
  const isWanted = (line) => wantedLines.has(line.trim());
  const marks = (line) => [...line.matchAll(NAME)].filter(([name]) => wantedNames.has(name)).map(({ 0: name, index }) => [index, index + name.length, "wanted-name"]);
  const names = new Set();
  for (const line of short(clip(shown))) for (const [name] of line.matchAll(NAME)) if (wantedNames.has(name)) names.add(name);
  const lines = shown.filter(isWanted).length;
  const holds = [lines ? `${lines} ${lines === 1 ? "line" : "lines"}` : null, names.size ? `${names.size} of ${wantedNames.size} names` : null];
  const place = visible(fragment.path.join("\n")) + (fragment.line === null ? "" : `:${fragment.line}`);
  const card = el(
    "details", { class: "fragment" },
    el("summary", {}, el("span", { class: "rank" }, at + 1), el("code", { title: place }, el("bdi", {}, place)), el("span", { class: "holds" }, holds.filter(Boolean).join(", ")), fragment.score === null ? null : el("span", { class: "score", title: "score" }, scoreText(fragment.score))),
  );
  const draw = () => card.append(codeBlock(shown, { language, first: fragment.line, marks, classes: (line) => (isWanted(line) ? "wanted-line" : ""), mayBeginInString: true }));
  if (at < OPEN_FRAGMENTS) {
    card.open = true;
    draw();
  } else card.addEventListener("toggle", draw, { once: true });
  return card;
}

function scoreText(score) {
  return Math.abs(score) >= 100 ? score.toFixed(1) : score.toPrecision(3);
}

/** The file around the hole, with the target in its place. */
function contextPart(task, texts, language) {
  const left = texts.left.at(-1) === "" ? texts.left.slice(0, -1) : texts.left;
  const target = trimmed(texts.target);
  const hole = data.tasks.line_no[task] + 1;
  const part = el("section", { class: "context", "aria-label": "Around the hole" }, el("div", { class: "part-head" }, el("h4", {}, "Around the hole")));
  // A hole that begins within a line shares its number with the end of the left context.
  const midLine = texts.left.at(-1) !== "" && texts.left.join("") !== "";
  const firstOfLeft = hole - left.length + (midLine ? 1 : 0);
  const shown = left.slice(-CONTEXT_LINES);
  const above = el("div", {});
  const drawAbove = (lines) => above.replaceChildren(codeBlock(lines, { language, first: Math.max(1, firstOfLeft + left.length - lines.length) }));
  if (left.length > shown.length) {
    const rest = left.length - shown.length;
    part.append(el("button", { type: "button", class: "more", onclick: (event) => { drawAbove(left.slice(-2000)); event.currentTarget.remove(); } }, `${grouped(rest)} lines above`));
  }
  drawAbove(shown);
  const block = codeBlock(target, { language, first: hole, classes: () => "hole" });
  part.append(above, block);
  if (texts.right) {
    const right = texts.right[0] === "" ? texts.right.slice(1) : texts.right;
    const first = hole + target.length;
    const below = el("div", {}, codeBlock(right.slice(0, RIGHT_LINES), { language, first }));
    part.append(below);
    if (right.length > RIGHT_LINES) {
      const rest = right.length - RIGHT_LINES;
      part.append(el("button", { type: "button", class: "more", onclick: (event) => { below.replaceChildren(codeBlock(right, { language, first })); event.currentTarget.remove(); } }, `${grouped(rest)} lines below`));
    }
  }
  return part;
}
