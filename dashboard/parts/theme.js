// Light, dark, or what the system says. The choice stays in this browser.
import { signal } from "@preact/signals";

const CHOICES = ["system", "light", "dark"];

export const theme = signal(CHOICES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "system");

export function applyTheme(name) {
  theme.value = name;
  localStorage.setItem("theme", name);
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  queueMicrotask(() => window.dispatchEvent(new Event("atoll:theme")));
}

export const nextTheme = () => applyTheme(CHOICES[(CHOICES.indexOf(theme.value) + 1) % CHOICES.length]);
