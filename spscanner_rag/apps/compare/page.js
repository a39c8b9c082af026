"use strict";
// In a notebook's frame, a link to an anchor would navigate away from the page.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link || location.protocol !== "about:") return;
  event.preventDefault();
  document.getElementById(link.getAttribute("href").slice(1)).scrollIntoView();
});

// j and k go to the next and the previous pick of a column, arrow keys to the next and the previous column.
const columns = [...document.querySelectorAll(".ranking > div")].map((each) => [...each.querySelectorAll("li")]);
let column = 0;
let rank = -1;
function go(toColumn, toRank) {
  const picks = columns[toColumn] ?? [];
  if (!picks.length) return;
  [column, rank] = [toColumn, Math.max(0, Math.min(toRank, picks.length - 1))];
  if (location.protocol === "about:") picks[rank].scrollIntoView();
  else location.replace(`#${picks[rank].id}`);
}
const keys = {
  j: () => go(column, rank + 1),
  k: () => go(column, rank - 1),
  ArrowRight: () => go(column + 1, rank),
  ArrowLeft: () => go(column - 1, rank),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});
