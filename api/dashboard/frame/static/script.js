// Every page works without this. It tells the server the reader's zone, copies, asks before what cannot be undone, folds the menu
// on small screens, offers values, and gives the keyboard something to do.
"use strict";

for (const menu of document.querySelectorAll("details.menu")) {
  const small = matchMedia("(max-width: 52rem)");
  const fold = () => { menu.open = !small.matches; };
  small.addEventListener("change", fold);
  fold();
}

// copied puts a text, which may still be on its way, on the clipboard. Without TLS there is no
// clipboard but that of a selection.
async function copied(text) {
  try {
    const blob = text.then((value) => new Blob([value], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = await text.catch(() => "");
    document.body.append(field);
    field.select();
    const done = field.value !== "" && document.execCommand("copy");
    field.remove();
    return done;
  }
}

// say tells something to people who listen to the page.
function say(text) {
  const said = document.getElementById("said");
  if (said) said.textContent = text;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button || "said" in button.dataset) return;
  const from = button.dataset.copyFrom;
  const text = from ? fetch(from).then((answer) => answer.ok ? answer.text() : Promise.reject())
    : Promise.resolve(document.getElementById(button.dataset.copy).textContent);
  // In a menu that is folded, its word says so.
  const shown = button.closest("details:not([open])")?.querySelector("summary") ?? button;
  const was = [...shown.childNodes], at = document.activeElement;
  button.dataset.said = "";
  const done = await copied(text);
  at.focus();
  shown.textContent = done ? "Copied" : "Not copied";
  say(shown.textContent);
  setTimeout(() => { shown.replaceChildren(...was); delete button.dataset.said; }, 1500);
});

// A folded text is loaded as a whole, and can be folded again.
const heads = new WeakMap();
async function unfold(link) {
  const whole = link.closest(".passage");
  const head = heads.get(whole);
  if (head) {
    heads.delete(whole);
    whole.replaceChildren(...head);
    whole.scrollIntoView({ block: "nearest" });
    whole.querySelector("[data-whole]").focus();
    return;
  }
  const answer = await fetch(link.dataset.whole).catch(() => null);
  if (!answer?.ok) return location.assign(link.href);
  const text = await answer.text();
  const shown = document.createElement("div");
  if (answer.headers.get("Content-Type").startsWith("text/html")) shown.innerHTML = text; // escaped by the server
  else shown.append(...pieces(text));
  heads.set(whole, [...whole.childNodes]);
  const again = link.cloneNode(true);
  again.textContent = "Fold";
  const foot = document.createElement("p");
  foot.className = "fold";
  foot.append(again);
  whole.replaceChildren(...shown.childNodes, foot);
}

// pieces are the parts of a very long text: the browser lays out only those in sight.
function* pieces(text) {
  for (let from = 0; from < text.length;) {
    let to = from + 20000;
    const line = text.lastIndexOf("\n", to), blank = text.lastIndexOf(" ", to);
    if (to < text.length) to = line > from ? line + 1 : blank > from ? blank + 1 : to;
    const piece = document.createElement("div");
    piece.className = "text piece";
    piece.textContent = text.slice(from, to).replace(/\n$/, "");
    yield piece;
    from = to;
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-whole]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  unfold(link);
});

// What was searched for is gone through place by place. What is folded is opened where it is there.
const matches = document.getElementById("matches");
if (matches) matches.hidden = !document.querySelector("main :is(mark.hit, [data-hits])");
let match;
async function goToMatch(by) {
  if (!matches || matches.hidden) return;
  for (const link of document.querySelectorAll(".fold > [data-hits]")) {
    if (!heads.has(link.closest(".passage"))) await unfold(link);
  }
  const all = [...document.querySelectorAll("main mark.hit:not(.rest)")], n = all.length, was = all.indexOf(match);
  const at = was < 0 && by < 0 ? n - 1 : (was + by + n) % n;
  if (n === 0) return;
  match?.classList.remove("current");
  match = all[at];
  match.classList.add("current");
  for (let box = match.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  match.scrollIntoView({ block: "center", behavior: "instant" });
  matches.querySelector("output").textContent = `${at + 1} of ${n}`;
}

// A long record opens at what was searched for, or else at its response, and a review always at the response. Where the page was before,
// the browser finds by itself.
const answer = () => document.querySelector(".split .talk > .out");
function toAnswer() {
  const box = answer()?.getBoundingClientRect(), judge = document.querySelector(".judge")?.getBoundingClientRect();
  const end = judge?.left < box?.right ? judge.top : innerHeight; // on a phone, the scores stand over the page
  const isFar = judge ? box?.top > end / 2 && box.bottom > end : box?.top > innerHeight * 1.5;
  if (isFar) answer().scrollIntoView({ behavior: "instant" });
}
if (!location.hash && performance.getEntriesByType("navigation")[0]?.type === "navigate") {
  if (matches && !matches.hidden) goToMatch(1);
  else toAnswer();
}

matches?.addEventListener("click", (event) => {
  const by = event.target.closest("[data-match]")?.dataset.match;
  if (by) goToMatch(+by);
});

// A form that stays sends itself, and only its parts of the page are shown anew: the next value can be typed at once.
document.addEventListener("submit", async (event) => {
  const form = event.target, id = form.dataset.stays, by = event.submitter;
  if (!id) return;
  event.preventDefault();
  const sent = new URLSearchParams(new FormData(form, by));
  const name = sent.get("name"), known = (await names)?.offers.map(scoreName) ?? [];
  if (name && known.length > 0 && !known.includes(name) &&
    !confirm(`No score has the name ${name} yet. Existing: ${known.slice(0, 8).join(", ")}. Create it?`)) return;
  form.inert = true;
  const answer = await fetch(form.action, { method: "POST", body: sent }).catch(() => null);
  const page = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page && id.split(" ").map((part) => [document.getElementById(part), page.getElementById(part)]);
  if (!fresh?.every(([, part]) => part)) { // signed out or refused: the page says so
    form.inert = false;
    delete form.dataset.stays;
    return form.requestSubmit(by);
  }
  for (const [part, now] of fresh) part.replaceWith(now);
  keepName(name);
  if (!known.includes(name)) names = undefined; // one more
  say((page.querySelector("div.notice") ?? document.getElementById("progress"))?.textContent ?? "");
  if (id === "review") {
    scrollTo({ top: 0, behavior: "instant" });
    toAnswer();
  }
  const field = document.querySelector("[name=score], [autofocus]");
  field?.focus({ preventScroll: id === "review" });
  field?.toggleAttribute("data-set", true);
  field?.addEventListener("blur", () => field.removeAttribute("data-set"), { once: true });
});

// A call that is reviewed is kept from others as long as its page is in sight.
setInterval(() => {
  const call = document.querySelector("[data-renew]");
  if (call && !document.hidden) fetch(call.dataset.renew).catch(() => null);
}, 60000);

let names; // that scores have, once they are asked for
const scoreName = ({ text }) => text.replace(/^"(.*)"$/, "$1");

// The name of a score is that of the one before, in this tab, and is chosen from those that there are.
function keepName(name) {
  const field = document.querySelector("[data-names]");
  if (!field) return;
  try {
    if (name != null) sessionStorage.setItem("score", name);
    field.value = sessionStorage.getItem("score") ?? "";
  } catch { /* without storage it is typed each time */ }
}
keepName(null);
document.addEventListener("focusin", async (event) => {
  const field = event.target.closest("[data-stays]")?.querySelector("[data-names]");
  if (!field || field.list.children.length > 0) return;
  names ??= fetch(field.dataset.names).then((answer) => answer.json()).catch(() => ({ offers: [] }));
  field.list.replaceChildren(...(await names).offers.map((offer) => {
    const option = document.createElement("option");
    option.value = scoreName(offer);
    return option;
  }));
});

// A choice in a form that applies at once needs no button, which the style sheet hides. What was open over the page is open again on
// the next one, where the next choice can be made.
document.documentElement.classList.add("scripted");
document.addEventListener("change", (event) => {
  const field = event.target, form = field.form;
  if (!form?.matches("[data-apply]")) return;
  // A day is sent by Enter, or when the form is left: the other end of the time may follow.
  if (field.matches("[pattern]")) setTimeout(() => form.contains(document.activeElement) || form.requestSubmit());
  if (!field.matches("select, [type=checkbox]")) return;
  try {
    if (form.matches(".pop")) sessionStorage.setItem("open", field.value);
  } catch { /* without storage it is opened again by hand */ }
  form.requestSubmit();
});
try {
  const field = document.querySelector(`.pop[data-apply] [value="${CSS.escape(sessionStorage.getItem("open") ?? "")}"]`);
  sessionStorage.removeItem("open");
  if (field) field.closest("details").open = true;
  field?.focus();
} catch { /* without storage */ }

// What is shown once answers a form, which loading the page again must not send again: it would make another key.
if (document.querySelector(".once")) history.replaceState(null, "", document.querySelector("nav [aria-current]").href);

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (!question || confirm(question)) return;
  event.preventDefault();
  event.target.reset();
});

// The server shows times, and reads days of a filter, in this zone.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; SameSite=Lax`;

// option is the item of an offer in a list, and choose marks one of them for the field that they are offered to.
function option({ text, note }, i) {
  const item = document.createElement("li"), told = document.createElement("span");
  told.textContent = note;
  item.append(text, " ", told);
  item.dataset.text = text;
  item.id = `offer-${i}`;
  item.setAttribute("role", "option");
  return item;
}
function choose(field, list, at) {
  [...list.children].forEach((item, i) => item.setAttribute("aria-selected", i === at));
  list.children[at]?.scrollIntoView({ block: "nearest" });
  if (at < 0) field.removeAttribute("aria-activedescendant");
  else field.setAttribute("aria-activedescendant", list.children[at].id);
}

// The palette leads to a page, a view or a template by a part of its name. Anything else that is typed is looked for by the server.
const palette = document.getElementById("palette");
if (palette) {
  const form = palette.querySelector("form"), field = form.elements.q, list = palette.querySelector("ul");
  let others, found = [], at = 0;
  const page = (a) => ({ text: [...a.childNodes].find((node) => node.nodeType === 3)?.data.trim() ?? a.textContent, note: "page", href: a.href });
  const pages = [...document.querySelectorAll('.side nav a:not([href*="named="]), .side .pop a, #palette a')].map(page);
  const mark = (next) => { at = next; choose(field, list, at); };
  const show = () => {
    const typed = field.value.trim().toLowerCase();
    const rank = ({ text, note }) => {
      const name = text.toLowerCase();
      if (name.startsWith(typed)) return 0;
      if (name.includes(typed)) return 1;
      return typed.split(/\s+/).every((word) => `${name} ${note}`.includes(word)) ? 2 : 3;
    };
    found = [...pages, ...others ?? []].filter((offer) => rank(offer) < 3).sort((a, b) => rank(a) - rank(b)).slice(0, 50);
    if (typed) found.push({ text: field.value.trim(), note: "find by its name or id" });
    list.replaceChildren(...found.map(option));
    mark(found.length > 0 ? 0 : -1);
  };
  const take = (i) => {
    const href = found[i]?.href;
    if (href) location.assign(href);
    else if (found[i]) form.submit();
  };
  const open = async () => {
    if (palette.open) return;
    palette.showModal();
    field.select();
    show();
    others ??= (await fetch(`${form.action}/offers`).then((answer) => answer.json()).catch(() => null))?.offers
      .map((offer) => ({ ...offer, href: form.action.slice(0, -"/find".length) + offer.href }));
    show();
  };
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && found.length > 0) mark((at + by + found.length) % found.length);
    else if (event.key === "Escape") palette.close(); // the browser would empty the field first
    else return;
    event.preventDefault();
  });
  form.addEventListener("submit", (event) => { // by Enter
    event.preventDefault();
    take(at);
  });
  list.addEventListener("click", (event) => take([...list.children].indexOf(event.target.closest("li"))));
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    open();
  });
  document.querySelector("a.palette").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
}

// A filter is completed while it is typed: fields, keys and values, with the numbers of their requests.
for (const field of document.querySelectorAll("[data-suggest]")) {
  const list = document.getElementById("offers");
  let waiting, asked = 0, kept = "", at = -1, added = -1;
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", false);
  const mark = (next) => {
    at = next;
    choose(field, list, at);
  };
  const show = (offers, first = -1) => {
    list.replaceChildren(...offers.map(option));
    list.hidden = offers.length === 0;
    field.setAttribute("aria-expanded", !list.hidden);
    mark(list.hidden ? -1 : first);
  };
  const close = () => { asked++; clearTimeout(waiting); show([]); };
  const ask = async () => {
    const mine = ++asked;
    const query = new URLSearchParams({ line: field.value.slice(0, field.selectionStart) });
    const answer = await fetch(field.dataset.suggest + query).catch(() => null);
    const found = answer?.ok ? await answer.json() : { kept: "", offers: [] };
    if (mine !== asked || document.activeElement !== field) return;
    kept = found.kept;
    show(found.offers, found.half ? 0 : -1);
  };
  const take = (text) => {
    const rest = field.value.slice(field.selectionStart);
    const open = text.endsWith(":") || text.endsWith(".");
    const head = kept + text + (open || /^[\s)]/.test(rest) ? "" : " ");
    field.value = head + rest;
    field.setSelectionRange(head.length, head.length);
    added = head.endsWith(" ") ? head.length : -1;
    close();
    field.focus();
    if (open) ask();
  };
  field.addEventListener("input", (event) => {
    // The blank behind what was taken is ours: what belongs to the value takes its place.
    const caret = field.selectionStart;
    if (added > 0 && caret === added + 1 && /^[@><.,]$/.test(event.data ?? "")) {
      field.value = field.value.slice(0, added - 1) + field.value.slice(added);
      field.setSelectionRange(caret - 1, caret - 1);
    }
    added = -1;
    if (list.children[at]) mark(-1); // it is of what was there before
    clearTimeout(waiting);
    waiting = setTimeout(ask, 150);
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const n = list.children.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && n === 0) ask();
    else if (step) mark((at + step + (at < 0 && step < 0 ? 1 : 0) + n) % n);
    else if (event.key === "Escape") n > 0 ? close() : field.blur(); // the browser would empty the field
    else if (event.key === "Tab" && n > 0 && !event.shiftKey) take(list.children[Math.max(at, 0)].dataset.text);
    else return;
    event.preventDefault();
  });
  field.form.addEventListener("submit", (event) => { // by Enter
    if (at < 0) return;
    event.preventDefault();
    take(list.children[at].dataset.text);
  });
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const item = event.target.closest("li");
    if (item) take(item.dataset.text);
  });
  document.addEventListener("click", (event) => {
    const term = event.target.closest("[data-edit]")?.dataset.edit;
    if (term === undefined) return;
    event.preventDefault();
    const from = field.value.indexOf(term);
    field.focus();
    if (from >= 0) field.setSelectionRange(from, from + term.length);
  });
}

// again loads this page, or another one, as it is now; null if it cannot. If another project was opened in another tab, or nobody is signed in any
// more, it shows that.
async function again(from = location.href) {
  const answer = await fetch(from).catch(() => null);
  const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  if (!page || page.body.dataset.project === document.body.dataset.project) return page;
  location.reload();
  return null;
}

// A live list is loaded again every few seconds, with its count and its pager, unless somebody is using it.
for (const box of document.querySelectorAll("[data-live]")) {
  let timer;
  const follow = async () => {
    const parts = [...document.querySelectorAll(box.dataset.live)];
    if (!document.hidden && !parts.some((part) => part.contains(document.activeElement))) {
      const page = await again();
      const fresh = page && parts.map((part) => page.getElementById(part.id));
      if (page && !fresh.every(Boolean)) return location.reload(); // nothing is left to list
      if (page && box.checked) {
        parts.forEach((part, i) => part.replaceChildren(...fresh[i].childNodes));
      }
    }
    if (box.checked) timer = setTimeout(follow, 3000);
  };
  box.addEventListener("change", () => { clearTimeout(timer); if (box.checked) follow(); });
}

// Numbers that count a part of the calls are completed in place. Nothing moves while somebody uses a link or a field among them.
const counted = document.getElementById("counted");
const complete = async () => {
  const page = await again(counted.dataset.all);
  const fresh = page?.getElementById("counted");
  const show = () => {
    if (counted.contains(document.activeElement)) setTimeout(show, 1000);
    else counted.replaceChildren(...fresh.childNodes);
  };
  if (fresh) show();
};
if (counted?.dataset.all) complete();

// The page that is read is in sight in the list of all pages.
const contents = document.querySelector(".contents"), here = contents?.querySelector("[aria-current]");
if (here) contents.scrollTop += here.getBoundingClientRect().top - contents.getBoundingClientRect().top - contents.clientHeight / 4;

// A page with nothing on it shows what comes. A first call is a link there, so that the examples stay.
const waits = document.querySelector("[data-waits]");
const wait = async () => {
  const list = waits.dataset.waits;
  const page = document.hidden ? null : await again(list || undefined);
  const first = list && page?.querySelector("tr[data-href] a");
  if (first) {
    first.textContent = "Open your first call";
    first.className = "button primary";
    waits.querySelector(".waiting").replaceChildren(first);
    waits.querySelector(".waiting").classList.add("come");
  } else if (!list && page && !page.getElementById(waits.id)) location.reload();
  else setTimeout(wait, 2000);
};
if (waits) setTimeout(wait, 2000);

// What opens over the page closes again by Escape, and by a click beside it.
const popped = () => document.querySelectorAll("details[open]:has(> .pop)");
document.addEventListener("click", (event) => popped().forEach((box) => { if (!box.contains(event.target)) box.open = false; }));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const box of popped()) {
    if (box.contains(document.activeElement)) box.querySelector("summary").focus();
    box.open = false;
  }
});

// rows are the table's rows that lead somewhere.
const rows = () => [...document.querySelectorAll("tr[data-href]")];

// Back from a record, a trace or a session, its row has the focus.
try {
  const here = location.pathname, seen = sessionStorage.getItem("seen");
  const back = performance.getEntriesByType("navigation")[0]?.type === "back_forward" ||
    document.referrer && new URL(document.referrer).pathname === seen;
  if (document.querySelector(".talk, #trace")) sessionStorage.setItem("seen", here);
  else if (back) rows().map((row) => row.querySelector("a")).find((link) => link.pathname === seen)?.focus();
} catch { /* without storage the page begins at its top */ }

// help shows the keys that do something on this page.
function help() {
  const dialog = document.getElementById("help");
  for (const part of dialog?.querySelectorAll("[data-if]") ?? []) {
    part.hidden = !document.querySelector(`main :is(${part.dataset.if})`);
    if (part.matches("dt")) part.nextElementSibling.hidden = part.hidden;
  }
  dialog?.showModal();
}

function step(by) {
  const all = rows();
  if (all.length === 0) return;
  let at = all.findIndex((row) => row.contains(document.activeElement));
  if (at < 0) at = all.findIndex((row) => row.ariaSelected === "true");
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  next.querySelector("a").focus();
  next.scrollIntoView({ block: "nearest" });
}

// Spans of a trace are selected, folded and opened in place; the address says how the page is shown.
const traced = document.getElementById("trace");
let picking, picked = 0;

// rove makes the tree one stop of the Tab key.
function rove() {
  traced.querySelectorAll("tr a").forEach((link) => { link.tabIndex = -1; });
  const link = traced.querySelector("[aria-selected=true] a");
  if (link) link.tabIndex = 0;
}

async function pick(link) {
  clearTimeout(picking);
  const mine = ++picked, at = link.matches(".twist") ? rows().indexOf(link.closest("tr")) : -1;
  const fresh = (await again(link.href))?.getElementById("trace");
  if (mine !== picked) return;
  if (!fresh) return location.assign(link.href);
  const focused = traced.contains(document.activeElement), top = traced.querySelector(".tree").scrollTop;
  traced.replaceChildren(...fresh.childNodes);
  traced.querySelector(".tree").scrollTop = top;
  history.replaceState(null, "", link.href);
  rove();
  const row = rows()[at] ?? traced.querySelector("[aria-selected=true]");
  if (focused) row?.querySelector("a").focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest", behavior: "instant" });
}

if (traced) {
  rove();
  const tree = traced.querySelector(".tree"), row = tree.querySelector("[aria-selected=true]");
  if (row) tree.scrollTop = row.offsetTop - tree.clientHeight / 2;
  traced.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link?.pathname !== location.pathname || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    pick(link);
  });
  traced.addEventListener("submit", (event) => {
    event.preventDefault();
    const link = document.createElement("a");
    link.href = `${location.pathname}?${new URLSearchParams(new FormData(event.target))}`;
    pick(link);
  });
  traced.addEventListener("focusin", (event) => {
    clearTimeout(picking);
    const link = event.target.closest("[aria-selected=false] a:not(.twist)");
    if (link) picking = setTimeout(pick, 150, link);
  });
  traced.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const open = row.ariaExpanded === "true", all = rows();
    const above = all.slice(0, all.indexOf(row)).findLast((other) => +other.ariaLevel < +row.ariaLevel);
    const act = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      ArrowRight: () => { if (open) step(1); else row.querySelector(".twist")?.click(); },
      ArrowLeft: () => (open ? row.querySelector(".twist") : above?.querySelector("a"))?.[open ? "click" : "focus"](),
      Enter: row.ariaSelected === "true" && (() => traced.querySelector("[data-open]")?.click()),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// A click on a row opens it, unless it is on something else to press or selects a text.
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-href]");
  if (!row || event.target.closest("a, button, input, select, label, summary") || !getSelection().isCollapsed) return;
  row.querySelector("a").click();
});

// keyed returns what a key presses. Of several rows of choices it is the row in which the focus is, or else the first one without an
// answer.
function keyed(key) {
  const all = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]:not([inert] *)`)];
  return all.find((one) => one.closest("fieldset")?.contains(document.activeElement)) ??
    all.find((one) => !one.closest("fieldset")?.querySelector(":checked")) ?? all.at(-1);
}

// press does it, and goes on to the next row, or to the button.
function press(one) {
  if (one.matches("input:not([type=radio])")) return one.focus();
  one.click();
  if (!one.matches("[type=radio]")) return;
  const rest = [...one.form.querySelectorAll("fieldset")].filter((row) => row.compareDocumentPosition(one) & 2);
  const next = rest.find((row) => !row.querySelector(":checked"))?.querySelector("input") ?? one.form.querySelector(".primary");
  next.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // A field takes letters as letters, except one of a number, and that of a score that was just set: from there the
  // next request is a key away.
  const number = /^[a-df-z?]$/.test(event.key) && event.target.matches("[type=number], [data-set]:placeholder-shown");
  if (!number && event.target.closest("input:not([type=radio]), select, textarea, dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const act = {
    "/": () => {
      const field = document.querySelector("[data-search]");
      if (!field) return;
      if (field.dataset.suggest && /\S$/.test(field.value)) field.value += " ";
      field.focus();
      field.setSelectionRange(field.value.length, field.value.length);
    },
    j: () => step(1),
    k: () => step(-1),
    n: () => goToMatch(1),
    N: () => goToMatch(-1),
    s: () => {
      const field = document.querySelector("[name=score]");
      field?.removeAttribute("data-set");
      field?.focus();
    },
    "?": help,
    g: () => answer() && scrollTo({ top: 0 }),
    G: () => answer()?.scrollIntoView(),
    e: () => {
      document.querySelectorAll(".folded, .earlier").forEach((turn) => { turn.open = true; });
      document.querySelectorAll(".fold > [data-whole]").forEach((link) => heads.has(link.closest(".passage")) || unfold(link));
    },
  }[event.key];
  const pressed = keyed(event.key);
  if (pressed) {
    event.preventDefault();
    press(pressed);
    return;
  }
  if (act) {
    event.preventDefault();
    act();
  }
});
