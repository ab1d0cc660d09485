// One query: the hits of two to four systems side by side, what matched, and the lines that join the same document.
const SNIPPET = 260;

function showQuery(index) {
  const query = data.queries[index], chosen = systems();
  by("query").replaceChildren(make("bdi", { class: "text" }, query.text));
  by("source").replaceChildren(...(query.source ? [make("bdi", { class: "text" }, `Source: ${query.source}`)] : []));
  const parts = chosen.map((system) => `${data.names[system]} ${(100 * query.scores[system]).toFixed(1)}`);
  if (chosen.length > 1) parts.push(`overlap of the first hits ${(100 * overlap(index)).toFixed(0)} %`);
  if (query.chrF !== undefined) parts.push(`chrF of the port ${query.chrF.toFixed(1)}`);
  if (query.flags?.length) parts.push(`flags: ${query.flags.join(", ")}`);
  by("summary").replaceChildren(parts.join(" · "), ...data.siblings.flatMap(([name, page]) =>
    [" · ", make("a", { href: `${page}#${new URLSearchParams({ q: query.id })}` }, make("bdi", {}, `in ${name}`))]));
  by("hits").replaceChildren(...chosen.map((system) => drawColumn(index, system, chosen)));
  for (const details of by("hits").querySelectorAll("details")) details.addEventListener("toggle", drawJoins);
  drawJoins();
}

function drawColumn(index, system, chosen) {
  const hits = data.hits[index][system], label = `column-${system}`;
  const cards = hits.length ? hits.map(([doc, score], rank) => drawCard(index, system, chosen, doc, score, rank)) : [make("li", {}, "No results for this query.")];
  return make("section", { "aria-labelledby": label }, make("h3", { id: label }, make("bdi", { title: data.systems[system] }, data.names[system])),
    make("ol", { class: "hits" }, ...cards));
}

function describeGrade(index, doc) {
  const grade = data.queries[index].grades[doc];
  return grade === undefined ? ["unjudged", "unjudged"] : [grade > 0 ? "relevant" : "not", `grade ${grade}`];
}

function drawCard(index, system, chosen, doc, score, rank) {
  const shownDoc = data.documents[doc], [grade, words] = describeGrade(index, doc);
  const head = make("div", { class: "head" }, make("strong", {}, `${rank + 1}`), make("span", {}, score.toFixed(3)),
    make("span", { class: `badge ${grade}` }, words), make("bdi", { class: "quiet" }, shownDoc.id));
  for (const other of chosen.filter((candidate) => candidate !== system)) {
    const otherRank = ranked(index, other).indexOf(doc);
    const moved = otherRank < 0 ? "not among the first" : otherRank === rank ? "same rank" : `${otherRank < rank ? "▲" : "▼"} rank ${otherRank + 1}`;
    head.append(make("span", { class: "quiet" }, chosen.length > 2 ? `${moved} in ` : moved, ...(chosen.length > 2 ? [make("bdi", {}, data.names[other])] : [])));
  }
  const item = make("li", { "data-doc": doc, tabindex: "0" }, head);
  if (shownDoc.title) item.append(make("div", {}, make("strong", {}, make("bdi", { class: "text" }, shownDoc.title))));
  item.append(make("div", { class: "text", dir: "auto" }, ...drawSnippet(index, doc)), ...drawTerms(index, doc));
  if (shownDoc.text.length > SNIPPET || shownDoc.source) {
    const body = [make("div", { class: "text", dir: "auto" }, ...highlight(index, doc, 0, shownDoc.text.length))];
    if (shownDoc.source) body.push(make("p", { class: "text quiet", dir: "auto" }, `Source: ${shownDoc.source}`));
    item.append(make("details", {}, make("summary", {}, shownDoc.source ? "whole text and source" : "whole text"), ...body));
  }
  for (const event of ["mouseenter", "focus"]) item.addEventListener(event, () => markDocument(doc, true));
  for (const event of ["mouseleave", "blur"]) item.addEventListener(event, () => markDocument(doc, false));
  return item;
}

function markDocument(doc, on) {
  for (const item of document.querySelectorAll(`#hits li[data-doc="${doc}"], #joins [data-doc="${doc}"]`)) item.classList.toggle("same", on);
}

// Where the terms of this query are in a document: [start, length, term].
function listMatches(index, doc) {
  if (!data.places) return [];
  const wanted = new Set(data.query_terms[index]), flat = data.places[doc], matches = [];
  for (let i = 0; i < flat.length; i += 3) if (wanted.has(flat[i + 2])) matches.push(flat.slice(i, i + 3));
  return matches;
}

// The window that holds the most different terms.
function drawSnippet(index, doc) {
  const text = data.documents[doc].text;
  if (data.documents[doc].missing) return ["This document is not in the corpus."];
  if (text.length <= SNIPPET) return highlight(index, doc, 0, text.length);
  const matches = listMatches(index, doc);
  let best = 0, most = -1;
  for (const [start] of matches) {
    const inside = new Set(matches.filter((m) => m[0] >= start && m[0] + m[1] <= start + SNIPPET - 40).map((m) => m[2]));
    if (inside.size > most) { most = inside.size; best = Math.max(0, start - 40); }
  }
  const cut = best === 0 ? 0 : text.indexOf(" ", best) + 1 || best;
  const from = cut > best + 40 ? best : cut;
  const parts = highlight(index, doc, from, Math.min(text.length, from + SNIPPET));
  return [...(from ? ["… "] : []), ...parts, ...(from + SNIPPET < text.length ? [" …"] : [])];
}

function highlight(index, doc, from, to) {
  const text = data.documents[doc].text, parts = [];
  let end = from;
  for (const [start, length, term] of listMatches(index, doc)) {
    if (start < end || start + length > to) continue;
    parts.push(text.slice(end, start), make("mark", { title: data.terms[term] }, text.slice(start, start + length)));
    end = start + length;
  }
  return [...parts, text.slice(end, to)];
}

// What each term gives to the score of BM25, as bars of one scale for all hits of the query.
function drawTerms(index, doc) {
  const weights = data.weights?.[doc] ?? {}, all = [...new Set(data.query_terms?.[index] ?? [])];
  const terms = all.filter((term) => weights[term]).sort((a, b) => weights[b] - weights[a]);
  if (!terms.length) return [];
  const most = Math.max(...systems().flatMap((system) => ranked(index, system)).flatMap((other) => all.map((term) => data.weights[other][term] ?? 0)));
  const total = terms.reduce((sum, term) => sum + weights[term], 0);
  return [make("div", { class: "quiet" }, `BM25: ${total.toFixed(2)}`), make("ul", { class: "terms" }, ...terms.map((term) =>
    make("li", { style: `--bar: ${((100 * weights[term]) / most).toFixed(0)}%` }, make("bdi", {}, data.terms[term]), make("span", {}, weights[term].toFixed(2)))))];
}

// Lines between neighbouring columns; none where the columns are below each other.
function drawJoins() {
  by("joins").replaceChildren();
  const columns = [...document.querySelectorAll("#hits section")], frame = by("hits").getBoundingClientRect();
  columns.slice(1).forEach((column, n) => {
    if (column.getBoundingClientRect().top > columns[n].getBoundingClientRect().top + 1) return;
    for (const left of columns[n].querySelectorAll("li[data-doc]")) {
      const doc = left.dataset.doc, right = column.querySelector(`li[data-doc="${doc}"]`);
      if (!right) continue;
      const [a, b] = [left.querySelector(".head"), right.querySelector(".head")].map((head) => head.getBoundingClientRect().top + 10 - frame.top);
      const [from, to] = [left.getBoundingClientRect().right - frame.left, right.getBoundingClientRect().left - frame.left], middle = (from + to) / 2;
      by("joins").append(shape("path", { "data-doc": doc, class: describeGrade(current, doc)[0], d: `M ${from} ${a} C ${middle} ${a} ${middle} ${b} ${to} ${b}` }));
    }
  });
}
