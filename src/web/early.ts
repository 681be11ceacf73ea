/** Runs before anything is drawn: a chosen theme never flashes in the other one's colours. */
try {
  const { theme } = JSON.parse(localStorage.getItem("zinc.settings") ?? "{}") as { theme?: string };
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
} catch {
  // Without storage the system's theme it is.
}
