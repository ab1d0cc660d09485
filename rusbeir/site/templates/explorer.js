// The explorer of queries. All texts come from the data as text nodes; nothing is read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const CHOSEN = ["first", "second", "third", "fourth"];
let shown = [];
let current = null;

function start() {
  CHOSEN.forEach((id, number) => {
    if (number > 1) by(id).append(make("option", { value: "" }, "none"));
    data.names.forEach((name, index) => by(id).append(make("option", { value: String(index) }, name)));
    by(id).value = number < Math.min(2, data.systems.length) ? String(number) : number < 2 ? "0" : "";
  });
  const named = readAddress();
  for (const id of [...CHOSEN, "order", "only"]) by(id).addEventListener("change", () => list(true));
  by("find").addEventListener("input", () => list(true));
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") { event.preventDefault(); by("find").focus(); }
  });
  window.addEventListener("hashchange", () => { if (readAddress()) list(true); });
  list(false);
  // The page opens at its top, unless the address names a query.
  if (named) by("explorer").scrollIntoView();
}

function systems() {
  return [...new Set(CHOSEN.map((id) => by(id).value).filter((value) => value !== "").map(Number))];
}

function difference(index) {
  const scores = data.queries[index].scores;
  return scores[Number(by("first").value)] - scores[Number(by("second").value)];
}

function overlap(index) {
  const [a, b] = [by("first").value, by("second").value].map((s) => new Set(data.hits[index][Number(s)].map((h) => h[0])));
  const common = [...a].filter((doc) => b.has(doc)).length;
  return a.size + b.size ? common / (a.size + b.size - common || 1) : 1;
}

// Kendall's tau over the documents that both systems rank; 0 where there are fewer than two.
function correlation(index) {
  const [a, b] = [by("first").value, by("second").value].map((s) => data.hits[index][Number(s)].map((h) => h[0]));
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

function list(write) {
  const words = by("find").value.toLowerCase();
  const only = by("only").value;
  const chosen = systems();
  shown = data.queries.map((_, index) => index).filter((index) => {
    const query = data.queries[index];
    if (words && !`${query.id} ${query.text}`.toLowerCase().includes(words)) return false;
    if (only === "zero") return chosen.some((s) => data.hits[index][s].length === 0);
    if (only === "differ") return Math.abs(difference(index)) > 0;
    return true;
  });
  const key = new Map(shown.map((index) => [index, ORDERS[by("order").value](index)]));
  shown.sort((a, b) => key.get(a) - key.get(b) || a - b);
  by("queries").replaceChildren(...shown.map((index) => {
    const query = data.queries[index];
    const button = make("button", { type: "button", "data-index": index }, make("bdi", { class: "text" }, query.text || query.id),
      make("span", { class: "quiet" }, signed(difference(index))));
    button.addEventListener("click", () => openQuery(index));
    return make("li", {}, button);
  }));
  by("count").textContent = `${shown.length} of ${data.queries.length} queries`;
  const next = current !== null && shown.includes(current) ? current : shown[0];
  if (next !== undefined) openQuery(next, write); else showNothing();
}

const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "±") + Math.abs(100 * value).toFixed(1);

function step(distance) {
  const next = shown.indexOf(current) + distance;
  if (next >= 0 && next < shown.length) openQuery(shown[next]);
}

// No query matches: the one that was open would look like an answer.
function showNothing() {
  current = null;
  by("query").textContent = "No query matches.";
  by("source").replaceChildren();
  by("summary").textContent = "Change the words to find, or show all queries.";
  by("hits").replaceChildren();
}

function openQuery(index, write = true) {
  current = index;
  document.querySelectorAll("#queries button").forEach((button) => {
    const mine = Number(button.dataset.index) === index;
    if (!mine) { button.removeAttribute("aria-current"); return; }
    button.setAttribute("aria-current", "true");
    // Only the list is scrolled, and not the page.
    const list = by("queries"), top = button.parentElement.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + button.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + button.offsetHeight - list.clientHeight;
  });
  const query = data.queries[index];
  by("query").replaceChildren(make("bdi", { class: "text" }, query.text));
  by("source").replaceChildren(...(query.source ? [make("bdi", { class: "text" }, `Source: ${query.source}`)] : []));
  const chosen = systems();
  by("summary").textContent = summary(index, chosen);
  by("hits").replaceChildren(...chosen.map((system) => column(index, system, chosen)));
  if (write) writeAddress(index);
}

function summary(index, chosen) {
  const query = data.queries[index];
  const parts = chosen.map((s) => `${data.names[s]} ${(100 * query.scores[s]).toFixed(1)}`);
  if (chosen.length > 1) parts.push(`overlap of the first hits ${(100 * overlap(index)).toFixed(0)} %`);
  return parts.join(" · ");
}

function column(index, system, chosen) {
  const hits = data.hits[index][system];
  const cards = hits.length ? hits.map(([doc, score], rank) => card(index, system, chosen, doc, score, rank))
    : [make("li", {}, "No results for this query.")];
  const label = `column-${system}`;
  return make("section", { "aria-labelledby": label }, make("h3", { id: label }, make("bdi", { title: data.systems[system] }, data.names[system])),
    make("ol", { class: "hits" }, ...cards));
}

function card(index, system, chosen, doc, score, rank) {
  const query = data.queries[index];
  const found = data.documents[doc];
  const grade = query.grades[doc];
  const badge = grade === undefined ? ["unjudged", "unjudged"] : grade > 0 ? ["relevant", `grade ${grade}`] : ["not", `grade ${grade}`];
  const head = make("div", { class: "head" }, make("strong", {}, `${rank + 1}`), make("span", {}, score.toFixed(3)),
    make("span", { class: `badge ${badge[0]}` }, badge[1]), make("bdi", { class: "quiet" }, found.id));
  for (const other of chosen) {
    if (other === system) continue;
    const there = data.hits[index][other].findIndex((hit) => hit[0] === doc);
    const moved = there < 0 ? "not among the first" : there === rank ? "same rank" : `${there < rank ? "▲" : "▼"} rank ${there + 1}`;
    head.append(make("span", { class: "quiet" }, chosen.length > 2 ? `${moved} in ` : moved, ...(chosen.length > 2 ? [make("bdi", {}, data.names[other])] : [])));
  }
  const item = make("li", { "data-doc": doc, tabindex: "0" }, head);
  if (found.title) item.append(make("div", {}, make("strong", {}, make("bdi", { class: "text" }, found.title))));
  item.append(make("div", { class: "text", dir: "auto" }, ...snippet(index, doc)));
  const weights = contributions(index, doc);
  if (weights) item.append(make("div", { class: "quiet text" }, weights));
  if (found.text.length > SNIPPET || found.source) {
    const body = [make("div", { class: "text", dir: "auto" }, ...highlighted(index, doc, 0, found.text.length))];
    if (found.source) body.push(make("p", { class: "text quiet", dir: "auto" }, `Source: ${found.source}`));
    item.append(make("details", {}, make("summary", {}, found.source ? "whole text and source" : "whole text"), ...body));
  }
  for (const event of ["mouseenter", "focus"]) item.addEventListener(event, () => point(doc, true));
  for (const event of ["mouseleave", "blur"]) item.addEventListener(event, () => point(doc, false));
  return item;
}

function point(doc, on) {
  for (const item of document.querySelectorAll(`#hits li[data-doc="${doc}"]`)) item.classList.toggle("same", on);
}

const SNIPPET = 260;

// The places of this query's terms in a document: [start, length, term].
function matches(index, doc) {
  if (!data.places) return [];
  const wanted = new Set(data.query_terms[index]);
  const flat = data.places[doc];
  const found = [];
  for (let i = 0; i < flat.length; i += 3) if (wanted.has(flat[i + 2])) found.push(flat.slice(i, i + 3));
  return found;
}

// The window that holds the most different terms.
function snippet(index, doc) {
  const text = data.documents[doc].text;
  if (data.documents[doc].missing) return ["This document is not in the corpus."];
  if (text.length <= SNIPPET) return highlighted(index, doc, 0, text.length);
  const found = matches(index, doc);
  let best = 0, most = -1;
  for (const [start] of found) {
    const inside = new Set(found.filter((m) => m[0] >= start && m[0] + m[1] <= start + SNIPPET - 40).map((m) => m[2]));
    if (inside.size > most) { most = inside.size; best = Math.max(0, start - 40); }
  }
  const cut = best === 0 ? 0 : text.indexOf(" ", best) + 1 || best;
  const from = cut > best + 40 ? best : cut;
  const parts = highlighted(index, doc, from, Math.min(text.length, from + SNIPPET));
  return [...(from ? ["… "] : []), ...parts, ...(from + SNIPPET < text.length ? [" …"] : [])];
}

function highlighted(index, doc, from, to) {
  const text = data.documents[doc].text;
  const parts = [];
  let at = from;
  for (const [start, length, term] of matches(index, doc)) {
    if (start < at || start + length > to) continue;
    parts.push(text.slice(at, start), make("mark", { title: data.terms[term] }, text.slice(start, start + length)));
    at = start + length;
  }
  return [...parts, text.slice(at, to)];
}

function contributions(index, doc) {
  const weights = data.weights?.[doc];
  if (!weights) return "";
  const found = [...new Set(data.query_terms[index])].filter((term) => weights[term]).sort((a, b) => weights[b] - weights[a]);
  return found.length ? `BM25: ${found.map((term) => `${data.terms[term]} ${weights[term].toFixed(2)}`).join(", ")}` : "";
}

function writeAddress(index) {
  const parts = new URLSearchParams({ q: data.queries[index].id });
  CHOSEN.forEach((id) => { if (by(id).value !== "") parts.set(id, data.systems[Number(by(id).value)]); });
  history.replaceState(null, "", `#${parts}`);
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const index = data.queries.findIndex((query) => query.id === parts.get("q"));
  if (index >= 0) current = index;
  CHOSEN.forEach((id) => {
    const system = data.systems.indexOf(parts.get(id));
    if (system >= 0) by(id).value = String(system);
  });
  return index >= 0;
}

if (data.queries) start();
