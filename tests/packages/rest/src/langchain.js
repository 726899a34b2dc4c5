import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { RunnableLambda } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { z } from "zod";

export default async () => {
  const prompt = ChatPromptTemplate.fromMessages([["system", "You are {role}."], ["human", "{question}"]]);
  const chain = prompt.pipe(new FakeListChatModel({ responses: ["first", "second"] })).pipe(new StringOutputParser());
  const parts = [];
  for await (const part of await chain.stream({ role: "a poet", question: "why" })) parts.push(part);
  const add = tool(({ a, b }) => a + b, { name: "add", description: "adds", schema: z.object({ a: z.number(), b: z.number() }) });
  const double = RunnableLambda.from((n) => n * 2);
  return [parts.join(""), await chain.invoke({ role: "x", question: "y" }), await add.invoke({ a: 1, b: 2 }), await double.batch([1, 2]), new HumanMessage("hi").toDict(), AIMessage.isInstance(new AIMessage("x")), (await prompt.formatMessages({ role: "a", question: "b" })).map((m) => m.content)];
};
