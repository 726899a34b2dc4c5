export type ChatMessage = { id: string; content: string; user: string; role: "user" | "assistant" };
export const names = ["Alice", "Bob", "Charlie"];
