// What the theme leaves out for people who use no mouse or no screen: tables that scroll can be reached by keyboard,
// and the bar of a code block's copy button is no landmark of the page.
function complete() {
  for (const bar of document.querySelectorAll("nav.md-code__nav")) bar.setAttribute("role", "none");
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    table.tabIndex = table.scrollWidth > table.clientWidth ? 0 : -1;
    table.setAttribute("role", "group");
    table.setAttribute("aria-label", "Table");
  }
}

new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
new ResizeObserver(complete).observe(document.body);
