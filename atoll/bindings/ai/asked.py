"""What a worker asks of a model, as a request to the server. Fields that are not listed here are not sent.

The JavaScript half has put the inputs into OpenAI's form. Values are copied as they are, not read: a large input costs
one pass in C.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from atoll.bindings.ai.faults import AiFault

MAX_INPUT = 4 << 20  # bytes of JSON
NOTHING = msgspec.Raw()


class ChatInput(msgspec.Struct):
    messages: msgspec.Raw = NOTHING
    prompt: msgspec.Raw = NOTHING  # of a completion without a chat template
    tools: msgspec.Raw = NOTHING
    tool_choice: msgspec.Raw = NOTHING
    parallel_tool_calls: msgspec.Raw = NOTHING
    response_format: msgspec.Raw = NOTHING
    max_tokens: msgspec.Raw = NOTHING
    max_completion_tokens: msgspec.Raw = NOTHING
    temperature: msgspec.Raw = NOTHING
    top_p: msgspec.Raw = NOTHING
    top_k: msgspec.Raw = NOTHING
    seed: msgspec.Raw = NOTHING
    stop: msgspec.Raw = NOTHING
    repetition_penalty: msgspec.Raw = NOTHING
    frequency_penalty: msgspec.Raw = NOTHING
    presence_penalty: msgspec.Raw = NOTHING
    logit_bias: msgspec.Raw = NOTHING
    logprobs: msgspec.Raw = NOTHING
    top_logprobs: msgspec.Raw = NOTHING
    reasoning_effort: msgspec.Raw = NOTHING
    chat_template_kwargs: msgspec.Raw = NOTHING


class EmbeddingInput(msgspec.Struct):
    input: msgspec.Raw = NOTHING
    dimensions: msgspec.Raw = NOTHING


class ModelTask(msgspec.Struct, frozen=True):
    path: str
    decoder: msgspec.json.Decoder[ChatInput] | msgspec.json.Decoder[EmbeddingInput]

    @property
    def is_embedding(self) -> bool:
        return self.path == "/embeddings"


_CHAT = msgspec.json.Decoder(ChatInput)
TASKS: Mapping[object, ModelTask] = {
    "chat": ModelTask("/chat/completions", _CHAT),
    "completion": ModelTask("/completions", _CHAT),
    "embedding": ModelTask("/embeddings", msgspec.json.Decoder(EmbeddingInput)),
}


def request_body(task: ModelTask, model: str, inputs: bytes, *, is_stream: bool) -> bytes:
    if len(inputs) > MAX_INPUT:
        raise AiFault(3006, f"Request is too large: inputs may have {MAX_INPUT >> 20} MB", 413)
    try:
        asked = task.decoder.decode(inputs)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AiFault(5004, "Invalid data passed", 400) from None
    fields = [b'"model":' + msgspec.json.encode(model)]
    for name in asked.__struct_fields__:
        value = bytes(getattr(asked, name))
        if value and value != b"null":
            fields.append(b'"%b":%b' % (name.encode(), value))
    if is_stream:  # the last event has the tokens, whatever the worker asked for
        fields.append(b'"stream":true,"stream_options":{"include_usage":true}')
    return b"{" + b",".join(fields) + b"}"
