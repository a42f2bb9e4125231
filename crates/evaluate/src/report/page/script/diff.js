// What differs between target and prediction: lines first, then the words within lines that changed, then their characters.

/** Tables of the comparison hold at most this many cells; larger pieces count as different altogether. */
const MOST_CELLS = 4_000_000;
/** Cells that are left to one target and its prediction: texts made to be slow are compared line by line only. */
let cellsLeft = 0;
/** As many words of a line as say how much it resembles others. */
const MOST_WORDS = 64;

/** Pairs of places of a longest common subsequence, in order. `same(i, j)` compares an item of each. */
function commonSubsequence(lengthA, lengthB, same) {
  let start = 0;
  while (start < lengthA && start < lengthB && same(start, start)) start += 1;
  let end = 0;
  while (end < lengthA - start && end < lengthB - start && same(lengthA - 1 - end, lengthB - 1 - end)) end += 1;
  const pairs = [];
  for (let at = 0; at < start; at += 1) pairs.push([at, at]);
  const [rows, columns] = [lengthA - start - end, lengthB - start - end];
  if (rows > 0 && columns > 0 && rows * columns <= Math.min(MOST_CELLS, cellsLeft)) {
    cellsLeft -= rows * columns;
    const width = columns + 1;
    const longest = new Uint16Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i -= 1) {
      for (let j = columns - 1; j >= 0; j -= 1) {
        longest[i * width + j] = same(start + i, start + j)
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < rows && j < columns;) {
      if (same(start + i, start + j)) {
        pairs.push([start + i, start + j]);
        i += 1;
        j += 1;
      } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
      else j += 1;
    }
  }
  for (let at = end; at > 0; at -= 1) pairs.push([lengthA - at, lengthB - at]);
  return pairs;
}

/** Words, runs of white space, and single signs, with where they begin. */
function wordsOf(line) {
  return [...line.matchAll(/[\p{L}\p{N}_]+|\s+|[^]/gu)].map((match) => ({ text: match[0], start: match.index }));
}

/**
 * What differs between two lines, as ranges of each: `[[start, end], …]` in `a` and in `b`. Indentation is not compared:
 * the measures strip it.
 */
function diffLine(a, b) {
  const [indentA, indentB] = [a, b].map((line) => line.length - line.trimStart().length);
  const wordsA = wordsOf(a.trim());
  const wordsB = wordsOf(b.trim());
  let anchors = commonSubsequence(wordsA.length, wordsB.length, (i, j) => wordsA[i].text === wordsB[j].text);
  anchors = anchors.filter(([i, j], at) => !isLoneSpace(wordsA[i].text, anchors, i, j, at));
  const marksA = [];
  const marksB = [];
  let [i, j] = [0, 0];
  for (const [nextI, nextJ] of [...anchors, [wordsA.length, wordsB.length]]) {
    refine(textBetween(wordsA, i, nextI), textBetween(wordsB, j, nextJ), marksA, marksB);
    [i, j] = [nextI + 1, nextJ + 1];
  }
  const moved = (marks, by) => marks.map(([start, end]) => [start + by, end + by]);
  return [moved(marksA, indentA), moved(marksB, indentB)];
}

/** White space between two changes holds nothing together. */
function isLoneSpace(text, anchors, i, j, at) {
  if (text.trim() !== "") return false;
  const before = anchors[at - 1];
  const after = anchors[at + 1];
  const joined = (pair, by) => pair && pair[0] === i + by && pair[1] === j + by;
  return !joined(before, -1) && !joined(after, 1);
}

function textBetween(words, from, to) {
  const text = words.slice(from, to).map((word) => word.text).join("");
  return { text, start: words[from]?.start ?? 0 };
}

/** Marks two pieces that differ, but for the beginning and end that they share, if that is half of the shorter one. */
function refine(a, b, marksA, marksB) {
  const shorter = Math.min(a.text.length, b.text.length);
  let start = 0;
  while (start < shorter && a.text[start] === b.text[start]) start += 1;
  let end = 0;
  while (end < shorter - start && a.text[a.text.length - 1 - end] === b.text[b.text.length - 1 - end]) end += 1;
  if ((start + end) * 2 < shorter) [start, end] = [0, 0];
  for (const [piece, marks] of [[a, marksA], [b, marksB]]) {
    if (piece.text.length > start + end) marks.push([piece.start + start, piece.start + piece.text.length - end]);
  }
}

/**
 * Target and prediction as rows `{a, b, marksA, marksB}`, where `a` and `b` are lines' numbers or null. Rows without marks
 * and with both numbers are equal but for indentation.
 */
function diffLines(target, prediction) {
  cellsLeft = 4 * MOST_CELLS;
  const [wanted, found] = [target, prediction].map((lines) => lines.map((line) => line.trim()));
  const equal = (i, j) => wanted[i] === found[j];
  const rows = [];
  let [i, j] = [0, 0];
  for (const [nextI, nextJ] of [...commonSubsequence(target.length, prediction.length, equal), [target.length, prediction.length]]) {
    rows.push(...pairUp(target, prediction, [i, nextI], [j, nextJ]));
    if (nextI < target.length && nextJ < prediction.length) rows.push({ a: nextI, b: nextJ, marksA: [], marksB: [] });
    [i, j] = [nextI + 1, nextJ + 1];
  }
  return rows;
}

/** Between equal lines: the lines that resemble each other most are rows together, the others have one of their own. */
function pairUp(target, prediction, [fromA, toA], [fromB, toB]) {
  const [rows, columns] = [toA - fromA, toB - fromB];
  const pairs = [];
  if (rows === 1 && columns === 1) pairs.push([0, 0]);
  else if (rows * columns > 0 && rows * columns <= 40_000) pairs.push(...mostAlike(target, prediction, fromA, fromB, rows, columns));
  else for (let at = 0; at < Math.min(rows, columns); at += 1) pairs.push([at, at]);
  const found = [];
  let [i, j] = [0, 0];
  for (const [nextI, nextJ] of [...pairs, [rows, columns]]) {
    for (; i < nextI; i += 1) found.push({ a: fromA + i, b: null, marksA: whole(target[fromA + i]), marksB: [] });
    for (; j < nextJ; j += 1) found.push({ a: null, b: fromB + j, marksA: [], marksB: whole(prediction[fromB + j]) });
    if (i < rows && j < columns) {
      const [marksA, marksB] = diffLine(target[fromA + i], prediction[fromB + j]);
      found.push({ a: fromA + i, b: fromB + j, marksA, marksB });
    }
    [i, j] = [nextI + 1, nextJ + 1];
  }
  return found;
}

function whole(line) {
  const start = line.length - line.trimStart().length;
  return line.trim() === "" ? [] : [[start, line.trimEnd().length]];
}

/** Pairs of lines, in order, whose resemblances sum up to the most. */
function mostAlike(target, prediction, fromA, fromB, rows, columns) {
  const bags = (lines, from, count) =>
    Array.from({ length: count }, (_, at) => new Set(wordsOf(lines[from + at].trim()).map((word) => word.text).filter((text) => text.trim()).slice(0, MOST_WORDS)));
  const [bagsA, bagsB] = [bags(target, fromA, rows), bags(prediction, fromB, columns)];
  const alike = (i, j) => {
    let shared = 0;
    for (const word of bagsA[i]) shared += bagsB[j].has(word) ? 1 : 0;
    const share = (2 * shared) / (bagsA[i].size + bagsB[j].size || 1);
    return share > 0.3 ? share : 0;
  };
  const width = columns + 1;
  const most = new Float64Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      const together = alike(i, j) + most[(i + 1) * width + j + 1];
      most[i * width + j] = Math.max(together, most[(i + 1) * width + j], most[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < rows && j < columns;) {
    const here = most[i * width + j];
    if (here === most[(i + 1) * width + j]) i += 1;
    else if (here === most[i * width + j + 1]) j += 1;
    else {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    }
  }
  return pairs;
}
