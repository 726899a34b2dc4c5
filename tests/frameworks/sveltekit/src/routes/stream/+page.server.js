export function load() {
  return { late: new Promise((resolve) => setTimeout(resolve, 100, "late part")) };
}
