// The sidebar shows the page that is open, also if it is far down.
addEventListener("load", () => {
  const sidebar = document.querySelector(".sidebar-scroll");
  const current = sidebar?.querySelector("li.current-page");
  if (current) {
    const offset = current.getBoundingClientRect().top - sidebar.getBoundingClientRect().top;
    sidebar.scrollTop += offset - sidebar.clientHeight / 2;
  }
});
