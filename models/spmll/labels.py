"""The values of a cell in a label matrix (N, C) int8, one row per image.

    PRESENT   1   seen in the image
    ABSENT   -1   looked for and not there
    UNSEEN    0   not looked at

UNSEEN is not a weak ABSENT: methods differ in what they assume. A mask (N, C) bool is False for cells not to learn from
(held out or unsure). Inside training, methods may write soft pseudo-negatives -q, present with probability q.
"""

PRESENT = 1
ABSENT = -1
UNSEEN = 0
