import { z } from "zod";

export const Todo = z.object({ title: z.string().min(1).max(100), done: z.boolean().default(false) });
export type Todo = z.infer<typeof Todo>;
export const todos: Todo[] = [{ title: "write a worker", done: true }];
