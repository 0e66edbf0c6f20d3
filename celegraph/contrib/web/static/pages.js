// Comfort, and nothing that the pages need: times in the reader's zone, one click per form, and a run's page
// that renews itself. Everything works without this file.
"use strict";

// -- times in the reader's own zone --------------------------------------------------------------------

const format = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
});
const precise = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = precise.format(at);
    time.textContent = format.format(at);
  }
}

// -- a double click is one answer ----------------------------------------------------------------------

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-once]")) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  // Not `disabled`: the button that was pressed must still be sent.
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
});

// Back in a page that the browser has kept: its forms may be sent again, and are told if they are too late.
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
  }
});

// -- a run's page renews itself ------------------------------------------------------------------------

const FIRST = 2000;
const SLOWEST = 60000;

function watch(state) {
  let version = state.dataset.version;
  let pause = FIRST;
  let timer = 0;

  function later() {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(look, pause);
  }

  async function look() {
    try {
      // The browser adds If-None-Match by itself, and turns a 304 into what it holds.
      const answer = await fetch(state.dataset.poll, { credentials: "same-origin", cache: "no-cache" });
      if (!answer.ok) throw new Error(String(answer.status));
      const now = await answer.json();
      if (now.version === version) {
        pause = Math.min(SLOWEST, pause * 1.5);
      } else if (await renew()) {
        version = now.version;
        pause = FIRST;
      }
      state.textContent = now.ended ? "" : "This page renews itself.";
      if (now.ended) return;
    } catch {
      pause = Math.min(SLOWEST, pause * 2);
      state.textContent = "The server does not answer; this page shows the last that is known.";
    }
    later();
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
    } else {
      pause = FIRST;
      look();
    }
  });
  later();
}

// The page as it is now, part by part; a part in which somebody types stays as it is.
async function renew() {
  const answer = await fetch(location.pathname, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return false;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  let whole = true;
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select, button")) {
      whole = false;
      continue;
    }
    if (!other) {
      part.remove();
      continue;
    }
    const open = [...part.querySelectorAll("details")].map((one) => one.open);
    const scrolled = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    const adopted = document.adoptNode(other);
    localise(adopted);
    part.replaceWith(adopted);
    [...adopted.querySelectorAll("details")].forEach((one, n) => { if (open[n]) one.open = true; });
    [...adopted.querySelectorAll(".scroll")].forEach((one, n) => { one.scrollLeft = scrolled[n] || 0; });
  }
  return whole;
}

localise(document);
for (const state of document.querySelectorAll("[data-poll]")) watch(state);
