// Tables that are searched, sorted and copied. What a reader chose is in the address, so that a link shows the same.
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
let state = new URLSearchParams(location.hash.slice(1));

function remember(changes) {
  for (const [key, value] of Object.entries(changes)) state.set(key, value);
  for (const [key, value] of [...state]) if (value === "") state.delete(key);
  const hash = state.toString();
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  } catch (error) { /* A browser refuses too many changes a second: the next one writes all. */ }
}

const plain = (element) => element.textContent.trim().replace(/\s+/g, " ");
const isDrawing = (head) => head.classList.contains("plot");

function prepareTable(table) {
  const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
  const labels = heads.map((head) => plain(head.firstElementChild && !isDrawing(head) ? head.firstElementChild : head.firstChild ?? head));
  const key = (name) => `${table.id}.${name}`;
  const find = make("input", { type: "search" }), message = make("span", { class: "quiet", role: "status" });
  const boxes = labels.map((label) => Object.assign(make("input", { type: "checkbox" }), { value: label }));
  const columns = make("details", {}, make("summary", {}, "Columns"),
    make("div", {}, ...boxes.slice(1).map((box) => make("label", {}, box, " ", box.value))));
  const value = (row, column) => row.cells[column].dataset.value ?? plain(row.cells[column]);

  function sort(wanted) {
    const column = labels.indexOf(wanted.replace(/^-/, ""));
    heads.forEach((head, n) => (n === column ? head.setAttribute("aria-sort", wanted[0] === "-" ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    const compare = (a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      // An unknown value is last, however the others are sorted.
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return wanted[0] === "-" ? -order : order;
    };
    table.tBodies[0].append(...(column < 0 ? rows : [...rows].sort(compare)));
  }

  function apply() {
    const words = (state.get(key("find")) ?? "").toLowerCase(), hidden = (state.get(key("hide")) ?? "").split("|");
    if (find.value.toLowerCase() !== words) find.value = words;
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    message.textContent = rows.every((row) => row.hidden) ? "Nothing matches." : "";
    labels.forEach((label, column) => {
      boxes[column].checked = !hidden.includes(label);
      for (const row of [table.tHead.rows[0], ...rows]) row.cells[column].hidden = !boxes[column].checked;
    });
    sort(state.get(key("sort")) ?? "");
  }

  const change = (name, text) => { remember({ [key(name)]: text }); apply(); };
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () =>
    change("sort", head.getAttribute("aria-sort") === "descending" ? labels[column] : `-${labels[column]}`)));
  find.addEventListener("input", () => change("find", find.value));
  columns.addEventListener("change", () => change("hide", boxes.filter((box) => !box.checked).map((box) => box.value).join("|")));
  window.addEventListener("hashchange", apply);

  // [text, whether it is of the best] of each cell that is shown, the head first.
  const read = () => {
    const shown = heads.map((_, n) => n).filter((n) => !heads[n].hidden && !isDrawing(heads[n]));
    const cells = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) =>
      shown.map((n) => [plain(row.cells[n]), row.cells[n].classList.contains("lead")]));
    return [shown.map((n) => heads[n].classList.contains("n")), shown.map((n) => labels[n]), cells];
  };
  const copies = Object.keys(FORMATS).map((format) => {
    const button = make("button", { type: "button" }, format);
    button.addEventListener("click", async () => {
      message.textContent = (await copyText(FORMATS[format](...read()))) ? `Copied as ${format}.` : "This browser does not let a page copy.";
    });
    return button;
  });
  const tools = make("div", { class: "tools" }, make("label", {}, "Find ", find), columns, make("span", {}, "Copy as ", ...copies));
  if (table.matches(".chart, .heat")) tools.append(saveButtons(table, table.id));
  tools.append(message);
  if (table.closest(".panels")) {
    // Next to its sentence is the chart; what can be done with it is folded, unless something was chosen.
    const chosen = [...state.keys()].some((name) => name.startsWith(key("")));
    table.parentElement.after(make("details", chosen ? { open: "" } : {}, make("summary", { class: "quiet" }, "Find, choose columns, copy, save"), tools));
  } else table.parentElement.before(tools);
  apply();
}

const LATEX = { "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", $: "\\$", "#": "\\#", _: "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}", "×": "$\\times$", "−": "$-$", "–": "--", "▲": "$\\uparrow$", "▼": "$\\downarrow$", ">": "$>$", "<": "$<$" };
const latex = (text) => text.replace(/[\\&%$#_{}~^×−–▲▼<>]/g, (char) => LATEX[char]);
const pipe = (text) => text.replace(/[\\|]/g, "\\$&");
// A spreadsheet would compute a text that begins like a formula.
const quote = (text) => `"${(/^[=+\-@]/.test(text) && isNaN(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
const FORMATS = {
  CSV: (numeric, head, rows) => [head, ...rows.map((row) => row.map(([text]) => text))].map((row) => `${row.map(quote).join(",")}\n`).join(""),
  Markdown: (numeric, head, rows) => [head.map(pipe), numeric.map((right) => (right ? "---:" : "---")),
    ...rows.map((row) => row.map(([text, lead]) => (lead ? `**${pipe(text)}**` : pipe(text))))].map((row) => `| ${row.join(" | ")} |\n`).join(""),
  LaTeX: (numeric, head, rows) => [`\\begin{tabular}{${numeric.map((right) => (right ? "r" : "l")).join("")}}`, "\\toprule", `${head.map(latex).join(" & ")} \\\\`, "\\midrule",
    ...rows.map((row) => `${row.map(([text, lead]) => (lead ? `\\textbf{${latex(text)}}` : latex(text))).join(" & ")} \\\\`), "\\bottomrule", "\\end{tabular}", ""].join("\n"),
};

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    const area = Object.assign(make("textarea"), { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// A link within the page has a hash without a value: it changes nothing that was chosen.
window.addEventListener("hashchange", () => { if (location.hash.includes("=")) state = new URLSearchParams(location.hash.slice(1)); });
document.querySelectorAll("table.sortable").forEach(prepareTable);
