// The sidebar shows the page that is open, also if it is far down.
addEventListener("load", () => {
  const current = document.querySelector(".sidebar-scroll li.current-page");
  current?.scrollIntoView({ block: "center" });
});
