// What the reader looks at: the filters, the order, the open task. It stands in the address, so that it can be sent on.

const OUTCOMES = [
  { name: "all", label: "all", sign: "" },
  { name: "better", label: "better", sign: "▲\ufe0e", letter: "b" },
  { name: "same", label: "same", sign: "=", letter: "s" },
  { name: "worse", label: "worse", sign: "▼\ufe0e", letter: "w" },
  { name: "exact", label: "exact", sign: "✓\ufe0e" },
  { name: "missing", label: "missing", sign: "∅", letter: "m" },
];
/** By the letter that stands for it in the data. */
const VERDICTS = Object.fromEntries(OUTCOMES.filter(({ letter }) => letter).map(({ name, letter }) => [letter, name]));

const NOTHING_CHOSEN = {
  system: 0, outcome: "all", repository: "", status: "", query: "", bucket: "", length: "", found: "", sort: "row", task: null, view: "",
};
const state = { ...NOTHING_CHOSEN };

const count = () => data.tasks.id.length;
const mainValue = (system, task) => data.systems[system]?.values[data.main]?.[task] ?? null;
const isExact = (system, task) => data.exact !== null && data.systems[system]?.values[data.exact]?.[task] === 10_000;
const repositoryOf = (task) => data.tasks.repositories[data.tasks.repository[task]];
const pathOf = (task) => data.tasks.paths[data.tasks.path[task]];
const languageOf = (task) => data.tasks.languages[data.tasks.language[task]];
const statusOf = (system, task) => data.statuses[data.systems[system]?.statuses[task] ?? -1] ?? null;
const isCompared = (system) => data.baseline !== null && data.baseline !== system && system < data.systems.length;

/** What is searched of each task, in small letters. */
let haystacks = [];

function prepareSearch() {
  haystacks = data.tasks.id.map((id, task) => `${id}\n${repositoryOf(task)}/${pathOf(task)}\n${data.tasks.target[task]}`.toLowerCase());
}

/** Whether a task passes every filter but that of outcomes. */
function passes(task, needles) {
  const system = data.systems[state.system];
  return (
    (state.repository === "" || repositoryOf(task) === state.repository) &&
    (state.status === "" || statusOf(state.system, task) === state.status) &&
    (state.bucket === "" || system?.buckets[task] === state.bucket) &&
    (state.length === "" || data.tasks.length_group[task] === Number(state.length)) &&
    (state.found === "" || system?.found[task] === state.found) &&
    needles.every((needle) => haystacks[task].includes(needle))
  );
}


/** The tasks that pass, in order, and how many pass with each outcome. */
function select() {
  const needles = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = data.systems[state.system]?.verdicts ?? "";
  const counts = Object.fromEntries(OUTCOMES.map(({ name }) => [name, 0]));
  const tasks = [];
  for (const task of sorted()) {
    if (!passes(task, needles)) continue;
    const verdict = VERDICTS[verdicts[task]];
    const exact = isExact(state.system, task);
    counts.all += 1;
    if (verdict) counts[verdict] += 1;
    if (exact) counts.exact += 1;
    if (state.outcome === "all" || state.outcome === verdict || (exact && state.outcome === "exact")) tasks.push(task);
  }
  return { tasks, counts };
}

/** The keys that tasks are sorted by; a task without a value comes last, whatever the direction. */
const SORTS = {
  row: (task) => task,
  id: (task) => data.tasks.id[task],
  length: (task) => data.tasks.length[task],
  gain: (task) => data.systems[state.system]?.gains[task] ?? null,
  value: (task, system) => mainValue(system, task),
};

let order = { key: null, tasks: [] };

/** All tasks in the order chosen: `gain` ascending, `gain-` descending, `value.2` by the third system's value. */
function sorted() {
  const key = `${state.sort} ${state.system}`;
  if (order.key === key) return order.tasks;
  const [, name, system, down] = /^(\w+)(?:\.(\d+))?(-?)$/.exec(state.sort) ?? [null, "row", undefined, ""];
  const value = Object.hasOwn(SORTS, name) ? SORTS[name] : SORTS.row;
  const values = data.tasks.id.map((_, task) => value(task, Number(system ?? 0)));
  const sign = down ? -1 : 1;
  const tasks = values.map((_, task) => task);
  tasks.sort((a, b) => {
    const [x, y] = [values[a], values[b]];
    if (x === null || y === null) return (x === null) - (y === null) || a - b;
    return (x < y ? -sign : x > y ? sign : 0) || a - b;
  });
  order = { key, tasks };
  return tasks;
}

/** The state as the address's fragment; what is as at the beginning is left out. */
function toAddress() {
  const parts = new URLSearchParams();
  if (state.task !== null) {
    const id = data.tasks.id[state.task];
    parts.set("task", id);
    if (data.tasks.id.indexOf(id) !== state.task) parts.set("row", data.tasks.row[state.task]);
  }
  if (state.system !== data.selected && data.systems.length) parts.set("system", data.systems[state.system].name);
  for (const name of ["outcome", "repository", "status", "query", "bucket", "length", "found", "sort", "view"]) {
    if (state[name] !== NOTHING_CHOSEN[name]) parts.set(name, state[name]);
  }
  return parts.toString();
}

/** Reads an address; names that the report does not have are stepped over. */
function fromAddress(text) {
  const parts = new URLSearchParams(text);
  const chosen = { ...NOTHING_CHOSEN, system: data.selected };
  const system = data.systems.findIndex(({ name }) => name === parts.get("system"));
  if (system >= 0) chosen.system = system;
  for (const name of ["repository", "status", "query", "bucket", "length", "found", "sort", "view"]) chosen[name] = parts.get(name) ?? chosen[name];
  if (OUTCOMES.some(({ name }) => name === parts.get("outcome"))) chosen.outcome = parts.get("outcome");
  if (parts.has("task")) {
    const row = parts.has("row") ? data.tasks.row.indexOf(Number(parts.get("row"))) : -1;
    const task = data.tasks.id[row] === parts.get("task") ? row : data.tasks.id.indexOf(parts.get("task"));
    if (task >= 0) chosen.task = task;
  }
  return chosen;
}
