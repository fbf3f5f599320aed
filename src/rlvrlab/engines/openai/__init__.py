"""OpenAI-compatible servers (vLLM, SGLang, `transformers serve`) as samplers: they answer, they are not trained."""

from rlvrlab.engines.openai.servers import ModelChanged, Servers, ServersGone
from rlvrlab.engines.openai.wire import Reply

__all__ = ["ModelChanged", "Reply", "Servers", "ServersGone"]
