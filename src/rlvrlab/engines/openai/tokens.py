"""Servers as a Sampler: tokens in, tokens out, with log-probabilities. vLLM speaks this; others may not."""

from __future__ import annotations

from collections.abc import Sequence

from rlvrlab.engines.openai.servers import Servers
from rlvrlab.engines.openai.wire import Reply, spread, token_body
from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.randomness import key_bits
from rlvrlab.types import Completion, Finish, Request, Tokenizer


class ServerSampler:
    """`n` completions for each request, by token ids alone: text is never tokenised a second time.

    Log-probabilities are the server's: vLLM's are at temperature 1 unless it runs with `--logprobs-mode
    processed_logprobs`, so without that only temperature 1 is accepted.
    """

    def __init__(self, servers: Servers, tokenizer: Tokenizer, processed_logprobs: bool = False) -> None:
        self._servers, self.tokenizer, self._processed = servers, tokenizer, processed_logprobs

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Keyed by a seed per request; a request that failed is `n` completions with Finish.ERROR."""
        if not self._processed and any(r.sampling.temperature != 1 or r.sampling.top_p != 1 for r in requests):
            raise UserError(
                "log-probs at another temperature or top_p need vLLM with --logprobs-mode processed_logprobs"
            )
        bodies = [token_body(r.tokens, r.sampling, key_bits(*r.key) % 2**31, r.n) for r in requests]
        found = self._servers.all_choices(bodies)
        return [self._completions(request, replies) for request, replies in zip(requests, found, strict=True)]

    def _completions(self, request: Request, replies: Sequence[Reply]) -> list[Completion]:
        replies = spread(list(replies), request.sampling, request.n)
        if any(reply.finish is Finish.ERROR for reply in replies):
            return [Completion("", (), (), Finish.ERROR)] * request.n
        for reply in replies:
            if not reply.tokens or len(reply.tokens) != len(reply.logprobs):
                raise InfrastructureError(
                    f"{reply.server} returns {len(reply.tokens)} token ids and {len(reply.logprobs)} log-probs; "
                    "training needs both: use vLLM 0.10.2 or later"
                )
        return [Completion(self.tokenizer.decode(r.tokens), r.tokens, r.logprobs, r.finish) for r in replies]
