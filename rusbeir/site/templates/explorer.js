// The explorer of queries: its list, facets and keys. All texts come from the data as text nodes; nothing is read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const CHOSEN = ["first", "second", "third", "fourth"];
let shown = [];
let current = null;
let settings = [];

function start() {
  CHOSEN.forEach((id, number) => {
    if (number > 1) by(id).append(make("option", { value: "" }, "none"));
    data.names.forEach((name, index) => by(id).append(make("option", { value: String(index) }, name)));
    by(id).value = number < Math.min(2, data.systems.length) ? String(number) : number < 2 ? "0" : "";
  });
  for (const [id, facet] of Object.entries(FACETS)) {
    const options = facet.options.map(([name], n) => make("option", { value: String(n) }, name));
    if (options.length) by("facets").append(make("label", {}, `${facet.name} `, make("select", { id }, make("option", { value: "" }, "any"), ...options)));
  }
  settings = ["order", "only", "find", ...Object.keys(FACETS).filter(by)];
  const named = readAddress();
  for (const id of [...CHOSEN, ...settings]) by(id).addEventListener(id === "find" ? "input" : "change", () => list(true));
  by("scroll").addEventListener("scroll", drawList, { passive: true });
  new ResizeObserver(() => { drawList(); drawJoins(); }).observe(by("explorer-body"));
  new ResizeObserver(drawStrip).observe(by("strip"));
  document.addEventListener("keydown", press);
  window.addEventListener("hashchange", () => { if (readAddress()) list(false); });
  by("strip-caption").after(make("div", { class: "tools" }, saveButtons(by("strip").parentElement, "differences-of-queries")));
  startNotes();
  list(false);
  // The page opens at its top, unless the address names a query.
  if (named) by("explorer").scrollIntoView();
}

function press(event) {
  const inList = event.target.closest("#scroll") !== null;
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const moves = { j: 1, k: -1, ...(inList && { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }) };
  if (event.key in moves) step(moves[event.key]);
  else if (event.key === "/") by("find").focus();
  else if (event.key === "n") by("note").focus();
  else return;
  event.preventDefault();
}

const systems = () => [...new Set(CHOSEN.map((id) => by(id).value).filter((value) => value !== "").map(Number))];
const pair = () => [Number(by("first").value), Number(by("second").value)];

function difference(index) {
  const [first, second] = pair(), scores = data.queries[index].scores;
  return scores[first] - scores[second];
}

const ranked = (index, system) => data.hits[index][system].map((hit) => hit[0]);

function overlap(index) {
  const [a, b] = pair().map((system) => new Set(ranked(index, system)));
  const common = [...a].filter((doc) => b.has(doc)).length;
  return a.size + b.size ? common / (a.size + b.size - common || 1) : 1;
}

// Kendall's tau over the documents that both systems rank; 0 where there are fewer than two.
function correlation(index) {
  const [a, b] = pair().map((system) => ranked(index, system));
  const both = a.filter((doc) => b.includes(doc)).map((doc) => b.indexOf(doc));
  let sum = 0, pairs = 0;
  for (let i = 0; i < both.length; i++) for (let j = i + 1; j < both.length; j++) { sum += Math.sign(both[j] - both[i]); pairs++; }
  return pairs ? sum / pairs : 0;
}

const ORDERS = {
  gap: (i) => -Math.abs(difference(i)),
  first: (i) => -difference(i),
  second: (i) => difference(i),
  overlap: (i) => overlap(i),
  correlation: (i) => correlation(i),
  file: (i) => i,
};
const ONLY = {
  all: () => true,
  differ: (i) => difference(i) !== 0,
  zero: (i) => systems().some((system) => data.hits[i][system].length === 0),
  noted: (i) => data.queries[i].id in notes,
};

// Thirds of a number that queries have: [name, test] of each; none where all are equal or nothing is known.
function makeThirds(measure, unit) {
  const values = (data.queries ?? []).map((_, index) => measure(index)).filter((value) => value !== undefined).sort((a, b) => a - b);
  const [low, high] = [1, 2].map((third) => Math.floor(values[Math.floor((third * values.length) / 3)]));
  if (!(low < high)) return [];
  return [[`up to ${low}${unit}`, (i) => Math.floor(measure(i)) <= low], [`over ${low}, up to ${high}${unit}`, (i) => Math.floor(measure(i)) > low && Math.floor(measure(i)) <= high],
    [`over ${high}${unit}`, (i) => Math.floor(measure(i)) > high]];
}

const flags = [...new Set((data.queries ?? []).flatMap((query) => query.flags ?? []))].sort();
const FACETS = {
  length: { name: "Length", options: makeThirds((i) => data.query_terms?.[i].length ?? data.queries[i].text.split(/\s+/).length, " terms") },
  chrf: { name: "chrF of the port", options: makeThirds((i) => data.queries[i].chrF, "") },
  flag: { name: "Flag", options: flags.map((flag) => [flag, (i) => (data.queries[i].flags ?? []).includes(flag)]) },
};

function list(write) {
  const words = by("find").value.toLowerCase();
  const tests = [ONLY[by("only").value], ...Object.entries(FACETS).filter(([id]) => by(id)?.value).map(([id, facet]) => facet.options[by(id).value][1])];
  shown = data.queries.map((_, index) => index).filter((index) => {
    const query = data.queries[index];
    return (!words || `${query.id} ${query.text}`.toLowerCase().includes(words)) && tests.every((test) => test(index));
  });
  const key = new Map(shown.map((index) => [index, ORDERS[by("order").value](index)]));
  shown.sort((a, b) => key.get(a) - key.get(b) || a - b);
  by("count").textContent = `${shown.length.toLocaleString("en")} of ${data.queries.length.toLocaleString("en")} queries`;
  const next = current !== null && shown.includes(current) ? current : shown[0];
  if (next === undefined) showNothing(); else openQuery(next, write);
  drawStrip();
}

const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "±") + Math.abs(100 * value).toFixed(1);
const rowHeight = () => 2.25 * parseFloat(getComputedStyle(document.documentElement).fontSize);

// Only the rows that are seen are in the page, with room for the others above and below.
function drawList() {
  const box = by("scroll"), rows = by("queries"), height = rowHeight();
  const first = Math.max(0, Math.floor(box.scrollTop / height) - 10);
  const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / height) + 20);
  rows.style.paddingTop = `${first * height}px`;
  rows.style.paddingBottom = `${(shown.length - last) * height}px`;
  rows.replaceChildren(...shown.slice(first, last).map((index, n) => drawRow(index, first + n)));
}

function drawRow(index, position) {
  const query = data.queries[index], gap = difference(index);
  const button = make("button", { type: "button", tabindex: "-1", ...(index === current && { "aria-current": "true" }) },
    make("bdi", { class: "text" }, query.text || query.id), make("span", { class: `gap ${gap < 0 ? "second" : "first"}`, style: `--gap: ${Math.abs(gap)}` }, signed(gap)));
  // The row is drawn anew, so that the list has the focus.
  button.addEventListener("click", () => { by("scroll").focus({ preventScroll: true }); openQuery(index); });
  return make("li", { "aria-setsize": shown.length, "aria-posinset": position + 1 }, button);
}

function step(distance) {
  const next = Math.min(shown.length - 1, Math.max(0, shown.indexOf(current) + distance));
  if (shown.length && shown[next] !== current) openQuery(shown[next]);
}

// No query matches: the one that was open would look like an answer.
function showNothing() {
  current = null;
  by("query").textContent = "No query matches.";
  by("source").replaceChildren();
  by("summary").textContent = "Change the words to find, or show all queries.";
  by("hits").replaceChildren();
  by("notes").hidden = true;
  drawList();
}

function openQuery(index, write = true) {
  current = index;
  drawList();
  const box = by("scroll"), top = shown.indexOf(index) * rowHeight();
  // Only the list is scrolled, and not the page.
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + rowHeight() > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight() - box.clientHeight;
  drawList();
  markStrip();
  showQuery(index);
  showNote(index);
  if (write) writeAddress(index);
}

function writeAddress(index) {
  const values = settings.map((id) => [id, by(id).value]).map(([id, value]) => [id, value === by(id).dataset.usual ? "" : value]);
  remember({ explorer: "", q: data.queries[index].id, ...Object.fromEntries(values), ...Object.fromEntries(CHOSEN.map((id) => [id, data.systems[by(id).value] ?? ""])) });
}

function readAddress() {
  const index = data.queries.findIndex((query) => query.id === state.get("q"));
  if (index >= 0) current = index;
  CHOSEN.forEach((id) => {
    const system = data.systems.indexOf(state.get(id));
    if (system >= 0) by(id).value = String(system);
  });
  for (const input of settings.map(by)) {
    const before = input.value;
    if (state.has(input.id)) input.value = state.get(input.id);
    // An address may name what this report does not have.
    if (input.selectedIndex < 0) input.value = before;
  }
  return index >= 0;
}
