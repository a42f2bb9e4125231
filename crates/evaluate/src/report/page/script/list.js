// The list of tasks. However many there are, only the rows in sight are elements.

const ROW_HEIGHT = 46;
const ROWS_BEYOND = 6;

const list = {
  tasks: [],
  /** Place of the row that the keys move. */
  at: 0,
  /** Where the frame is scrolled to and how high it is: kept, since asking for them has the page laid out anew. */
  top: 0,
  height: 0,

  /** The systems with a column: all of a few, else the two that are compared. */
  systems() {
    const all = data.systems.map((_, system) => system);
    if (all.length <= 5) return all;
    return [...new Set([data.baseline ?? state.system, state.system])];
  },

  /** Headings that sort. */
  drawHead() {
    const head = document.getElementById("list-head");
    const systems = this.systems();
    document.getElementById("panes").style.setProperty("--systems", systems.length);
    const columns = [
      ["row", "", "order of the tasks", "sign"],
      ["id", "task", "id", "name"],
      ["length", data.length_unit, `length of the target in ${data.length_unit}`, "number"],
      ...systems.map((system) => [`value.${system}`, data.systems[system].name, `${data.measures[data.main]?.title ?? "value"} of ${data.systems[system].name}`, "number"]),
    ];
    if (isCompared(state.system)) columns.push(["gain", "gain", "gain over the baseline", "gain"]);
    head.replaceChildren(
      ...columns.map(([key, label, title, kind]) => {
        const direction = state.sort === key ? "ascending" : state.sort === `${key}-` ? "descending" : "none";
        const arrow = { ascending: "↑", descending: "↓", none: "" }[direction];
        const other = key.startsWith("value") && Number(key.slice(6)) !== state.system ? " other" : "";
        return el(
          "button",
          { type: "button", class: `${kind}${other}`, title: `Sort by ${visible(title)}`, "aria-pressed": String(direction !== "none"), "data-sort": key },
          el("span", {}, visible(label) || "№"), arrow,
        );
      }),
    );
  },

  /** Shows other tasks, and the open one among them if it is there. */
  show(tasks) {
    this.tasks = tasks;
    const open = state.task === null ? -1 : tasks.indexOf(state.task);
    this.at = Math.max(open, 0);
    document.getElementById("list-ground").style.height = `${tasks.length * ROW_HEIGHT}px`;
    this.intoSight();
    this.draw();
  },

  /** Draws the rows in sight anew. */
  draw() {
    document.getElementById("list-ground").replaceChildren();
    this.fill();
    const frame = document.getElementById("list");
    if (this.tasks.length) frame.setAttribute("aria-activedescendant", `row-${this.at}`);
    else frame.removeAttribute("aria-activedescendant");
  },

  /** Draws the rows that came into sight and drops those that left it. The others stay: one of them may be pressed. */
  fill() {
    const ground = document.getElementById("list-ground");
    const first = Math.max(0, Math.floor(this.top / ROW_HEIGHT) - ROWS_BEYOND);
    const last = Math.min(this.tasks.length, Math.ceil((this.top + this.height) / ROW_HEIGHT) + ROWS_BEYOND);
    for (const row of [...ground.children]) if (row.dataset.place < first || row.dataset.place >= last) row.remove();
    let next = ground.firstElementChild;
    for (let place = first; place < last; place += 1) {
      if (Number(next?.dataset.place) === place) next = next.nextElementSibling;
      else ground.insertBefore(this.row(place), next);
    }
    if (this.tasks.length === 0) ground.replaceChildren(this.empty());
  },

  empty() {
    const clear = el("button", { type: "button", class: "quiet", "data-clear": true }, "show all");
    return el("p", { class: "empty" }, "No task passes these filters. ", clear);
  },

  row(place) {
    const task = this.tasks[place];
    const system = data.systems[state.system];
    const where = `${repositoryOf(task)}/${pathOf(task)}:${data.tasks.line_no[task] + 1}`;
    const row = el(
      "div",
      {
        class: `row${place === this.at ? " current" : ""}${task === state.task ? " open" : ""}`, id: `row-${place}`, role: "option",
        style: { top: `${place * ROW_HEIGHT}px` }, "data-place": place, "aria-selected": String(task === state.task),
        "aria-setsize": this.tasks.length, "aria-posinset": place + 1,
      },
      outcomeSign(task),
      el("span", { class: "name" },
        el("b", { title: visible(data.tasks.id[task]) }, el("bdi", {}, visible(data.tasks.id[task]))),
        el("span", { class: "where", title: visible(where) }, el("bdi", {}, visible(firstLine(task))))),
      el("span", { class: "number length" }, grouped(data.tasks.length[task])),
      this.systems().map((at) => el("span", { class: `number${at === state.system ? "" : " other"}` }, points(mainValue(at, task)))),
    );
    if (isCompared(state.system)) row.append(gainCell(system.gains[task]));
    return row;
  },

  /** Moves by some rows. */
  move(by) {
    if (this.tasks.length === 0) return;
    this.at = Math.min(Math.max(this.at + by, 0), this.tasks.length - 1);
    this.intoSight();
    this.draw();
  },

  /** The frame was scrolled, or has another height. */
  measure() {
    const frame = document.getElementById("list");
    const before = [this.top, this.height];
    [this.top, this.height] = [frame.scrollTop, frame.clientHeight];
    if (before[0] !== this.top || before[1] !== this.height) this.fill();
  },

  /** Scrolls as little as is needed to see the current row. */
  intoSight() {
    const top = this.at * ROW_HEIGHT;
    const least = Math.max(0, top + ROW_HEIGHT - this.height);
    const wanted = Math.min(Math.max(this.top, least), top);
    if (wanted === this.top) return;
    const frame = document.getElementById("list");
    frame.scrollTop = wanted;
    this.top = frame.scrollTop;
  },
};

/** The first line of a target that is not blank. */
function firstLine(task) {
  return data.tasks.target[task].split("\n", 20).find((line) => line.trim())?.trim().slice(0, 200) ?? "(blank)";
}

/** A count with commas between its thousands. */
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A value × 100 with one decimal. */
function points(value) {
  return value === null ? "–" : (value / 100).toFixed(1);
}

/** A gain × 100 with its sign; a gain too small for a decimal keeps its sign. */
function signedPoints(gain) {
  if (gain === null) return "–";
  return `${gain > 0 ? "+" : gain < 0 ? "−" : ""}${(Math.abs(gain) / 100).toFixed(1)}`;
}

function outcomeOf(system, task) {
  return OUTCOMES.find(({ letter }) => letter === data.systems[system]?.verdicts[task]) ?? null;
}

/** The verdict as a sign, and whether the prediction is the target. */
function outcomeSign(task) {
  const outcome = outcomeOf(state.system, task);
  const exact = isExact(state.system, task);
  const label = [outcome?.label, exact ? "exact" : null].filter(Boolean).join(", ");
  return el(
    "span",
    { class: `sign ${outcome?.name ?? ""}`, title: label, "aria-label": label },
    outcome?.sign ?? "", exact ? el("i", { class: "exact-sign" }, "✓\ufe0e") : null,
  );
}

/** A gain as a number and a bar to one side of the middle. */
function gainCell(gain) {
  const side = gain > 0 ? "better" : gain < 0 ? "worse" : "same";
  const wide = `${Math.abs(gain ?? 0) / 200}%`;
  const bar = el("i", { class: side, style: { [gain < 0 ? "right" : "left"]: "50%", width: wide } });
  return el("span", { class: "gain" }, el("span", { class: side }, signedPoints(gain)), el("span", { class: "bar", "aria-hidden": "true" }, bar));
}
