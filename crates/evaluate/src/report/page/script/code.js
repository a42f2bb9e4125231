// Code as elements: tinted, marked, cut where it is endless, and with nothing invisible in it. Texts only ever become text
// nodes, so that nothing in them is markup.

/** Makes an element: `el("p", {class: "x"}, "text", child, null)`. */
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    // The page's policy forbids style attributes; single properties are free.
    if (name === "style") for (const [property, length] of Object.entries(value)) element.style.setProperty(property, length);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** Characters that show nothing or reorder what is beside them; the program's `report/text.rs` holds the same ranges. */
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** A text with such characters written out, for names and titles. */
function visible(text) {
  return text.replace(HIDDEN, codePoint);
}

function codePoint(character) {
  if (character === "\r") return "␍";
  return `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Appends a text to an element, hidden characters as marks of their own. */
function appendText(parent, text) {
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) parent.append(text.slice(from, match.index));
    parent.append(el("span", { class: "hidden-sign", title: "a character that shows nothing" }, codePoint(match[0])));
    from = match.index + match[0].length;
  }
  if (from < text.length) parent.append(from ? text.slice(from) : text);
}

const PYTHON = ["False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield"];
const C_LIKE = ["abstract as async await base bool boolean break byte case catch char class const continue declare default delete do double else enum export extends false final finally float for foreach from function get if implements import in instanceof int interface internal is let long namespace new null object of out override package private protected public readonly record ref return sealed set short static string struct super switch this throw throws true try type typeof undefined using var virtual void volatile while yield"];
const words = (list) => new Set(list.join(" ").split(" "));

/** Groups: comment, string, number, word. Strings that are not closed end with their line, or with the text. */
const GRAMMARS = {
  python: {
    keywords: words(PYTHON),
    pattern: /(#[^\n]*)|("""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?)|(\b\d[\w.]*)|([\p{L}_][\p{L}\p{N}_]*)/gu,
  },
  other: {
    keywords: words(C_LIKE),
    pattern: /(\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))|(`(?:[^`\\]|\\[^])*`?|"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?)|(\b\d[\w.]*)|([\p{L}_$][\p{L}\p{N}_$]*)/gu,
  },
};
const TINTS = ["comment", "string", "number", "keyword"];

function grammarOf(language) {
  return Object.hasOwn(GRAMMARS, language) ? GRAMMARS[language] : GRAMMARS.other;
}

/** A fragment may begin within a docstring: then its first delimiter closes one, and there is an odd number of them. */
function beginsInString(text, language) {
  if (language !== "python") return false;
  const delimiters = text.match(/"""/g);
  return delimiters !== null && delimiters.length % 2 === 1 && !/^\s*(?:\w*)"""/.test(text.slice(0, text.indexOf("\n") + 1 || undefined));
}

/** The tints of lines: by line, ranges `[start, end, class]`. */
function tint(lines, language, mayBeginInString) {
  const text = lines.join("\n");
  const { keywords, pattern } = grammarOf(language);
  const starts = [];
  let start = 0;
  for (const line of lines) {
    starts.push(start);
    start += line.length + 1;
  }
  const tints = lines.map(() => []);
  let line = 0;
  const add = (from, to, name) => {
    while (line + 1 < lines.length && starts[line + 1] <= from) line += 1;
    for (let at = line; at < lines.length && starts[at] < to; at += 1) {
      const [low, high] = [Math.max(from - starts[at], 0), Math.min(to - starts[at], lines[at].length)];
      if (high > low) tints[at].push([low, high, name]);
    }
  };
  pattern.lastIndex = 0;
  if (mayBeginInString && beginsInString(text, language)) {
    pattern.lastIndex = text.indexOf('"""') + 3;
    add(0, pattern.lastIndex, "string");
  }
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const kind = [1, 2, 3, 4].find((group) => match[group] !== undefined);
    if (kind === 4 && !keywords.has(match[4])) continue;
    add(match.index, match.index + match[0].length, TINTS[kind - 1]);
  }
  return tints;
}

/** The distinct identifiers of some code: words outside of strings and comments that are no keywords. */
function identifiersOf(lines, language) {
  const { keywords, pattern } = grammarOf(language);
  const found = new Set();
  for (const match of lines.join("\n").matchAll(pattern)) if (match[4] && !keywords.has(match[4])) found.add(match[4]);
  return found;
}

const LONGEST_LINE = 2000;

/** Appends a line, its ranges `[start, end, class]` as elements; ranges of several layers may overlap. */
function appendLine(parent, line, ranges) {
  const shown = line.length > LONGEST_LINE ? line.slice(0, LONGEST_LINE) : line;
  const cuts = new Set([0, shown.length]);
  for (const [start, end] of ranges) {
    cuts.add(Math.min(start, shown.length));
    cuts.add(Math.min(end, shown.length));
  }
  const places = [...cuts].sort((a, b) => a - b);
  for (let at = 0; at + 1 < places.length; at += 1) {
    const [from, to] = [places[at], places[at + 1]];
    const names = ranges.filter(([start, end]) => start <= from && to <= end).map((range) => range[2]);
    const piece = names.length ? el("span", { class: names.join(" ") }) : parent;
    appendText(piece, shown.slice(from, to));
    if (piece !== parent) parent.append(piece);
  }
  if (shown.length < line.length) {
    parent.append(el("span", { class: "cut-off" }, `… ${grouped(line.length - shown.length)} more characters`));
  }
}

/** As many characters as are ever laid out of a text; one that is shown by its name is an element, and counts as twenty. */
const MOST_CHARACTERS = 400_000;

/** As much of a text as is ever laid out at once. */
function clip(lines, most = 2000) {
  let [shown, left] = [0, MOST_CHARACTERS];
  while (shown < Math.min(lines.length, most) && left > 0) {
    const line = lines[shown].slice(0, LONGEST_LINE);
    left -= line.length + 20 * (line.match(HIDDEN)?.length ?? 0);
    shown += 1;
  }
  return shown < lines.length ? lines.slice(0, shown) : lines;
}

/** Says how many lines are not shown, if any. */
function linesCut(lines, shown, where = "") {
  const cut = lines.length - shown.length;
  return cut ? el("p", { class: "cut-off" }, `… ${grouped(cut)} more lines${where}`) : null;
}

/** For tints, lines are cut as they are shown. */
function short(lines) {
  return lines.map((line) => (line.length > LONGEST_LINE ? line.slice(0, LONGEST_LINE) : line));
}

/**
 * Lines of code with their numbers. `first` is the first one's number or null; `marks(line, index)` gives further ranges,
 * `classes(line, index)` the class of the whole line.
 */
function codeBlock(lines, { language, first = null, marks, classes, mayBeginInString = false }) {
  const shown = short(clip(lines));
  const tints = tint(shown, language, mayBeginInString);
  const block = el("div", { class: first === null ? "code" : "code numbered" });
  shown.forEach((line, at) => {
    const row = el("div", { class: ["line", classes?.(line, at)].filter(Boolean).join(" ") });
    if (first !== null) row.append(el("span", { class: "line-number", "data-number": first + at }));
    const text = el("code");
    appendLine(text, lines[at], [...tints[at], ...(marks?.(line, at) ?? [])]);
    row.append(text);
    block.append(row);
  });
  block.append(linesCut(lines, shown) ?? "");
  return block;
}
