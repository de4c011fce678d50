"""Class names as a first guess: what a text-image network says of images before anybody has answered anything.

prompts.py makes texts of the names of a class, patch_scores.py compares them with the patches of an image (torch), and
first_guess.py makes both, the whole image and its patches, comparable between classes, as probabilities. Nothing is
trained. prompts.py and first_guess.py load no torch.
"""
