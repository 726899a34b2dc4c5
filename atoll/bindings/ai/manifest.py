"""env.AI for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import BindingQuota, BindingSetting, Facts, Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.ai.ops import Ai
    from atoll.bindings.ai.settings import read_ai

    return Ai(services, read_ai(services.settings))


MANIFEST = Manifest(
    kind="ai",
    make=make,
    config="atoll.bindings.ai.config",
    type_name="Ai",
    settings={
        "ai_endpoint": BindingSetting(
            "", Facts("Address of an OpenAI-compatible server for env.AI, with its path, usually /v1.", shown="none")
        ),
        "ai_key_file": BindingSetting(
            "",
            Facts(
                "File with the API key of that server. Workers never see the key.",
                shown="OPENAI_API_KEY of the environment, if set",
            ),
        ),
        "ai_models": BindingSetting(
            (),
            Facts(
                "Models that workers may ask for, each as NAME=NAME ON THE SERVER.",
                free=True,
            ),
        ),
        "ai_default_model": BindingSetting(
            "", Facts("Model on the server for text generation under names that `ai_models` lacks.", shown="none")
        ),
        "ai_default_embedding_model": BindingSetting(
            "", Facts("Model on the server for embeddings under names that `ai_models` lacks.", shown="none")
        ),
        "ai_timeout": BindingSetting(
            300.0, Facts("Seconds for which the server may be silent during an answer.", low=1, high=86_400)
        ),
        "ai_tokens_per_day": BindingSetting(
            10_000_000, Facts("Tokens that a tenant may use in a day (UTC), unless its quota sets another.", low=1)
        ),
    },
    quotas={"ai_tokens_per_day": BindingQuota("Tokens of env.AI in a day (UTC).", setting="ai_tokens_per_day")},
)
