/** Light or dark: as the system has it, unless somebody has chosen. */
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

/** A browser that keeps nothing goes by the system. */
function kept() {
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

apply(kept());

/** What is chosen, and whether it is dark now. */
export function useTheme() {
  const read = () => ({ theme: kept(), isDark: kept() === "dark" || (kept() === "" && system.matches) });
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
