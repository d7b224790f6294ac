// The editor of a template: its preview follows what is typed, and variables and faults are coloured behind the fields. These stay
// plain textareas: the colours are drawn under them, by a copy of the text that nobody else sees.
"use strict";

(() => {
  const form = document.querySelector("form[data-preview]"), shown = document.getElementById("preview");

  // What has a colour in each format: a group of its pattern for each name.
  const names = ["variable", "statement", "comment"];
  const patterns = {
    jinja2: /(\{\{(?:(?!\{[{%#])[^])*?\}\})|(\{%-?\s*raw\s*-?%\}[^]*?\{%-?\s*endraw\s*-?%\}|\{%(?:(?!\{[{%#])[^])*?%\}|@@@[^@\n]+(?:@[^@\n]+)?@@@)|(\{#[^]*?#\})/g,
    "f-string": /\{\{|\}\}|(\{(?:[^{}]|\{[^{}]*\})*\})|(@@@[^@\n]+(?:@[^@\n]+)?@@@)/g,
    none: /(?!)/g,
  };

  // tokens are the coloured pieces of a text, in order.
  function* tokens(field) {
    if (field.dataset.ink !== "text") return;
    const format = field.closest("fieldset").querySelector("[name=format]").value || "f-string";
    for (const found of field.value.matchAll(patterns[format])) {
      const group = found.slice(1).findIndex(Boolean);
      if (group >= 0) yield { from: found.index, to: found.index + found[0].length, name: names[group] };
    }
  }

  // wrong are the lines with faults, in order.
  function* wrong(field) {
    if (field.dataset.ink === "plain") return; // they are in the texts of its blocks
    const lines = new Set(faults(field).map((fault) => Number(fault.dataset.line)));
    let from = 0, number = 1;
    for (const line of lines.size ? field.value.split("\n") : []) {
      if (lines.has(number++)) yield { from, to: from + line.length };
      from += line.length + 1;
    }
  }

  const faults = (field) => [...shown.querySelectorAll(`[data-field="${field.id}"]`)];

  // paint draws what is behind a field: the text in pieces, each of at most one token and one line.
  function paint(field) {
    const text = field.value, coloured = [...tokens(field)], lines = [...wrong(field)];
    const cuts = new Set([0, text.length, ...[...coloured, ...lines].flatMap(({ from, to }) => [from, to])]);
    const ends = [...cuts].sort((a, b) => a - b), pieces = [];
    let token = 0, line = 0;
    for (let i = 0; i + 1 < ends.length; i++) {
      const [from, to] = [ends[i], ends[i + 1]];
      while (coloured[token]?.to <= from) token++;
      while (lines[line]?.to <= from) line++;
      const name = [coloured[token]?.from <= from ? coloured[token].name : "", lines[line]?.from <= from ? "wrong" : ""].join(" ").trim();
      if (!name) { pieces.push(text.slice(from, to)); continue; }
      const mark = document.createElement("mark");
      mark.className = name;
      mark.textContent = text.slice(from, to);
      pieces.push(mark);
    }
    const behind = field.previousElementSibling;
    behind.replaceChildren(...pieces, "\n ");
    behind.scrollTop = field.scrollTop;
  }

  const fields = [...form.querySelectorAll("[data-ink]")];
  for (const field of fields) {
    const behind = document.createElement("pre");
    behind.setAttribute("aria-hidden", "true");
    behind.dir = field.dir;
    field.before(behind);
    let waits = false;
    const soon = () => { waits ||= requestAnimationFrame(() => { waits = false; paint(field); }); };
    field.addEventListener("input", soon);
    field.addEventListener("scroll", () => { behind.scrollTop = field.scrollTop; });
    field.closest("fieldset").addEventListener("change", soon);
    paint(field);
  }
  form.addEventListener("change", (event) => {
    if (event.target.name === "role") event.target.closest(".turn").className = `turn is-${event.target.value} part`;
  });

  // mark shows below each field what the preview says of it.
  function mark() {
    for (const field of fields) {
      const found = faults(field);
      field.toggleAttribute("aria-invalid", false);
      if (found.length > 0) field.setAttribute("aria-invalid", "true");
      document.getElementById(`findings-${field.id}`).replaceChildren(...found.map((fault) => fault.cloneNode(true)));
      paint(field);
    }
  }

  let waiting, asked = 0;
  async function ask() {
    const mine = ++asked;
    const answer = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
    const text = answer?.ok ? await answer.text() : "";
    if (mine !== asked || !text) return;
    const open = shown.querySelector("details.changes")?.open;
    shown.innerHTML = text; // made by the server, which escapes what was typed
    if (open) shown.querySelector("details.changes")?.setAttribute("open", "");
    mark();
  }
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 300);
  });
})();
