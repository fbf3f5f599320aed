"""The model below its output layer: from a layout to the hidden states of its places.

What an architecture allows is found out by trying: a packed pass must equal a padded one, and the output layer applied
to the hidden states must give the model's own logits. Whatever fails takes the slower, general way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf.attention import flash_finds_what_tables_find, indices_of, packed_attention, without_cudnn
from rlvrlab.engines.hf.flash import ranges_of
from rlvrlab.engines.hf.head import Head
from rlvrlab.engines.hf.packing import Layout, layout_of
from rlvrlab.engines.hf.slopes import along

AGREE = {torch.float32: 1e-4, torch.bfloat16: 5e-2}
"""How equal two ways to the same hidden state must be, relative to the largest."""


class Body:
    """A causal model as a function from layouts to hidden states, and its head."""

    def __init__(self, model: Any, *, packing: bool) -> None:
        self.model, self.config = model, model.config
        self.device = next(model.parameters()).device
        self.window = int(getattr(self.config, "max_position_embeddings", None) or 1 << 30)
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        with torch.no_grad(), without_cudnn():
            self.split = self._head_is_linear()
            project = model.get_output_embeddings() if self.split else torch.nn.Identity()
            self.head = Head(project, self.vocabulary, self.device.type)
            self.flash = False
            """Whether packed rows attend without tables; ways.py finds out whether they may."""
            self.packs = packing and self._packing_is_exact()

    def layout(self, batch: Any) -> Layout:
        """How to run a batch: packed where the model allows it."""
        sliding = getattr(self.config, "sliding_window", None)
        packed = self.packs and (not sliding or batch_length(batch) <= sliding)
        return layout_of(batch, self.window, packed=packed)

    @contextmanager
    def running(self, layout: Layout) -> Iterator[None]:
        """Around a forward pass and its backward pass, which may recompute activations."""
        indices: Any = None
        if layout.shared is not None:
            indices = (ranges_of if self.flash else indices_of)(layout.shared, self.device)
        with without_cudnn(), packed_attention(self.config, indices):
            yield

    def hidden(self, layout: Layout, *, last: bool = False) -> Tensor:
        """What the head reads at each place; `last` asks for the hidden state even where the head reads logits."""
        place = self.tensor(layout.place_K)
        inputs: dict[str, Any] = {
            "input_ids": self.tensor(layout.ids),
            "position_ids": self.tensor(layout.positions),
            "use_cache": False,
        }
        if layout.mask is not None:
            inputs["attention_mask"] = self.tensor(layout.mask)
        if self.split:
            out = self._decoder()(**inputs).last_hidden_state
        elif last:
            out = self.model(**inputs, output_hidden_states=True).hidden_states[-1]
        else:
            out = self.model(**inputs).logits
        return out.flatten(0, 1).index_select(0, place)

    def tensor(self, array: Any) -> Tensor:
        """A NumPy array on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _decoder(self) -> Any:
        return getattr(self.model, self.model.base_model_prefix)

    def _head_is_linear(self) -> bool:
        """False where the model scales or caps its logits after the output layer."""
        ids = self._probe_ids(6)[None]
        whole = self.model(input_ids=ids, use_cache=False).logits
        try:
            below = self._decoder()(input_ids=ids, use_cache=False).last_hidden_state
        except (AttributeError, TypeError):
            return False
        return self._agree(self.model.get_output_embeddings()(below), whole)

    def _packing_is_exact(self) -> bool:
        if self.config._attn_implementation != "sdpa" or not getattr(self.model, "_supports_attention_backend", True):
            return False
        ids = self._probe_ids(9).tolist()
        batch = batch_of([ids[:3], ids[:3], ids[2:7]], [ids[3:8], ids[5:8], ids[:4]])
        ways = [layout_of(batch, self.window, packed=packed) for packed in (True, False)]
        found = []
        try:
            for layout in ways:
                edges = self.tensor(layout.edge_place_E[layout.edge_BT[layout.edge_BT >= 0]])
                with self.running(layout):
                    found.append(self.hidden(layout)[edges])
        except (AssertionError, ValueError, TypeError, RuntimeError, NotImplementedError):
            return False
        return self._agree(*found)

    def flash_is_exact(self) -> bool:
        """May this model attend without tables?"""
        shared = self._probe_layout().shared
        if self.device.type != "cuda" or shared is None:
            return False
        dtype = self.model.get_input_embeddings().weight.dtype
        try:
            return flash_finds_what_tables_find(self.config, dtype, shared, self.device)
        except (AttributeError, AssertionError, ValueError, TypeError, RuntimeError, NotImplementedError):
            return False

    def probe_gradient(self) -> Tensor:
        """A few hidden states and a gradient by everything that is trained, as one vector: to compare two ways."""
        layout, trained = self._probe_layout(), [p for p in self.model.parameters() if p.requires_grad]
        with self.running(layout), torch.enable_grad():
            hidden = self.hidden(layout)
            slope = torch.arange(hidden.numel(), device=self.device).cos().view(hidden.shape).to(hidden.dtype)
            found = torch.autograd.grad(along(hidden, slope), trained, allow_unused=True)
        return torch.cat([x.detach().float().flatten() for x in (hidden, *found) if x is not None])

    def _probe_layout(self) -> Layout:
        ids = self._probe_ids(40).tolist()
        batch = batch_of([ids[:9], ids[:9], ids[2:20]], [ids[3:38], ids[5:8], ids[:30]])
        return layout_of(batch, self.window, packed=True)

    def _probe_ids(self, count: int) -> Tensor:
        return torch.arange(count, device=self.device) * 7 % self.vocabulary

    def _agree(self, a: Tensor, b: Tensor) -> bool:
        scale = float(b.abs().max()) + 1e-12
        return bool((a - b).abs().max() <= AGREE[b.dtype if b.dtype in AGREE else torch.bfloat16] * scale)


def batch_length(batch: Any) -> int:
    """The longest sequence of a batch."""
    lengths = batch.seen_BT.sum(axis=1)
    return max((len(p) + int(n) for p, n in zip(batch.prompts, lengths, strict=True)), default=0)
