"use strict";
(() => {
  const main = document.querySelector("main");
  const marks = [...document.querySelectorAll("article mark[id]")]; // in document order
  const best = document.querySelector("mark[data-rank='1']");
  const at = document.querySelector(".at");
  const narrow = matchMedia("(max-width: 760px)");
  let current = null; // the last visited pick

  const scrolls = () => (getComputedStyle(main).overflowY === "auto" ? main : document.scrollingElement);
  const linked = (selector, id) => document.querySelector(`${selector}[href="#${id}"]`);

  // A PDF is shown as its pages or as its text; a pick that is on no picture is shown in the text.
  const drawn = (mark) => [...document.querySelectorAll(`figure [data-mark="${mark.id}"]`)];
  function view(name) {
    if (!document.querySelector("figure")) return;
    document.body.dataset.view = name;
    for (const button of document.querySelectorAll("button[data-view]")) {
      button.setAttribute("aria-pressed", button.dataset.view === name);
    }
  }

  function enter(mark) {
    for (const element of document.querySelectorAll(".here")) element.classList.remove("here");
    current = mark;
    for (const shown of [mark, ...drawn(mark)]) shown.classList.add("here");
    at.textContent = mark.dataset.facts;
    const item = linked("li a", mark.id);
    const tick = linked("svg a", mark.id);
    if (tick) tick.classList.add("here");
    if (!item) return;
    item.parentElement.classList.add("here");
    const list = item.closest("nav");
    if (narrow.matches) list.querySelector("details").open = false;
    if (list.scrollHeight > list.clientHeight) item.scrollIntoView({ block: "nearest" });
  }

  function show(mark) {
    const pictures = drawn(mark);
    if (!pictures.length) view("text");
    const shown = (document.body.dataset.view === "pages" && pictures[0]) || mark;
    const settle = () => shown.scrollIntoView({ block: "center", inline: "nearest" });
    settle(); // blocks are laid out only as they come into view, which may move the pick
    requestAnimationFrame(settle);
  }

  function go(mark, remember = true) {
    if (!mark) return;
    enter(mark);
    show(mark);
    if (remember) history.replaceState(null, "", `#${mark.id}`);
  }

  function step(by) {
    const place = marks.indexOf(current);
    go(place < 0 ? marks[by > 0 ? 0 : marks.length - 1] : marks[place + by]);
  }

  const keys = { j: () => step(1), n: () => step(1), k: () => step(-1), p: () => step(-1), b: () => go(best) };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  // The block at a character of a document, and the share of the block before that character.
  function blockAt(article, character) {
    const blocks = [...article.querySelectorAll("[data-at]")];
    let low = 0;
    for (let high = blocks.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if (Number(blocks[middle].dataset.at) <= character) low = middle;
      else high = middle;
    }
    const [start, next] = [low, low + 1].map((i) => Number(blocks[i]?.dataset.at ?? article.dataset.characters));
    return [blocks[low], (character - start) / Math.max(1, next - start)];
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-step]");
    if (button) return step(Number(button.dataset.step));
    const chosen = event.target.closest("button[data-view]");
    if (chosen) {
      narrow.onchange = null;
      view(chosen.dataset.view);
      return current && show(current);
    }
    const link = event.target.closest("a[href^='#']");
    const target = link && document.getElementById(link.getAttribute("href").slice(1));
    if (narrow.matches && target?.closest("nav")) document.querySelector("nav details").open = true;
    if (target && target.matches("mark")) {
      event.preventDefault();
      go(target, false);
      history.pushState(null, "", `#${target.id}`);
      return undefined;
    }
    const strip = event.target.closest("svg.strip");
    if (!strip || link) return undefined;
    view("text");
    const article = document.getElementById(strip.dataset.document);
    const box = strip.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const [block, inside] = blockAt(article, share * Number(article.dataset.characters));
    block.scrollIntoView({ block: "start" });
    scrolls().scrollTop += inside * block.getBoundingClientRect().height;
    return undefined;
  });

  // Show on each strip which part of the document is in view.
  function mark_position() {
    const view = main.getBoundingClientRect();
    const top = Math.max(view.top, document.querySelector(".guide").getBoundingClientRect().bottom);
    const x = view.left + 60;
    const under = (y) => document.elementFromPoint(x, y)?.closest("[data-at]");
    const block = under(top + 24) ?? under(top + 90) ?? under((top + innerHeight) / 2);
    const article = block?.closest("article");
    for (const now of document.querySelectorAll(".strip .now")) {
      const mine = article && now.parentElement.dataset.document === article.id;
      now.setAttribute("width", mine ? "4" : "0");
      if (!mine) continue;
      const box = block.getBoundingClientRect();
      const next = block.nextElementSibling?.dataset.at ?? article.dataset.characters;
      const inside = Math.min(1, Math.max(0, (top - box.top) / Math.max(1, box.height)));
      const character = Number(block.dataset.at) + inside * (Number(next) - Number(block.dataset.at));
      now.setAttribute("x", String((1000 * character) / Math.max(1, Number(article.dataset.characters)) - 2));
    }
  }
  let waiting = false;
  const scrolled = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark_position();
    });
  };
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  addEventListener("resize", scrolled);

  function arrive() {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.matches("mark")) go(target, false);
    return target;
  }
  addEventListener("hashchange", arrive);
  addEventListener("popstate", arrive);
  for (const hidden of document.querySelectorAll(".steps[hidden]")) hidden.hidden = false;
  function begin() {
    view(narrow.matches ? "text" : "pages"); // on a narrow screen, a page's letters are too small
    if (current) show(current);
    else if (!arrive() && best) go(best, false);
  }
  narrow.onchange = begin; // a frame may get its width only later
  begin();
  if (scrolls() === main) main.focus({ preventScroll: true }); // so that its keys scroll the document
  mark_position();
})();
