// Charts work without this: each bar is a link, and a table has the numbers. It shows the values of a time under the mouse or by the
// arrow keys, in all charts of a page at once, zooms to a time that is dragged over, and isolates a series of a legend.
"use strict";

// A chart's times are the rows of its table, each with its left and right edge in thousandths. The lines of tiles have theirs together.
const edges = (row) => row.dataset.x.split(" ").map(Number);
const rowsOf = (figure) => [...figure.querySelectorAll("tbody tr")];
const rowAt = (all, at) => all.find((row) => edges(row)[0] <= at && at < edges(row)[1]);
const legendOf = (figure) => [...figure.querySelectorAll(".legend > span")];
const onlyOf = (figure) => legendOf(figure).findIndex((name) => name.ariaCurrent);

// crossed draws a line at a place, or a box up to another one.
function crossed(svg, from, to) {
  const cross = svg.querySelector(".cross") ?? svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
  cross.setAttribute("class", "cross");
  cross.setAttribute("d", from === null ? "" : `M${from} 0v1000h${to - from}v-1000z`);
}

// readout is what a chart shows at a time: the values by name, in the order in which they are drawn from the top.
function readout(figure, row) {
  const box = document.createElement("div"), names = legendOf(figure), only = onlyOf(figure);
  box.className = "readout";
  box.append(row.cells[0].textContent);
  [...row.cells].slice(1).map((cell, i) => [cell.textContent, i]).reverse().forEach(([value, i]) => {
    if (only >= 0 ? i !== only : value === "–" || /^[$0.]+$/.test(value) && names.length > 3) return;
    const line = document.createElement("p"), number = document.createElement("b");
    number.textContent = value;
    line.append(...names[i] ? [...names[i].cloneNode(true).childNodes] : [], " ", number);
    box.append(line);
  });
  for (const mark of figure.querySelectorAll(".marks [data-x]")) {
    const at = edges(mark)[0], line = document.createElement("p");
    if (at < edges(row)[0] || at >= edges(row)[1]) continue;
    line.textContent = mark.textContent;
    box.append(line);
  }
  return box;
}

// show points at a place in all charts, in thousandths, and marks what is between it and another one. With null nothing is pointed at.
function show(at, from = at) {
  for (const plot of document.querySelectorAll(".plot")) {
    const figure = plot.closest("figure"), svg = plot.querySelector(".chart"), cursor = plot.querySelector(".cursor");
    const row = at === null ? null : rowAt(rowsOf(figure), at);
    crossed(svg, at === null ? null : Math.min(at, from), Math.max(at, from));
    plot.querySelector(".readout")?.remove();
    if (!row) continue;
    const box = readout(figure, row), area = svg.getBoundingClientRect();
    plot.append(box);
    box.classList.toggle("left", at > 500);
    box.style.left = `${area.left - plot.getBoundingClientRect().left + at * area.width / 1000}px`;
    cursor.ariaValueNow = rowsOf(figure).indexOf(row) + 1;
    cursor.ariaValueText = [...box.childNodes].map((part) => part.textContent.trim()).join(", ");
  }
  const times = document.querySelector(".values");
  const row = at === null || !times ? null : rowAt(rowsOf(times), at);
  document.querySelectorAll(".metrics > div").forEach((tile, i) => {
    const figure = tile.querySelector("dd");
    figure.dataset.all ??= figure.textContent;
    figure.textContent = row ? row.cells[i + 1].textContent : figure.dataset.all;
    tile.classList.toggle("then", Boolean(row));
    crossed(tile.querySelector(".spark"), at, at);
  });
}

// zoom opens the page at a time that is between two places.
function zoom(figure, one, other) {
  const [from, to] = [Math.min(one, other), Math.max(one, other)];
  const inside = rowsOf(figure).filter((row) => edges(row)[0] < to && from < edges(row)[1]);
  if (!figure.dataset.zoom || inside.length === 0) return;
  location.assign(between(figure.dataset.zoom, inside[0], inside.at(-1)));
}

const between = (address, first, last) => address.replace("{from}", encodeURIComponent(first.dataset.ends.split(" ")[0]))
  .replace("{to}", encodeURIComponent(last.dataset.ends.split(" ")[1]));

// isolate shows one series of a chart, or all if it is the only one. A part of a bar then stands at the bottom.
function isolate(figure, i) {
  const one = i === onlyOf(figure) ? -1 : i;
  legendOf(figure).forEach((name, j) => {
    name.ariaCurrent = j === one ? "true" : null;
    name.classList.toggle("off", one >= 0 && j !== one);
  });
  for (const kind of [".bar", ".line", ".dots"]) {
    figure.querySelectorAll(`.chart > ${kind}`).forEach((path, j) => {
      path.classList.toggle("off", one >= 0 && j !== one);
      path.dataset.d ??= path.getAttribute("d");
      const lowered = path.dataset.d.replace(/M(\S+) \S+?h(\S+?)v(\S+?)h/g, (_, x, w, h) => `M${x} ${1000 - h}h${w}v${h}h`);
      path.setAttribute("d", j === one && kind === ".bar" ? lowered : path.dataset.d);
    });
  }
}

// open leads to the calls of a row, or of the series that is alone.
function open(figure, row) {
  const list = legendOf(figure)[onlyOf(figure)]?.dataset.list;
  const to = list && row.dataset.ends ? between(list, row, row) : row.querySelector("a")?.href;
  if (to) location.assign(to);
}

// placeOf is where the mouse points at in a chart or in the line of a tile; null elsewhere.
function placeOf(event) {
  const svg = event.target.closest?.(".plot, .metrics > div")?.querySelector(".chart, .spark");
  const area = svg?.getBoundingClientRect();
  return area ? Math.min(Math.max((event.clientX - area.left) / area.width, 0), 0.9999) * 1000 : null;
}

let pointed = false, drag = null;
document.addEventListener("pointermove", (event) => {
  const at = drag ? placeOf({ target: drag.plot, clientX: event.clientX }) : placeOf(event);
  if (drag && Math.abs(event.clientX - drag.x) > 4) drag.moved = true;
  if (at !== null) show(at, drag?.moved ? drag.from : at);
  else if (pointed) show(null);
  pointed = at !== null;
  // The readout takes the place of the browser's own words.
  event.target.closest?.(".plot")?.querySelectorAll(".chart :is(a, g) > title").forEach((title) => title.remove());
});
document.addEventListener("pointerdown", (event) => {
  const plot = event.target.closest(".plot");
  drag = plot && event.button === 0 ? { plot, x: event.clientX, from: placeOf(event) } : null;
});
document.addEventListener("pointerup", (event) => {
  if (drag?.moved) zoom(drag.plot.closest("figure"), drag.from, placeOf({ target: drag.plot, clientX: event.clientX }));
});
document.addEventListener("pointercancel", () => { drag = null; show(null); });
document.addEventListener("dragstart", (event) => { if (event.target.closest?.(".plot")) event.preventDefault(); });
document.addEventListener("click", (event) => {
  const moved = drag?.moved, figure = event.target.closest("figure"), at = placeOf(event);
  drag = null;
  const name = event.target.closest(".legend > span");
  if (name && figure) isolate(figure, legendOf(figure).indexOf(name));
  if (!figure || at === null) return;
  const row = rowAt(rowsOf(figure), at);
  if (moved) event.preventDefault();
  else if (row && onlyOf(figure) >= 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    open(figure, row);
  }
}, true);

// A chart is one stop of the Tab key. From there its times and series are gone through, its calls opened, and its table unfolded.
const tidy = () => document.querySelectorAll("figure:has(.cursor) summary").forEach((summary) => { summary.tabIndex = -1; });
tidy();
const grown = document.getElementById("counted");
if (grown) new MutationObserver(tidy).observe(grown, { childList: true });
document.addEventListener("focusout", (event) => { if (event.target.matches(".cursor")) show(null); });
document.addEventListener("keydown", (event) => {
  const cursor = event.target.closest?.(".cursor"), figure = cursor?.closest("figure");
  if (!figure || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = rowsOf(figure), names = legendOf(figure).length, only = onlyOf(figure);
  const middle = (i) => (edges(all[i])[0] + edges(all[i])[1]) / 2;
  const was = Math.min(+cursor.ariaValueNow, all.length) - 1, from = +(cursor.dataset.from ?? was);
  const go = (i) => {
    const to = Math.min(Math.max(i, 0), all.length - 1);
    if (event.shiftKey) cursor.dataset.from = from;
    else delete cursor.dataset.from;
    show(middle(to), event.shiftKey ? middle(from) : middle(to));
  };
  const series = (by) => () => {
    const next = (only + by + names + 2) % (names + 1) - 1;
    isolate(figure, next < 0 ? only : next);
    go(was);
  };
  const act = {
    ArrowLeft: () => go(was - 1),
    ArrowRight: () => go(was + 1),
    Home: () => go(0),
    End: () => go(all.length - 1),
    ArrowUp: series(1),
    ArrowDown: series(-1),
    Enter: () => (from === was ? open(figure, all[was]) : zoom(figure, middle(from), middle(was))),
    " ": () => { const table = figure.querySelector("details"); table.open = !table.open; },
    Escape: () => show(null),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
});
