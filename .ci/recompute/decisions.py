"""Policies on labelled instances, and intervals of means."""

import itertools

import numpy as np


def auc(scores, labels):
    """The probability that a positive scores above a negative; equal scores count half."""
    scores, labels = np.asarray(scores, float), np.asarray(labels, bool)
    positives, negatives = scores[labels], scores[~labels]
    if not len(positives) or not len(negatives):
        return None
    above = positives[:, None] > negatives[None, :]
    equal = positives[:, None] == negatives[None, :]
    return float((above + equal / 2).mean())


def calibration_error(probabilities, labels, bins=10):
    """Expected calibration error: the weighted mean over bins of equal width of |mean probability - share of positives|."""
    probabilities, labels = np.asarray(probabilities, float), np.asarray(labels, float)
    numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    members = [numbers == number for number in range(bins)]
    return float(sum(abs(probabilities[inside].sum() - labels[inside].sum()) for inside in members) / len(labels))


def resampled_means(groups, choices):
    """For each row of choices, the mean over all tasks of the chosen groups."""
    sums, sizes = np.array([sum(group) for group in groups]), np.array([len(group) for group in groups])
    return sums[choices].sum(axis=1) / sizes[choices].sum(axis=1)


def limit_of_interval(numbers):
    """The limits of the ends of a mean's bootstrap interval for many numbers, corrected for skewness."""
    numbers = np.asarray(numbers, float)
    deviation, root = numbers.std(), np.sqrt(len(numbers))
    skewness = ((numbers - numbers.mean()) ** 3).mean() / deviation**3
    z = 1.959963984540054
    return [float(numbers.mean() + deviation / root * (end + skewness * (z * z - 1) / (6 * root))) for end in (-z, z)]


def bounds_of_interval(groups, resamples, trials=200_000):
    """The bounds of the two ends of a bootstrap interval that draws whole groups with replacement.

    The lower end of 10,000 resamples estimates the 2.5 % quantile of all resamples. The share of resamples below it has a
    standard deviation of 0.16 %; five of them are allowed. All resamples of up to six groups are enumerated."""
    count = len(groups)
    if count <= 6:
        choices = np.array(list(itertools.product(range(count), repeat=count)))
    else:
        choices = np.random.default_rng(20261127).integers(0, count, (trials, count))
    means = np.sort(resampled_means(groups, choices))
    slack = 5 * np.sqrt(0.025 * 0.975 / resamples) + (0 if count <= 6 else 5 * np.sqrt(0.025 * 0.975 / trials))
    quantile = lambda share: float(np.quantile(means, share, method="inverted_cdf"))
    return (quantile(0.025 - slack), quantile(0.025 + slack)), (quantile(0.975 - slack), quantile(0.975 + slack))


def sign_flips(differences, flips=100_000, trials=400_000):
    """The two-sided p of a sign-flip test: exact for at most 16 differences, otherwise bounds for the p of random flips."""
    differences = np.array([difference for difference in differences if difference])
    sums = abs(differences.sum()) * (1 - 1e-12)
    if len(differences) <= 16:
        signs = np.array(list(itertools.product((1, -1), repeat=len(differences))))
        return float((abs(signs @ differences) >= sums).mean())
    chance = np.random.default_rng(20261127)
    parts = [abs((chance.integers(0, 2, (trials // 20, len(differences))) * 2 - 1) @ differences) >= sums for _ in range(20)]
    share = float(np.concatenate(parts).mean())
    slack = 5 * np.sqrt(max(share, 1e-4) * (1 / flips + 1 / trials))
    return share - slack, share + slack
