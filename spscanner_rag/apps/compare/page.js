"use strict";
(() => {
  const sections = [...document.querySelectorAll(".comparison")];
  const columns = sections[0].querySelectorAll(".head").length;
  const place = (mark) => Number(mark.id.slice(1).split("-")[0]) * 1e10 + Number(mark.dataset.start);
  const marks = [];
  for (let column = 1; column <= columns; column++) {
    marks[column] = [...document.querySelectorAll(`.cell.c${column} mark.pick`)];
  }
  let column = Number(sections[0].dataset.here);
  let current = null; // the pick that was last gone to
  const framed = location.protocol === "about:"; // there, a link to a place on the page would leave it

  function choose(number) {
    column = number;
    for (const section of sections) section.dataset.here = String(number);
  }

  function leave() {
    for (const element of document.querySelectorAll(".here")) element.classList.remove("here");
    for (const at of document.querySelectorAll(".at[data-picks]")) at.textContent = at.dataset.picks;
  }

  function show(element) {
    element.scrollIntoView({ block: "start", inline: "nearest" });
  }

  function enter(mark) {
    leave();
    choose(Number(mark.id.split("-")[1]));
    current = mark;
    mark.classList.add("here");
    const head = mark.closest(".comparison").querySelector(`.head.c${column}`);
    const at = head.querySelector(".at");
    at.dataset.picks ??= at.textContent;
    at.textContent = mark.title;
    const tick = head.querySelector(`a[href="#${mark.id}"]`);
    if (tick) tick.classList.add("here");
  }

  function go(mark) {
    if (!mark) return;
    enter(mark);
    show(mark);
    if (!framed) history.replaceState(null, "", `#${mark.id}`);
  }

  function step(by) {
    const list = marks[column];
    const at = list.indexOf(current);
    go(at < 0 ? list[by > 0 ? 0 : list.length - 1] : list[at + by]);
  }

  function turn(by) {
    choose(((column - 1 + by + columns) % columns) + 1);
    const list = marks[column];
    if (!current || !list.length) {
      leave();
      current = null;
      return;
    }
    const from = place(current);
    const away = (mark) => Math.abs(place(mark) - from);
    go(list.reduce((best, mark) => (away(mark) < away(best) ? mark : best)));
  }

  let missed = null;
  function nextMissed() {
    const list = [...document.querySelectorAll(`.cell.c${column} .miss`)];
    if (!list.length) return;
    missed = list[(list.indexOf(missed) + 1) % list.length];
    leave();
    missed.classList.add("here");
    show(missed);
  }

  const keys = {
    j: () => step(1), n: () => step(1), k: () => step(-1), p: () => step(-1),
    ArrowRight: () => turn(1), l: () => turn(1), ArrowLeft: () => turn(-1), h: () => turn(-1),
    b: () => go(marks[column].find((mark) => mark.id.endsWith("-1"))), m: nextMissed,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  document.addEventListener("click", (event) => {
    const head = event.target.closest("button.name");
    if (head) {
      choose([...head.closest(".heads").children].indexOf(head.parentElement) + 1);
      return;
    }
    const link = event.target.closest("a[href^='#']");
    const mark = link && document.getElementById(link.getAttribute("href").slice(1));
    if (!mark) return;
    if (mark.matches("mark")) enter(mark);
    if (framed) {
      event.preventDefault();
      show(mark);
    }
  });

  function arrive() {
    const mark = document.getElementById(location.hash.slice(1));
    if (mark && mark.matches("mark.pick") && mark !== current) {
      enter(mark);
      show(mark);
    }
  }
  window.addEventListener("hashchange", arrive);
  arrive();
})();
