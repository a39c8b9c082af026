"use strict";
// In a notebook's frame, a link to a place on the page would leave it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link || location.protocol !== "about:") return;
  event.preventDefault();
  document.getElementById(link.getAttribute("href").slice(1)).scrollIntoView();
});
