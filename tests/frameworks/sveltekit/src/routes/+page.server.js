export function load({ platform }) {
  return { greeting: platform.env.GREETING };
}
