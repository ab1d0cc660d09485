// The differences of all shown queries as ordered bars: a click opens a query.
const STRIP = { left: 44, top: 16, height: 96 };
let ordered = [];

function drawStrip() {
  const frame = by("strip"), width = frame.clientWidth, [first, second] = pair().map((system) => data.names[system]);
  ordered = [...shown].sort((a, b) => difference(b) - difference(a));
  const gaps = ordered.map(difference), middle = STRIP.top + STRIP.height / 2;
  const counts = [gaps.filter((gap) => gap > 0).length, gaps.filter((gap) => gap < 0).length];
  const bar = (width - STRIP.left) / Math.max(1, gaps.length);
  // Bars without room between them are one area.
  const area = (sign) => gaps.map((gap, n) => (gap * sign > 0 ? `M ${(STRIP.left + n * bar).toFixed(2)} ${middle} v ${((-gap * STRIP.height) / 2).toFixed(1)} H ${(STRIP.left + (n + 1) * bar).toFixed(2)} V ${middle} z` : "")).join("");
  const text = (x, y, words, anchor, name = "") => shape("text", { x, y, "text-anchor": anchor, class: name }, words);
  const sentence = `${first} is better on ${counts[0].toLocaleString("en")} queries, ${second} on ${counts[1].toLocaleString("en")}; ${(gaps.length - counts[0] - counts[1]).toLocaleString("en")} are equal.`;
  by("strip").replaceChildren(shape("svg", { class: "strip", width, height: STRIP.height + STRIP.top + 24, role: "img", "aria-label": `Differences of all queries, ordered. ${sentence}` },
    ...[100, 0, -100].map((tick) => shape("path", { class: "grid", d: `M ${STRIP.left} ${middle - (tick * STRIP.height) / 200} H ${width}` })),
    ...[100, 0, -100].map((tick) => text(STRIP.left - 6, middle - (tick * STRIP.height) / 200 + 4, `${tick > 0 ? "+" : ""}${tick}`.replace("-", "−"), "end")),
    shape("path", { class: "first", d: area(1) }), shape("path", { class: "second", d: area(-1) }),
    shape("path", { id: "position", d: "" }), text(width, STRIP.height + STRIP.top + 20, "queries, by difference →", "end", "title")));
  by("strip-caption").textContent = `${sentence} Click a bar to open its query.`;
  markStrip();
}

function markStrip() {
  const n = ordered.indexOf(current), x = STRIP.left + ((n + 0.5) * (by("strip").clientWidth - STRIP.left)) / Math.max(1, ordered.length);
  by("position")?.setAttribute("d", n < 0 ? "" : `M ${x} ${STRIP.top - 2} l -5 -9 h 10 z M ${x} ${STRIP.top} V ${STRIP.top + STRIP.height}`);
}

function clickStrip(event) {
  const x = event.clientX - by("strip").getBoundingClientRect().left - STRIP.left;
  const n = Math.floor((x * ordered.length) / (by("strip").clientWidth - STRIP.left));
  if (n >= 0 && n < ordered.length) openQuery(ordered[n]);
}
