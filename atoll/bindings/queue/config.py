"""`queues` of a project's config."""

from __future__ import annotations

from msgspec import Struct, structs

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading, Subfield, given


class ConfigProducer(Struct):
    binding: str
    queue: str
    delivery_delay: int | None = None


class ConfigConsumer(Struct):
    queue: str
    max_batch_size: int | None = None
    max_batch_timeout: int | None = None
    max_retries: int | None = None
    dead_letter_queue: str | None = None
    max_concurrency: int | None = None
    retry_delay: int | None = None
    type: str = "worker"


class ConfigQueues(Struct):
    producers: list[ConfigProducer] = []
    consumers: list[ConfigConsumer] = []


def read(queues: ConfigQueues, reading: Reading) -> None:
    for producer in queues.producers:
        reading.bind("queue", producer.binding, queue=producer.queue, delivery_delay=producer.delivery_delay)
    for consumer in queues.consumers:
        entry = given(structs.asdict(consumer))
        if entry.pop("type") != "worker":
            text = f"the consumer of {consumer.queue} is no worker: run `atoll queues allow-pull {consumer.queue}` once"
            reading.warn("queues.consumers", text)
        else:
            reading.trigger("queue_consumers", entry)


FIELDS = (
    ConfigField(
        name="queues",
        shape=ConfigQueues,
        read=read,
        subfields={
            "queues.producers[].remote": REMOTE,
            "queues.consumers[].visibility_timeout_ms": Subfield("it is for consumers that pull"),
        },
    ),
)
