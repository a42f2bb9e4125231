// The data: blocks of the page, decoded when they are wanted. The format is told in the program's `report/data`.

/** The block of this name, once the browser has read the page so far: the summary comes first, and need not wait for the rest. */
function arrived(name) {
  return new Promise((resolve) => {
    const look = () => {
      const element = document.getElementById(name);
      const isWhole = element?.nextSibling || document.readyState !== "loading";
      if (isWhole) resolve(element);
      return isWhole;
    };
    if (look()) return;
    const observer = new MutationObserver(() => look() && observer.disconnect());
    observer.observe(document.body, { childList: true });
    document.addEventListener("DOMContentLoaded", () => look() && observer.disconnect());
  });
}

/** Bytes of the block of this name. */
async function inflate(name) {
  const element = await arrived(name);
  if (!element) throw new Error(`the page has no block ${name}`);
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Blocks that were decoded lately, so that neighbours of a task open at once and memory stays small. */
class Blocks {
  constructor(kind, most, decode) {
    Object.assign(this, { kind, most, decode, kept: new Map() });
  }

  /** The decoded block of this number, as a promise. */
  get(number) {
    const kept = this.kept.get(number) ?? inflate(`${this.kind}-${number}`).then(this.decode);
    this.kept.delete(number);
    this.kept.set(number, kept);
    if (this.kept.size > this.most) this.kept.delete(this.kept.keys().next().value);
    return kept;
  }
}

const taskBlocks = new Blocks("tasks", 16, (bytes) => bytes);
const lineBlocks = new Blocks("lines", 96, (bytes) => utf8.decode(bytes).split("\n"));

/** Reads the numbers of a record one after the other. */
class Reader {
  constructor(bytes, start) {
    this.bytes = bytes;
    this.at = start;
  }

  /** An unsigned number in LEB128; products instead of shifts, since these end at 32 bits. */
  number() {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.bytes[this.at];
      this.at += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  }

  score() {
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 4);
    this.at += 4;
    return view.getFloat32(0, true);
  }

  /** A text as the numbers of its lines. */
  text() {
    const lines = new Array(this.number());
    let expected = 0;
    for (let at = 0; at < lines.length; at += 1) {
      const step = this.number();
      lines[at] = expected + (step % 2 ? -(step + 1) / 2 : step / 2);
      expected = lines[at] + 1;
    }
    return lines;
  }

  option() {
    return this.number() ? this.text() : null;
  }

  outcome() {
    if (!this.number()) return null;
    const raw = this.option();
    const prediction = this.text();
    const fragments = [];
    for (let left = this.number(); left > 0; left -= 1) {
      const path = this.text();
      const line = this.number();
      const score = this.score();
      fragments.push({ path, line: line || null, score: Number.isNaN(score) ? null : score, text: this.text() });
    }
    return { raw, prediction, fragments };
  }
}

/** The number of the block that holds a line: the last whose first line is not after it. */
function blockOfLine(line) {
  let low = 0;
  let high = data.line_blocks.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (data.line_blocks[middle] <= line) low = middle;
    else high = middle;
  }
  return low;
}

/** Every text of a task, as lists of lines: `{target, left, right, outcomes}`, an outcome or null a system. */
async function textsOf(task) {
  const reader = new Reader(await taskBlocks.get(data.tasks.block[task]), data.tasks.start[task]);
  const found = { target: reader.text(), left: reader.text(), right: reader.option() };
  found.outcomes = data.systems.map(() => reader.outcome());

  // All blocks that are needed are decoded side by side, then numbers become lines in place.
  const texts = [found.target, found.left, found.right];
  for (const outcome of found.outcomes) {
    if (!outcome) continue;
    texts.push(outcome.raw, outcome.prediction);
    for (const fragment of outcome.fragments) texts.push(fragment.path, fragment.text);
  }
  const needed = new Map();
  for (const text of texts) for (const line of text ?? []) needed.set(blockOfLine(line), null);
  await Promise.all([...needed.keys()].map(async (block) => needed.set(block, await lineBlocks.get(block))));
  for (const text of texts) {
    for (let at = 0; at < (text?.length ?? 0); at += 1) {
      const block = blockOfLine(text[at]);
      text[at] = needed.get(block)[text[at] - data.line_blocks[block]];
    }
  }
  return found;
}

/** The summary of all tasks, filled in before anything else runs. */
let data = null;
