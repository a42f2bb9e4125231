"""Errors to plant in records. The comparison must notice each."""


def change_line(record):
    lines = record["context"].split("\n")
    lines[len(lines) // 2] += " "
    record["context"] = "\n".join(lines)


def move(place):
    place["end_line_no"] += 1


def exchange(fragments):
    fragments[0], fragments[1] = fragments[1], fragments[0]


def nudge(record, key):
    record[key] += 1e-15 * (1 if record[key] < 1 else -1)


def halve(record):
    record["p"] /= 2


def narrow(interval):
    """From 95 % to 90 % of a normal distribution."""
    middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2 * 1.645 / 1.96
    interval[:] = middle - half, middle + half


def nudge_more(record, key):
    record[key] += 1e-9
