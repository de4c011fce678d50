"""Class names as a first guess: what a text-image network says before anybody has answered.

prompts.py makes texts of names, first_guess.py makes scores comparable between classes; nothing is trained. Only
patch_scores.py loads torch. Begin with first_guess.py.
"""
