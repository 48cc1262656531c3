"""A softmax table: the smallest policy that policy gradients can train.

Its parameters are logits, one row for each (prompt, position in the completion). A row that nobody has written holds the
prior of its position: the policy starts out knowing the *form* of an answer and none of the answers. Nothing here is a
language model. The engine samples from such a table, the trainer changes one.
"""
import math
import random
import re
from bisect import bisect_right
from itertools import accumulate

# The words of the policy. Every other byte of a prompt has an id too (FIRST_BYTE + byte), with probability 0.
WORDS = ("<eos>", "\\boxed{", "}", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", " ", "=", "so")
EOS = 0
FIRST_BYTE = len(WORDS)
VOCABULARY_SIZE = FIRST_BYTE + 256
POSITIONS = 5  # the last row serves every later position too

_PIECE = re.compile(rb"\\boxed\{|so|.", re.DOTALL)
_ID_OF_PIECE = {bytes([byte]): FIRST_BYTE + byte for byte in range(256)}
_ID_OF_PIECE.update({word.encode(): token for token, word in enumerate(WORDS) if token != EOS})


def tokenize(text):
    return [_ID_OF_PIECE[piece] for piece in _PIECE.findall(text.encode("utf-8", "replace"))]


def token_bytes(token):
    """The end of a sequence is written as nothing."""
    if token == EOS:
        return b""
    return WORDS[token].encode() if token < FIRST_BYTE else bytes([token - FIRST_BYTE])


def detokenize(ids):
    return b"".join(map(token_bytes, ids)).decode("utf-8", "replace")


def log_softmax(logits):
    top = max(logits)
    log_sum = top + math.log(sum(math.exp(value - top) for value in logits))
    return [value - log_sum for value in logits]


def prior_rows():
    """Logits of every position of a prompt that was never trained: open a box, a digit, close it, stop."""
    def row(digits, **likely):
        named = {"box": 1, "close": 2, "eos": EOS}
        probabilities = [0.0] * FIRST_BYTE
        for name, probability in likely.items():
            probabilities[named[name]] = probability
        for token in range(3, 13):
            probabilities[token] = digits / 10
        rest = [token for token, probability in enumerate(probabilities) if probability == 0.0]
        for token in rest:
            probabilities[token] = (1 - sum(likely.values()) - digits) / len(rest)
        return [math.log(probability) for probability in probabilities]

    end = row(digits=0.15, eos=0.6, close=0.05)
    return [row(digits=0.1, box=0.6), row(digits=0.8), row(digits=0.1, close=0.6), end, list(end)]


PRIOR = prior_rows()


class TablePolicy:
    """Rows of logits by prompt text. Rows are replaced, never changed in place by a reader."""

    def __init__(self, table=None):
        self.table = dict(table or {})
        self._log_rows = {}   # (prompt, position) -> log-probabilities
        self._cumulative = {}  # (prompt, position) -> running sums of the probabilities

    def rows(self, prompt):
        return self.table.get(prompt, PRIOR)

    def set_rows(self, prompt, rows):
        self.table[prompt] = rows
        for position in range(POSITIONS):
            self._log_rows.pop((prompt, position), None)
            self._cumulative.pop((prompt, position), None)

    def log_row(self, prompt, position):
        """Log-probability of each word at this position."""
        key = (prompt if prompt in self.table else None, min(position, POSITIONS - 1))
        found = self._log_rows.get(key)
        if found is None:
            found = self._log_rows[key] = log_softmax(self.rows(prompt)[key[1]])
        return found

    def log_probabilities(self, prompt, ids):
        """The log-probability of each token of a completion, given that it was reached."""
        return [self.log_row(prompt, position)[token] for position, token in enumerate(ids)]

    def cumulative(self, prompt, position):
        key = (prompt if prompt in self.table else None, min(position, POSITIONS - 1))
        found = self._cumulative.get(key)
        if found is None:
            found = self._cumulative[key] = list(accumulate(map(math.exp, self.log_row(prompt, position))))
        return found


def draw(cumulative, generator):
    """One token from running sums of weights (they need not add up to 1)."""
    token = bisect_right(cumulative, generator.random() * cumulative[-1])
    return min(token, len(cumulative) - 1)


def generator_of(seed):
    """The same seed gives the same draws, in every process and whatever else is sampled meanwhile."""
    return random.Random(seed)
