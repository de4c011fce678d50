"""What one cell of a label matrix can say.

Labels are (N, C) int8, one row an image, one column a class:

    PRESENT   1   somebody saw the class in the image
    ABSENT   -1   somebody looked, and it is not there
    UNSEEN    0   nobody has looked; in single-positive data this is nearly every cell

UNSEEN is not a weak ABSENT. What an unseen cell is worth is the one question on which the methods differ.

A cell that must not teach anything at all (held out, or called "unsure" by a person) is not a fourth value: it goes
into a separate mask, (N, C) bool, True where the cell may be used. So a label matrix never has to be changed to set
cells aside.

Inside training a method may turn labels into floats and write values between -1 and 0 into unseen cells. Such a value
-q is a guess that the class is there with probability q, taken as a soft pseudo-negative
(losses/entropy_maximization.py). Guesses never leave the method.
"""

PRESENT = 1
ABSENT = -1
UNSEEN = 0
