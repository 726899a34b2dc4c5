// Who is logged in, as the page or GET /api/session says, and the tenant that an operator looks at.
import { computed, effect, signal } from "@preact/signals";

const element = document.getElementById("session");

export const session = signal(JSON.parse(element?.textContent || "null")); // null: nobody, or the session has ended
export const known = signal(session.value); // who was logged in last: the page stays while a login is repeated
export const chosenTenant = signal(sessionStorage.getItem("tenant") ?? "");
export const tenant = computed(() => (known.value?.is_operator && chosenTenant.value) || known.value?.tenant || "");

effect(() => {
  if (session.value) known.value = session.value;
});

export const may = (scope) => Boolean(known.value?.scopes.includes(scope));

export function chooseTenant(name) {
  chosenTenant.value = name;
  sessionStorage.setItem("tenant", name);
}
