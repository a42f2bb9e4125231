"""Training sequences with the paper's format, budgets and masks."""

import numpy as np


def share(room, left, right):
    """Tokens for the left and the right context, 2 : 1. Each gets the tokens that the other does not need."""
    of_right = room // 3
    of_left = room - of_right
    if left < of_left:
        of_right = room - left
    elif right < of_right:
        of_left = room - right
    return min(left, of_left), min(right, of_right)


def sequence(label, tokens, markers, most, most_cross_file, weight):
    """The columns of a sequence; markers are the tokens before L, R and Y."""
    before_left, before_right, before_target = markers
    special = dict(tokens.specials)
    for name in ("<cc>", "<eof>"):
        special.setdefault(name, max([tokens.size - 1, *special.values()]) + 1)
    left, right = tokens.encode(label["prompt"]), tokens.encode(label["right_context"])
    target = tokens.encode(label["groundtruth"])
    cross_file = tokens.encode(label["crossfile_context"]["text"])[:most_cross_file]
    of_left, of_right = share(most - len(target) - len(cross_file) - 5, len(left), len(right))
    ids = [special[before_left], *left[len(left) - of_left :], special[before_right], *right[:of_right], special["<eof>"]]
    decision = len(ids)
    if label["label"]:
        ids += [special["<cc>"], *cross_file]
    ids.append(special[before_target])
    completion = len(ids)
    ids += target
    decides = [int(place == decision) for place in range(len(ids))]
    completes = [int(place >= completion) for place in range(len(ids))]
    return {
        "input_ids": ids,
        "attention_mask": [1] * len(ids),
        "labels": [token if one or other else -100 for token, one, other in zip(ids, decides, completes)],
        "eval_mask": decides,
        "gen_mask": completes,
        "loss_weights": [float(np.float32(weight * one or other / len(target))) for one, other in zip(decides, completes)],
        "positive": label["label"],
    }
