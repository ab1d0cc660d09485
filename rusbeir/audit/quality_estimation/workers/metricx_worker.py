"""Scores pairs with MetricX-24, for the Python of an environment that has its requirements.

It imports nothing of rusbeir: google-research/metricx pins transformers 4.30.2. What it reads and writes is described
in programs.py. MetricX predicts the cost of the errors, from 0 to 25; here a score is minus that. Run as
`python metricx_worker.py MODEL TOKENIZER REPOSITORY`, where REPOSITORY is a checkout of google-research/metricx.
"""

import importlib
import json
import os
import sys

MAX_TOKENS = 1536


def main() -> None:
    """Answer until the input ends."""
    # What libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, tokenizer_name, repository = sys.argv[1:4]
    sys.path.insert(0, repository)
    torch, transformers, models = map(importlib.import_module, ("torch", "transformers", "metricx24.models"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_name)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = models.MT5ForRegression.from_pretrained(name).to(device).eval()
    sys.stdin.readline()
    answers.write(json.dumps({"signature": f"metricx24|model:{name}|transformers:{transformers.__version__}"}) + "\n")
    answers.flush()
    for line in sys.stdin:
        scores = []
        for source, translation in json.loads(line):
            text = f"source: {source} candidate: {translation}"
            tokens = tokenizer(text, max_length=MAX_TOKENS, truncation=True)["input_ids"]
            # The end-of-text token is removed, as in metricx24/predict.py.
            ids = torch.tensor([tokens[:-1]], device=device)
            with torch.no_grad():
                output = model(input_ids=ids, attention_mask=torch.ones_like(ids))
            scores.append(-float(output.predictions[0]))
        answers.write(json.dumps(scores) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
