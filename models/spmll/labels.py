"""The values of a cell in a label matrix.

Labels are (N, C) int8, one row an image, one column a class:

    PRESENT   1   somebody saw the class in the image
    ABSENT   -1   somebody looked, and it is not there
    UNSEEN    0   nobody has looked; in single-positive data this is nearly every cell

UNSEEN is not a weak ABSENT. The methods differ in what they assume of an unseen cell.

A cell that must not be learned from at all (held out, or called "unsure" by a person) has no value of its own: a
separate mask, (N, C) bool, is True where the cell may be used. So a label matrix never has to be changed to exclude
cells.

Inside training a method may turn labels into floats and write values between -1 and 0 into unseen cells. Such a value
-q is a guess that the class is present with probability q, taken as a soft pseudo-negative
(losses/entropy_maximization.py). Guesses never leave the method.
"""

PRESENT = 1
ABSENT = -1
UNSEEN = 0
