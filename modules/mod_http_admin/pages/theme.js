/** Uses a light or dark theme as the system does, unless the user has chosen one. */
import { useEffect, useState } from "preact/hooks";

const KEY = "modhost-theme";
const CHANGED = "modhost-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** @type {readonly (readonly [string, string])[]} */
export const themes = [
  ["", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** Without browser storage, the system's theme is used. */
function storedTheme() {
  try {
    const value = localStorage.getItem(KEY) ?? "";
    return themes.some(([each]) => each === value) ? value : "";
  } catch {
    return "";
  }
}

/** @param {string} theme */
export function choose(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {}
  apply(theme);
  window.dispatchEvent(new Event(CHANGED));
}

/** @param {string} theme */
function apply(theme) {
  document.documentElement.dataset.theme = theme;
}

apply(storedTheme());

/** Returns the chosen theme, and whether the page is dark now. */
export function useTheme() {
  const read = () => ({
    theme: storedTheme(),
    isDark: storedTheme() === "dark" || (storedTheme() === "" && system.matches),
  });
  const [value, set] = useState(read);
  useEffect(() => {
    const look = () => set(read());
    window.addEventListener(CHANGED, look);
    system.addEventListener("change", look);
    return () => {
      window.removeEventListener(CHANGED, look);
      system.removeEventListener("change", look);
    };
  }, []);
  return value;
}
