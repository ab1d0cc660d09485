// Charts and tables as files: what is seen is written out as SVG, which a browser then draws as PNG.
const SVG = "http://www.w3.org/2000/svg";
const shape = (name, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor"];

// A copy of a drawing that needs no stylesheet.
function copyDrawing(drawing, box, frame) {
  const copy = drawing.cloneNode(true), originals = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, n) => {
    const style = getComputedStyle(originals[n]);
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
  });
  for (const [key, value] of Object.entries({ x: box.x - frame.x, y: box.y - frame.y, width: box.width, height: box.height, overflow: "visible" })) copy.setAttribute(key, value);
  return copy;
}

// Each word of a text where it is on the page.
function copyWords(node, frame) {
  const style = getComputedStyle(node.parentElement), range = document.createRange();
  return [...node.data.matchAll(/\S+/g)].map((word) => {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const box = range.getBoundingClientRect();
    return shape("text", { x: box.x - frame.x, y: box.y - frame.y + 0.78 * box.height, fill: style.color, "font-size": style.fontSize, "font-weight": style.fontWeight }, word[0]);
  });
}

function toSvg(target) {
  const frame = target.getBoundingClientRect(), ground = getComputedStyle(document.body).backgroundColor;
  const [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
  const root = shape("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif" }, shape("rect", { width, height, fill: ground }));
  // What is inside a drawing is copied with it.
  const judge = (node) => (node.parentElement.closest("svg") || node.hidden || node.classList?.contains("tools") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  const walker = document.createTreeWalker(target, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, judge);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) { root.append(...copyWords(node, frame)); continue; }
    const box = node.getBoundingClientRect();
    if (node.tagName === "svg") root.append(copyDrawing(node, box, frame));
    else if (node.matches("td, th") && !/, 0\)|transparent/.test(getComputedStyle(node).backgroundColor))
      root.append(shape("rect", { x: box.x - frame.x, y: box.y - frame.y, width: box.width, height: box.height, fill: getComputedStyle(node).backgroundColor }));
  }
  return [root, width, height];
}

function saveFile(name, content) {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function saveDrawing(target, name, format) {
  const [root, width, height] = toSvg(target), text = new XMLSerializer().serializeToString(root);
  if (format === "svg") { saveFile(`${name}.svg`, new Blob([text], { type: "image/svg+xml" })); return; }
  const image = new Image(), canvas = Object.assign(make("canvas"), { width: 2 * width, height: 2 * height });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => saveFile(`${name}.png`, blob), "image/png");
}

function saveButtons(target, name) {
  const buttons = ["SVG", "PNG"].map((format) => {
    const button = make("button", { type: "button" }, format);
    button.addEventListener("click", () => saveDrawing(target, name, format.toLowerCase()));
    return button;
  });
  return make("span", {}, "Save as ", ...buttons);
}

for (const target of document.querySelectorAll("figure, table.heat:not(.sortable), table.saved")) {
  const name = (target.dataset.name ?? target.id) || "chart";
  if (target.matches("table")) target.parentElement.before(make("div", { class: "tools" }, saveButtons(target, name)));
  else if (target.querySelector("svg")) target.append(make("div", { class: "tools" }, saveButtons(target, name)));
}
