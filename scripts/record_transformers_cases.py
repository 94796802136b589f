"""Record the outputs of models of `transformers`, for tests that need neither it nor torch.

Run in an environment of its own, with torch and transformers:

    python scripts/record_transformers_cases.py tests/data/transformers_cases.npz

Weights come from a formula of their names, as in `tests/ml/transformers_cases.py`.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, GPT2Config, GPT2LMHeadModel

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "ml"))
from transformers_cases import CLIP, GPT2, tokens, weight


def filled(model):
    """Return the model in float64 with the weights of the formula."""
    model = model.double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weight(name, tuple(parameter.shape))))
    return model


def main(path: str) -> None:
    gpt2 = filled(GPT2LMHeadModel(GPT2Config(**GPT2, attn_implementation="eager")))
    # Its eager attention rounds the softmax to float32.
    clip = filled(CLIPTextModelWithProjection(CLIPTextConfig(**CLIP, attn_implementation="sdpa")))
    ids = torch.from_numpy(tokens(GPT2["vocab_size"], (2, 7)))
    prompt = torch.from_numpy(tokens(GPT2["vocab_size"], (1, 4)))
    clip_ids = torch.from_numpy(tokens(CLIP["vocab_size"], (2, 7)))
    with torch.no_grad():
        outputs = gpt2(ids, output_hidden_states=True)
        generated = gpt2.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=10,
            do_sample=False,
            pad_token_id=0,
            eos_token_id=None,
        )
        text = clip(clip_ids)
    np.savez_compressed(
        path,
        gpt2_logits=outputs.logits.numpy(),
        gpt2_hidden=outputs.hidden_states[-1].numpy(),
        gpt2_generated=generated.numpy(),
        clip_text_embeds=text.text_embeds.numpy(),
        clip_hidden=text.last_hidden_state.numpy(),
    )
    print({name: array.shape for name, array in np.load(path).items()})


if __name__ == "__main__":
    main(sys.argv[1])
