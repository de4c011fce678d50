"""First guesses by class names: scores of a text-image network before anybody has answered.

prompts.py makes texts of names, first_guess.py makes scores comparable between classes; nothing is trained. Only
patch_scores.py loads torch. Begin with first_guess.py.
"""
