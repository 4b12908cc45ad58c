"""DiCE: one counterfactual for each sample; frozen features and ranges by its own options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
import torch
from raiutils.exceptions import UserConfigValidationException
from torch import nn

from research.benchmarks.peer_tools.question import Floats, Question
from research.benchmarks.peer_tools.running import Answer, Method, main, one_by_one
from research.benchmarks.peer_tools.torch_model import Asked

OUTCOME = "wanted"


class Chance(nn.Module):
    """(B, 1), or (1,) of one sample: more than a half exactly where the margin is kept"""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.net = Asked(question)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = self.net(x)
        return torch.sigmoid(logits[..., :1] - logits[..., 1:])


def counterfactual(method: str, **options: Any) -> Method:
    def prepared(question: Question) -> Callable[[], Answer]:
        net = Chance(question).eval()
        names = [f"x{i}" for i in range(question.x.shape[1])]
        known = np.concatenate([question.reference, question.x])
        with torch.no_grad():
            wanted = net(torch.tensor(known, dtype=torch.float32)).numpy()[:, 0] > 0.5
        data = dice_ml.Data(
            dataframe=pd.DataFrame(known, columns=names).assign(**{OUTCOME: wanted.astype(int)}),
            continuous_features=names,
            outcome_name=OUTCOME,
        )
        explainer = dice_ml.Dice(data, dice_ml.Model(model=net, backend="PYT"), method=method)
        free = [name for name, frozen in zip(names, question.frozen, strict=True) if not frozen]

        def one(row: Floats) -> Floats:
            try:
                found = explainer.generate_counterfactuals(
                    pd.DataFrame([row], columns=names),
                    total_CFs=1,
                    desired_class=1,
                    features_to_vary=free,
                    verbose=False,
                    **options,
                )
            except UserConfigValidationException:  # it found none
                return np.full(len(row), np.nan)
            shown = found.cf_examples_list[0]
            frame = shown.final_cfs_df if shown.final_cfs_df_sparse is None else shown.final_cfs_df_sparse
            if frame is None or not len(frame):
                return np.full(len(row), np.nan)
            return np.asarray(frame[names].to_numpy(dtype=np.float64)[0])

        def answered() -> Answer:
            torch.manual_seed(0)
            return one_by_one(question, one)

        return answered

    return prepared


METHODS: dict[str, Method] = {
    "genetic": counterfactual("genetic"),
    "random": counterfactual("random", random_seed=0),
    # By default it looks for sparser changes in up to 10,000 steps a feature, a data frame each: minutes a sample.
    "gradient": counterfactual("gradient", posthoc_sparsity_algorithm="binary"),
}

if __name__ == "__main__":
    main("dice-ml", METHODS)
