// env.AI

type AiRole = "system" | "user" | "assistant" | "tool" | (string & {});

interface AiTextGenerationInput {
  prompt?: string;
  messages?: { role: AiRole; content: unknown; name?: string; tool_call_id?: string; tool_calls?: unknown[] }[];
  raw?: boolean;
  stream?: boolean;
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  seed?: number;
  repetition_penalty?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  response_format?: { type: string; json_schema?: unknown };
  tools?: object[];
  tool_choice?: unknown;
  [option: string]: unknown;
}

interface AiUsageTokens {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

interface AiTextGenerationOutput {
  response: string;
  tool_calls: { id?: string; type?: string; name: string; arguments: unknown; function?: { name: string; arguments: string } }[];
  usage?: AiUsageTokens;
  choices?: unknown[];
}

interface AiTextEmbeddingsInput {
  text: string | string[];
}

interface AiTextEmbeddingsOutput {
  shape: number[];
  data: number[][];
  usage?: Partial<AiUsageTokens>;
}

interface AiOptions {
  returnRawResponse?: boolean;
  [option: string]: unknown;
}

interface AiModelsSearchObject {
  id: string;
  source: number;
  name: string;
  description: string;
  task: { id: string; name: string; description: string };
  tags: string[];
  properties: { property_id: string; value: string }[];
}

/** Models on the server that the operator of the node names. */
interface Ai {
  aiGatewayLogId: string | null;
  run(model: string, inputs: AiTextEmbeddingsInput | AiTextGenerationInput, options: AiOptions & { returnRawResponse: true }): Promise<Response>;
  run(model: string, inputs: AiTextGenerationInput & { stream: true }, options?: AiOptions): Promise<ReadableStream<Uint8Array>>;
  run(model: string, inputs: AiTextEmbeddingsInput, options?: AiOptions): Promise<AiTextEmbeddingsOutput>;
  run(model: string, inputs: AiTextGenerationInput, options?: AiOptions): Promise<AiTextGenerationOutput>;
  models(params?: { search?: string }): Promise<AiModelsSearchObject[]>;
}
