// Sorting and filtering of leaderboards.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th button").forEach((button) => {
    const header = button.closest("th");
    button.addEventListener("click", () => {
      const down = header.getAttribute("aria-sort") !== "descending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      const column = header.cellIndex;
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const order = isNaN(x) || isNaN(y) || x === "" || y === "" ? String(x).localeCompare(String(y)) : x - y;
        return down ? -order : order;
      });
      body.append(...rows);
    });
  });
}
for (const input of document.querySelectorAll("input.filter")) {
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase();
    const rows = [...document.getElementById(input.dataset.table).tBodies[0].rows];
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    document.getElementById(`${input.dataset.table}-empty`).textContent = rows.every((row) => row.hidden) ? "No system matches." : "";
  });
}
