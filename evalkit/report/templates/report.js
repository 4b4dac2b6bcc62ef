"use strict";
// The page is complete without this: it opens a task's trials when a link leads to them.
(() => {
  const all = () => document.querySelectorAll("#trials details");
  const follow = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
      target.querySelector("summary").focus({ preventScroll: true });
    }
  };
  for (const [id, open] of [["open-all", true], ["close-all", false]]) {
    const button = document.getElementById(id);
    button.hidden = false;
    button.addEventListener("click", () => all().forEach((entry) => { entry.open = open; }));
  }
  addEventListener("hashchange", follow);
  follow();
})();
