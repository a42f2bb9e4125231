// The page comes to life: controls, keys, figures that filter, the address, light and dark.

const byId = (id) => document.getElementById(id);

/** The address follows a moment later: browsers refuse to change it with every key that is held. */
let pending = null;

function writeAddress(how, address = `#${toAddress()}`) {
  clearTimeout(pending?.timer);
  pending = null;
  if (address === location.hash || (address === "#" && location.hash === "")) return;
  history[how](null, "", address === "#" ? location.pathname + location.search : address);
}

/** Changes the state and shows what changed; `push` makes it a step that the browser can go back from. */
function update(change, { push = false } = {}) {
  const before = { ...state };
  Object.assign(state, change);
  if (push) {
    if (pending) writeAddress("replaceState", pending.address);
    writeAddress("pushState");
  } else {
    clearTimeout(pending?.timer);
    pending = { address: `#${toAddress()}`, timer: setTimeout(writeAddress, 150, "replaceState") };
  }
  if (state.system !== before.system) chooseSystem();
  if (["system", "outcome", "repository", "status", "query", "bucket", "length", "found", "sort"].some((name) => state[name] !== before[name])) refilter();
  if (["task", "system", "view"].some((name) => state[name] !== before[name])) {
    list.draw();
    drawTask();
  }
}

/** The list after a filter changed, with the counts of every outcome. */
function refilter() {
  const { tasks, counts } = select();
  for (const button of byId("outcomes").children) {
    const name = button.dataset.outcome;
    button.setAttribute("aria-pressed", String(state.outcome === name));
    button.querySelector("b").textContent = grouped(counts[name]);
    button.classList.toggle("none-of-it", counts[name] === 0);
  }
  byId("repository").value = state.repository;
  byId("status").value = state.status;
  byId("system").value = state.system;
  if (byId("query").value !== state.query) byId("query").value = state.query;
  drawPicked();
  list.drawHead();
  list.show(tasks);
  const all = count();
  byId("count").textContent = `${tasks.length === all ? "" : `${grouped(tasks.length)} of `}${grouped(all)} ${all === 1 ? "task" : "tasks"}`;
}

/** Filters that came from figures, each with a button that takes it back. */
function drawPicked() {
  const found = data.found.find(([letter]) => letter === state.found);
  const picked = [
    ["bucket", state.bucket && `gain ${data.buckets[state.bucket.charCodeAt(0) - 97] ?? "?"}`],
    ["length", state.length !== "" && `${data.length_groups[Number(state.length)] ?? "?"} ${data.length_unit}`],
    ["found", state.found && `identifiers: ${found?.[1] ?? "?"}`],
  ].filter(([, label]) => label);
  byId("picked").replaceChildren(
    ...picked.map(([name, label]) => el("button", { type: "button", class: "picked", "data-unpick": name, "aria-label": `Remove the filter ${label}` }, label, el("span", { "aria-hidden": "true" }, " ✕\ufe0e"))),
  );
}

/** The figures and marks that belong to the system looked at. */
function chooseSystem() {
  for (const button of document.querySelectorAll("[data-pick-system]")) button.setAttribute("aria-pressed", String(Number(button.dataset.pickSystem) === state.system));
  const drawn = [...document.querySelectorAll("[data-gain-of]")];
  // The baseline has no gain; the figure then stays as it is.
  if (drawn.some((figure) => Number(figure.dataset.gainOf) === state.system)) {
    for (const figure of drawn) figure.hidden = Number(figure.dataset.gainOf) !== state.system;
  }
}

function fillControls() {
  byId("system").replaceChildren(...data.systems.map(({ name }, at) => el("option", { value: at }, visible(name))));
  byId("system-field").hidden = data.systems.length < 2;
  const fill = (id, label, names) => {
    byId(id).replaceChildren(el("option", { value: "" }, label), ...names.map((name) => el("option", { value: name }, visible(name))));
    byId(`${id}-field`).hidden = names.length < 2;
  };
  fill("repository", "all", [...data.tasks.repositories].sort());
  fill("status", "any", data.statuses);
  byId("status-field").hidden = data.statuses.length === 0;
  const isKnown = { better: data.baseline !== null, same: data.baseline !== null, worse: data.baseline !== null, exact: data.exact !== null };
  const shown = OUTCOMES.filter(({ name }) => isKnown[name] ?? true);
  byId("outcomes").replaceChildren(
    ...shown.map(({ name, label, sign }) => el("button", { type: "button", "data-outcome": name, class: name }, sign ? el("span", { class: "chip-sign", "aria-hidden": "true" }, sign) : null, ` ${label} `, el("b", {}, ""))),
  );
}

function pick(text) {
  const parts = new URLSearchParams(text);
  const change = { ...NOTHING_CHOSEN, system: state.system, view: state.view, sort: state.sort, task: null };
  if (parts.has("system")) change.system = Number(parts.get("system"));
  for (const name of ["outcome", "bucket", "length", "found"]) if (parts.has(name)) change[name] = parts.get(name);
  update(change, { push: true });
  byId("tasks").scrollIntoView({ block: "start" });
  byId("list").focus({ preventScroll: true });
}

function openAt(place, focus) {
  const task = list.tasks[place];
  if (task === undefined) return;
  list.at = place;
  const wasClosed = state.task === null;
  update({ task }, { push: wasClosed });
  // What opens is seen, even where only the head of the list was in sight.
  if (wasClosed && byId("panes").getBoundingClientRect().top > innerHeight / 3) byId("tasks").scrollIntoView({ block: "start" });
  list.intoSight();
  list.draw();
  if (focus) byId("task").focus({ preventScroll: true });
}

function step(by) {
  list.move(by);
  if (state.task !== null) openAt(list.at, false);
}

/** Numbers go from the greatest down at first, names up; then the other way round; then the order is the tasks' again. */
function nextSort(key) {
  if (key === "row") return "row";
  const [first, second] = key === "id" ? [key, `${key}-`] : [`${key}-`, key];
  return { [first]: second, [second]: "row" }[state.sort] ?? first;
}

function onClick(event) {
  const hit = (selector) => event.target.closest(selector);
  let found;
  if ((found = hit("[data-pick]"))) pick(found.dataset.pick);
  else if ((found = hit("[data-pick-system]"))) update({ system: Number(found.dataset.pickSystem) });
  else if ((found = hit("[data-outcome]"))) update({ outcome: found.dataset.outcome === state.outcome ? "all" : found.dataset.outcome });
  else if ((found = hit("[data-unpick]"))) update({ [found.dataset.unpick]: "" });
  else if (hit("[data-clear]")) clearFilters();
  else if ((found = hit("[data-sort]"))) update({ sort: nextSort(found.dataset.sort) });
  else if ((found = hit(".row"))) openAt(Number(found.dataset.place), false);
  else if ((found = hit("[data-step]"))) step(Number(found.dataset.step));
  else if (hit("[data-close]")) close();
  else if ((found = hit("[data-view]"))) update({ view: found.dataset.view });
  else if ((found = hit(".tabs [data-system]"))) update({ system: Number(found.dataset.system) });
  else if (hit("#keys")) byId("help").showModal();
}

function close() {
  update({ task: null });
  byId("list").focus({ preventScroll: true });
}

function clearFilters() {
  update({ ...NOTHING_CHOSEN, system: state.system, sort: state.sort, view: state.view, task: state.task });
}

/** What the keys do, where they are not typed into a field. */
const KEYS = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  PageDown: () => step(10), PageUp: () => step(-10), Home: () => step(-Infinity), End: () => step(Infinity),
  Enter: () => openAt(list.at, true),
  "/": () => byId("query").focus(),
  "?": () => byId("help").showModal(),
  v: () => state.task !== null && update({ view: document.querySelector("[data-view]")?.dataset.view ?? state.view }),
  Escape: () => (state.task === null ? clearFilters() : close()),
};
/** These scroll the page or press what has the focus; in the list they are ours. */
const LIST_KEYS = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter"]);

function onKey(event) {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if ((key === "Enter" || key === " ") && target.closest?.("g[data-pick]")) {
    event.preventDefault();
    pick(target.closest("g[data-pick]").dataset.pick);
    return;
  }
  if (target.matches?.("[role=tab]") && (key === "ArrowLeft" || key === "ArrowRight")) {
    const system = (state.system + (key === "ArrowRight" ? 1 : -1) + data.systems.length) % data.systems.length;
    update({ system });
    requestAnimationFrame(() => setTimeout(() => document.querySelector("[role=tab][aria-selected=true]")?.focus(), 0));
    return;
  }
  if (target.matches?.("input, select, textarea")) {
    if (key === "Escape" && target === byId("query")) {
      update({ query: "" });
      byId("list").focus({ preventScroll: true });
    } else if (target === byId("query") && (key === "ArrowDown" || key === "Enter")) {
      event.preventDefault();
      byId("list").focus({ preventScroll: true });
      if (key === "Enter") openAt(list.at, false);
    }
    return;
  }
  if (LIST_KEYS.has(key) && !byId("list").contains(target)) return;
  const system = /^[1-9]$/.test(key) ? Number(key) - 1 : -1;
  if (system >= 0 && system < data.systems.length) update({ system });
  else if (KEYS[key]) {
    event.preventDefault();
    KEYS[key]();
  }
}

/** Light, dark, or as the system has it; kept where the browser keeps things for files. */
function prepareTheme() {
  const button = byId("theme");
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("repoformer-theme"); } catch { return null; } };
  const set = (theme) => { root.dataset.theme = theme; try { localStorage.setItem("repoformer-theme", theme); } catch { /* not kept */ } };
  if (read() === "light" || read() === "dark") root.dataset.theme = read();
  button.hidden = false;
  button.addEventListener("click", () => {
    const isDark = (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    set(isDark ? "light" : "dark");
  });
}

async function start() {
  data = JSON.parse(utf8.decode(await inflate("summary")));
  prepareSearch();
  fillControls();
  byId("browser").hidden = false;
  byId("panes").hidden = count() === 0;
  byId("nothing").hidden = count() > 0;
  Object.assign(state, fromAddress(location.hash.slice(1)));
  chooseSystem();
  list.measure();
  refilter();
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  byId("query").addEventListener("input", (event) => update({ query: event.target.value }));
  byId("system").addEventListener("change", (event) => update({ system: Number(event.target.value) }));
  byId("repository").addEventListener("change", (event) => update({ repository: event.target.value }));
  byId("status").addEventListener("change", (event) => update({ status: event.target.value }));
  byId("list").addEventListener("scroll", () => list.measure(), { passive: true });
  new ResizeObserver(() => list.measure()).observe(byId("list"));
  addEventListener("popstate", () => {
    // A fragment that says nothing of the state is a place in the page.
    if (location.hash.length > 1 && !location.hash.includes("=")) return;
    clearTimeout(pending?.timer);
    pending = null;
    update(fromAddress(location.hash.slice(1)));
  });
  await drawTask();
  if (location.hash.length > 1) byId("tasks").scrollIntoView({ block: "start" });
  if (state.task === null) prepare(list.tasks[0]);
  window.reportReady = performance.now();
  document.documentElement.dataset.ready = "true";
}

document.documentElement.classList.add("scripted");
prepareTheme();
start().catch((error) => {
  byId("browser").hidden = false;
  byId("browser").replaceChildren(el("p", { class: "empty" }, `The tasks cannot be shown: ${error.message}`));
  console.error(error);
});
