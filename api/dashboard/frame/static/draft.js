// Keeps what is typed into the editor in the browser's own storage until it is saved: for the person who typed it, by project and template.
"use strict";

(() => {
  const prefix = "draft:";
  const draftsMax = 20, draftCharsMax = 500_000, draftAgeMax = 7 * 24 * 3600 * 1000; // a browser keeps about 5 MB
  const form = document.querySelector("form[data-draft]");
  const { user, project } = document.body.dataset;
  const key = form && `${prefix}${user}:${project}:${form.dataset.draft}`;

  // Storage may be off or full: then there are no drafts, and everything else works.
  const attempt = (act) => { try { return act(); } catch { return null; } };
  const drafts = () => Object.keys(localStorage).filter((name) => name.startsWith(prefix));
  const read = (name) => attempt(() => JSON.parse(localStorage.getItem(name)));
  const remove = (name) => attempt(() => localStorage.removeItem(name));

  function store(name, fields) {
    const text = JSON.stringify({ at: Date.now(), fields });
    if (text.length > draftCharsMax) return;
    attempt(() => {
      const byAge = drafts().filter((other) => other !== name).sort((a, b) => (read(a)?.at ?? 0) - (read(b)?.at ?? 0));
      for (const old of byAge.slice(0, Math.max(0, byAge.length + 1 - draftsMax))) remove(old);
      localStorage.setItem(name, text);
    });
  }

  let signingOut = false;
  document.addEventListener("submit", (event) => {
    if (!event.target.getAttribute("action")?.endsWith("/sign-out")) return;
    signingOut = true;
    attempt(() => drafts().forEach(remove));
  });

  // The page after a save says so in its address: what this tab was saving need not be kept.
  const done = new URLSearchParams(location.search).get("done");
  const saving = attempt(() => sessionStorage.getItem("saving"));
  if (saving && (done === "saved" || done === "unchanged")) {
    remove(saving);
    attempt(() => sessionStorage.removeItem("saving"));
  }
  if (!form) return;

  // What stands in the form, less what belongs to the session or only to the preview.
  const apart = new Set(["csrf", "session", "variables", "for"]);
  const fields = () => [...new FormData(form)].filter(([name]) => !apart.has(name));
  const text = (list) => JSON.stringify(list).replaceAll("\\r\\n", "\\n");
  const unsaved = "unsaved" in form.dataset;
  const initial = text(fields());
  const dirty = () => unsaved || text(fields()) !== initial;
  let touched = unsaved, leaving = false, waiting;

  const keep = () => { clearTimeout(waiting); if (dirty()) store(key, fields()); else if (touched) remove(key); };
  form.addEventListener("input", () => {
    touched = true;
    signingOut = false; // they were asked, and stayed
    clearTimeout(waiting);
    waiting = setTimeout(keep, 500);
  });
  form.addEventListener("submit", (event) => {
    leaving = true;
    if (dirty()) keep();
    if (event.submitter?.value === "save") attempt(() => sessionStorage.setItem("saving", key));
  });
  addEventListener("pagehide", () => { if (touched && !leaving && !signingOut) keep(); });
  addEventListener("pageshow", () => { leaving = false; });
  addEventListener("beforeunload", (event) => { if (!leaving && dirty()) event.preventDefault(); });
  if (unsaved) return keep();

  // On a fresh page: offer what was typed before.
  const draft = read(key);
  if (!draft) return;
  const age = Date.now() - draft.at;
  if (age > draftAgeMax || text(draft.fields) === initial) return remove(key);

  const offer = document.getElementById("draft");
  const minutes = Math.floor(age / 60000);
  offer.querySelector("span").textContent =
    minutes < 1 ? "less than a minute ago" : minutes < 60 ? `${minutes} min ago` : minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1440)} days ago`;
  offer.hidden = false;
  offer.addEventListener("click", (event) => {
    const act = event.target.dataset.draft;
    if (act === "discard") {
      remove(key);
      offer.hidden = true;
    }
    if (act !== "restore") return;

    // The server makes the form: the draft may have more messages than this one.
    const again = document.createElement("form");
    again.method = "post";
    again.action = form.action;
    again.hidden = true;
    const now = new FormData(form);
    const whole = [...draft.fields, ...[...apart].map((name) => [name, now.get(name) ?? ""]), ["do", "restore"]];
    for (const [name, value] of whole) {
      const field = document.createElement("textarea"); // an input would lose line breaks
      field.name = name;
      field.value = value;
      again.append(field);
    }
    document.body.append(again);
    leaving = true;
    again.submit();
  });
})();
