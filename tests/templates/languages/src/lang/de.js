export const greeting = "hallo";
