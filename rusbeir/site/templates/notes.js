// Notes about queries: they are saved in this browser, and exported as a file of JSON lines.
const store = `rusbeir notes ${data.fingerprint}`;
const notes = Object.create(null);
try { Object.assign(notes, JSON.parse(localStorage.getItem(store))); } catch (error) { /* unreadable: start again */ }

function startNotes() {
  by("note").addEventListener("input", () => {
    const { id } = data.queries[current], text = by("note").value;
    if (text.trim()) notes[id] = text; else delete notes[id];
    try { localStorage.setItem(store, JSON.stringify(notes)); by("note-state").textContent = ""; }
    catch (error) { by("note-state").textContent = "This browser cannot save your notes. Export them before you close the page."; }
    countNotes();
  });
  by("export").addEventListener("click", () => saveFile("notes.jsonl", new Blob(data.queries.filter((query) => query.id in notes).map(describeNote), { type: "application/jsonl" })));
  by("strip").addEventListener("click", clickStrip);
  countNotes();
}

function describeNote(query) {
  const scores = Object.fromEntries(systems().map((system) => [data.systems[system], query.scores[system]]));
  return `${JSON.stringify({ dataset: data.dataset, fingerprint: data.fingerprint, query_id: query.id, query: query.text, scores, note: notes[query.id] })}\n`;
}

function countNotes() {
  const n = data.queries.filter((query) => query.id in notes).length;
  by("export").textContent = `Export notes (${n})`;
  by("export").disabled = n === 0;
}

function showNote(index) {
  by("notes").hidden = false;
  by("note").value = notes[data.queries[index].id] ?? "";
}

if (data.queries) start();
